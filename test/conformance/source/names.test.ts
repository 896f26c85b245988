import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readProblems } from '../../support/airbyte/message-rules.ts';
import { SourceFixture } from '../../support/airbyte/source.ts';

const hash = (name: string): string => createHash('sha256').update(name).digest('hex').slice(0, 6);
const withHash = (name: string): string => `${name}_${hash(name)}`;

/** Those whose names are cursor or key of a stream but for their case. */
const THEIRS = ['DF_SERVER_DATETIME', 'Df_Event_Log_Id', '_KEY', 'DF_EVENT_NAME'];

describe('columns whose names differ only in case', () => {
  let fixture: SourceFixture;
  beforeAll(async () => {
    fixture = await SourceFixture.start({
      columns: {
        own: [
          { name: 'Color', values: ['upper'], days: ['2026-01-18', '2026-01-19'] },
          { name: 'color', values: ['lower'] },
          ...THEIRS.map((name) => ({ name, values: ['theirs'] })),
          { name: 'plain', values: ['plain'] },
        ],
      },
    });
  });
  afterAll(() => fixture.close());

  it('get a hash of the raw name in the catalog, and a description; cursor and key keep their names', async () => {
    const [events, logs] = (await fixture.run('discover', fixture.config())).catalog().streams;
    const { properties } = events.json_schema;
    const names = Object.keys(properties);
    expect(names).toEqual(expect.arrayContaining(['color', ...['Color', ...THEIRS].map(withHash)]));
    expect(new Set(names.map((name) => name.toLowerCase())).size).toBe(names.length);
    expect(properties[withHash('Color')]).toMatchObject({ description: expect.stringContaining('"Color"') });
    expect(properties.color).not.toHaveProperty('description');
    expect(properties.plain).not.toHaveProperty('description');
    for (const stream of [events, logs])
      expect(stream.json_schema.properties).toMatchObject({ df_server_datetime: {}, df_event_log_id: {} });
  });

  it('are separate properties of a record, also on days that lack one of them', async () => {
    const catalog = await fixture.catalog();
    const output = await fixture.read(catalog);
    expect(readProblems(output, catalog)).toEqual([]);
    const values = (name: string) => new Set(output.records('events').map((data) => data[name] ?? null));
    expect(values(withHash('Color'))).toEqual(new Set([null, 'upper']));
    expect(values('color')).toEqual(new Set(['lower']));
    expect(values('Color')).toEqual(new Set([null]));
    for (const name of THEIRS) expect(values(withHash(name))).toEqual(new Set(['theirs']));
    // The export calls the column `event_name`, the catalog never does.
    expect(values('df_event_name')).toContain('df_login');
    for (const data of output.records('event_logs')) expect(data.df_event_log_id).not.toBe('theirs');
  });
});
