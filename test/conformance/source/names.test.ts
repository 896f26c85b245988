import { createHash } from 'node:crypto';
import { expect, it, onTestFinished } from 'vitest';
import { configured } from '../../support/airbyte/connector.ts';
import { readProblems } from '../../support/airbyte/message-rules.ts';
import { SourceFixture } from '../../support/airbyte/source.ts';

const withHash = (name: string): string => `${name}_${createHash('sha256').update(name).digest('hex').slice(0, 6)}`;

/** Those whose names are cursor or key of a stream but for their case. */
const THEIRS = ['DF_SERVER_DATETIME', 'Df_Event_Log_Id', '_KEY', 'DF_EVENT_NAME'];

it('columns whose names differ only in case are told apart by a hash, in the catalog and on every day', async () => {
  const own = [
    { name: 'Color', values: ['upper'], days: ['2026-01-18', '2026-01-19'] },
    { name: 'color', values: ['lower'] },
    ...THEIRS.map((name) => ({ name, values: ['theirs'] })),
  ];
  const fixture = await SourceFixture.start({ columns: { own } });
  onTestFinished(() => fixture.close());
  const { streams } = (await fixture.run('discover', fixture.config())).catalog();
  const { properties } = streams[0].json_schema;
  expect(properties[withHash('Color')]).toMatchObject({ description: expect.stringContaining('"Color"') });
  expect(properties.color).not.toHaveProperty('description');
  for (const { json_schema } of streams.slice(0, 2))
    expect(json_schema.properties).toMatchObject({ df_server_datetime: {}, df_event_log_id: {} });

  const catalog = configured(streams);
  const output = await fixture.read(catalog);
  expect(readProblems(output, catalog)).toEqual([]);
  const values = (name: string) => new Set(output.records('events').map((data) => data[name] ?? null));
  expect(values(withHash('Color'))).toEqual(new Set([null, 'upper']));
  expect(values('color')).toEqual(new Set(['lower']));
  for (const name of THEIRS) expect(values(withHash(name))).toEqual(new Set(['theirs']));
  // The export calls the column `event_name`, the catalog never does.
  expect(values('df_event_name')).toContain('df_login');
  for (const data of output.records('event_logs')) expect(data.df_event_log_id).not.toBe('theirs');
});
