import { expect, it } from 'vitest';
import fc from '../../support/property.ts';
import { Place } from '../../support/targets/place.ts';
import { RecordFixture, streamOf } from '../../support/targets/records.ts';

const fixture = new RecordFixture();

const HEADER = 'df_event_detail_log_id,df_event_log_id,df_items_df_price,df_items_tag,event_name,n,note';
const row = fc.record({
  log: fc.constantFrom('', 'a', 'b', 'c', 'd'),
  suffix: fc.constantFrom('', ':0', ':1', ':2', ':10', ':x'),
  id: fc.boolean(),
  price: fc.constantFrom('', '1.5', '7', 'x'),
  tag: fc.constantFrom('', 'null', 't'),
  n: fc.constantFrom('', '1', 'null', '12'),
  note: fc.constantFrom('', '한', 'say ""no""', 'a,b'),
});
const csvOf = (
  rows: readonly { log: string; suffix: string; id: boolean; price: string; tag: string; n: string; note: string }[],
) =>
  [
    HEADER,
    ...rows.map(
      ({ log, suffix, id, price, tag, n, note }) =>
        `${id ? `${log}${suffix}` : ''},${log},${price},${tag},login,${n},"${note}"`,
    ),
    // Every column has a type: one that is never filled has none in a table. A position has at most 18 digits.
    'z:1234567890123456789,z,1,t,login,2,note',
    'z:0000000000000000000000005,z,1,t,login,2,note',
    '',
  ].join('\n');

const STREAMS = [
  streamOf('events', { _key: 'string', n: 'long', note: 'string', df_items_df_price: 'double' }),
  streamOf('event_logs', { df_event_log_id: 'string', n: 'long', note: 'string' }),
  streamOf('event_items', { _key: 'string', df_price: 'double', tag: 'string', item_position: 'long' }),
];
const sorted = (rows: readonly (readonly unknown[])[]) => rows.map((one) => JSON.stringify(one)).sort();
/** 64-bit integers come back as text. */
const value = (one: unknown) => (one === null || one === undefined ? null : String(one));

it('records and tables have the same keys, events, items and values', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 12 }), async (rows) => {
      const csv = csvOf(rows);
      const written = await fixture.write(csv, STREAMS);
      const duck = new Place('duckdb');
      await duck.load([[duck.ofCsv('2026-01-02', [csv])]]);
      const table = async (sql: string) => (await duck.read(sql)).map((one) => Object.values(one).map(value));
      const fields = (stream: 'events' | 'event_items', ...names: string[]) =>
        written.data(stream).map((data) => names.map((name) => value(data[name])));
      const price = 'df_items_df_price';
      expect(sorted(fields('events', '_key', 'n', 'note', price))).toEqual(
        sorted(await table(`SELECT _key, n, note, ${price} FROM events`)),
      );
      expect(sorted(fields('event_items', '_key', 'df_price', 'tag', 'item_position'))).toEqual(
        sorted(await table('SELECT _key, df_price, tag, item_position FROM event_items')),
      );
      const named = written
        .data('event_logs')
        .flatMap(({ df_event_log_id: id }) => (id === 'z' || rows.some(({ log }) => log === id) ? [id] : []));
      expect(sorted(named.map((id) => [id]))).toEqual(
        sorted(await table('SELECT df_event_log_id FROM event_logs WHERE df_event_log_id IS NOT NULL')),
      );
      const [[count]] = await table('SELECT count(*) FROM event_logs');
      expect(String(written.streams[1].recordCount)).toBe(count);
    }),
    { numRuns: 6 },
  );
});
