import { createHash } from 'node:crypto';
import { afterEach, describe, expect, it } from 'vitest';
import { readProblems } from '../../support/airbyte/message-rules.ts';
import { SourceFixture } from '../../support/airbyte/source.ts';

const hash = (name: string): string => createHash('sha256').update(name).digest('hex').slice(0, 6);
const withHash = (name: string): string => `${name}_${hash(name)}`;

let fixture: SourceFixture;
afterEach(() => fixture.close());

describe('columns whose names differ only in case', () => {
  const start = () =>
    SourceFixture.start({
      columns: {
        own: [
          { name: 'Color', values: ['upper'], days: ['2026-01-18', '2026-01-19'] },
          { name: 'color', values: ['lower'] },
          { name: 'ÄRA', values: ['umlaut'] },
          { name: 'ära', values: ['small'] },
          { name: '_KEY', values: ['theirs'] },
          { name: 'DF_EVENT_NAME', values: ['theirs'] },
          { name: 'plain', values: ['plain'] },
        ],
      },
    });

  it('get a hash of the raw name in the catalog, and a description', async () => {
    fixture = await start();
    const [events] = (await fixture.run('discover', fixture.config())).catalog().streams;
    const { properties } = events.json_schema;
    const names = Object.keys(properties);
    expect(names).toEqual(
      expect.arrayContaining(['color', withHash('Color'), 'ära', withHash('ÄRA'), withHash('_KEY')]),
    );
    expect(new Set(names.map((name) => name.toLowerCase())).size).toBe(names.length);
    expect(properties[withHash('Color')]).toMatchObject({ description: expect.stringContaining('"Color"') });
    expect(properties.color).not.toHaveProperty('description');
    expect(properties.plain).not.toHaveProperty('description');
  });

  it('are separate properties of a record, also on days that lack one of them', async () => {
    fixture = await start();
    const catalog = await fixture.catalog();
    const output = await fixture.read(catalog);
    expect(readProblems(output, catalog)).toEqual([]);
    const values = (name: string) => new Set(output.records('events').map((data) => data[name] ?? null));
    expect(values(withHash('Color'))).toEqual(new Set([null, 'upper']));
    expect(values('color')).toEqual(new Set(['lower']));
    expect(values('Color')).toEqual(new Set([null]));
    expect(values('ära')).toEqual(new Set(['small']));
    expect(values(withHash('ÄRA'))).toEqual(new Set(['umlaut']));
    expect(values(withHash('_KEY'))).toEqual(new Set(['theirs']));
    expect(values(withHash('DF_EVENT_NAME'))).toEqual(new Set(['theirs']));
    // The export calls the column `event_name`, the catalog never does.
    expect(values('df_event_name')).toContain('df_login');
  });

  it('leave cursor and key of the streams their names', async () => {
    const theirs = ['DF_SERVER_DATETIME', 'Df_Event_Log_Id'];
    fixture = await SourceFixture.start({ columns: { own: theirs.map((name) => ({ name, values: ['theirs'] })) } });
    const { streams } = (await fixture.run('discover', fixture.config())).catalog();
    for (const stream of streams) {
      const names = Object.keys(stream.json_schema.properties);
      expect(names).toEqual(expect.arrayContaining(['df_server_datetime', 'df_event_log_id']));
      if (stream.name !== 'event_items') expect(names).toEqual(expect.arrayContaining(theirs.map(withHash)));
    }
    const catalog = await fixture.catalog();
    const output = await fixture.read(catalog);
    expect(readProblems(output, catalog)).toEqual([]);
    for (const data of output.records('event_logs')) {
      expect(data.df_event_log_id).not.toBe('theirs');
      expect(theirs.map((name) => data[withHash(name)])).toEqual(['theirs', 'theirs']);
    }
  });
});
