import { parse } from 'csv-parse/sync';
import { afterAll, describe, expect, it } from 'vitest';
import fc from '../../support/property.ts';
import { RecordFixture, streamOf } from '../../support/targets/records.ts';

const fixture = new RecordFixture();
afterAll(() => fixture.close());

const cell = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('', 'null', 'TRUE', '1', '1.5', '007', '[1,2]', '2026-01-02', 'a"b', 'x,y') },
  fc.string({ unit: fc.constantFrom('a', '"', ',', '\n', '\\', '한', '\u0001', '#', '2', ' '), maxLength: 12 }),
);
const quoted = (text: string) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
const table = fc.record({
  ids: fc.array(fc.constantFrom('a', 'b', 'c:1', ''), { minLength: 1, maxLength: 30 }),
  cells: fc.array(fc.tuple(cell, cell), { minLength: 30, maxLength: 30 }),
});
const csvOf = ({ ids, cells }: { ids: string[]; cells: [string, string][] }) =>
  `df_event_detail_log_id,"t,1",t2\n${ids.map((id, i) => [id, ...cells[i]].map(quoted).join(',')).join('\n')}\n`;

describe('records', () => {
  it('hold every text of any table, under unique keys', async () => {
    const streams = [streamOf('events', { _key: 'string', 't,1': 'string', t2: 'string' })];
    await fc.assert(
      fc.asyncProperty(table, async (given) => {
        const csv = csvOf(given);
        const rows: string[][] = parse(csv, { from_line: 1 }).slice(1);
        const { text, lines, streams: written } = await fixture.write(csv, streams);
        const found = lines.map(({ record: { data } }) => [data['t,1'] ?? '', data.t2 ?? '']);
        expect(found).toEqual(rows.map(([, a, b]) => [a, b]));
        const keys = lines.map(({ record: { data } }) => data._key);
        expect(new Set(keys).size).toBe(rows.length);
        expect(keys.every((key) => typeof key === 'string' && key !== '')).toBe(true);
        expect(written[0].recordCount).toBe(rows.length);
        expect(text.split('\n').length - 1).toBe(rows.length);
      }),
      { numRuns: 60 },
    );
  });

  it('of a file of many pieces are whole, one for each row, event and item', async () => {
    const memo = (i: number) => `a "b"\n${'x'.repeat(i % 90)}`;
    const rows = Array.from(
      { length: 30_000 },
      (_, i) => `e${i % 20_000}:${i % 7},e${i % 9000},${i},${quoted(memo(i))},p${i % 3}`,
    );
    const csv = `df_event_detail_log_id,df_event_log_id,n,memo,df_items_x\n${rows.join('\n')}\n`;
    const { data } = await fixture.write(csv, [
      streamOf('events', { _key: 'string', n: 'long', memo: 'string' }),
      streamOf('event_logs', { df_event_log_id: 'string', n: 'long' }),
      streamOf('event_items', { _key: 'string', x: 'string', item_position: 'long' }),
    ]);
    expect(data('events').map(({ n, memo }) => [n, memo])).toEqual(rows.map((_, i) => [i, memo(i)]));
    expect(new Set(data('events').map(({ _key }) => _key)).size).toBe(rows.length);
    expect(data('event_logs')).toHaveLength(9_000);
    expect(data('event_items').map(({ x }) => x)).toEqual(rows.map((_, i) => `p${i % 3}`));
  });
});
