import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'csv-parse/sync';
import { afterAll, describe, expect, it } from 'vitest';
import { Scanner } from '../../../src/cells/columns/scanner.ts';
import { blocksOf, RecordWriter } from '../../../src/targets/records/record-writer.ts';
import fc from '../../support/property.ts';
import { scanIn } from '../../support/scan.ts';
import { EMITTED_AT, RecordFixture, streamOf, workerEntry } from '../../support/targets/records.ts';

const fixture = new RecordFixture();
afterAll(() => fixture.close());

const cell = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('', 'null', 'TRUE', '1', '1.5', '007', '[1,2]', '2026-01-02', 'a"b', 'x,y') },
  fc.string({ unit: fc.constantFrom('a', '"', ',', '\n', '\\', '한', '\u0001', '#', '2', ' '), maxLength: 12 }),
);
const quoted = (text: string) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
const table = fc.record({
  ids: fc.array(fc.constantFrom('a', 'b', 'a#2', 'c:1', ''), { minLength: 1, maxLength: 30 }),
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
        const { text, lines, records } = await fixture.write(csv, streams);
        const found = lines.map(({ record: { data } }) => [data['t,1'] ?? '', data.t2 ?? '']);
        expect(found).toEqual(rows.map(([, a, b]) => [a, b]));
        const keys = lines.map(({ record: { data } }) => data._key);
        expect(new Set(keys).size).toBe(rows.length);
        expect(keys.every((key) => typeof key === 'string' && key !== '')).toBe(true);
        expect(records.get('events')).toBe(rows.length);
        expect(text.split('\n').length - 1).toBe(rows.length);
      }),
      { numRuns: 60 },
    );
  });

  it('are the same for any number of workers and any split of the file', async () => {
    const rows = Array.from(
      { length: 30_000 },
      (_, i) => `e${i % 20_000}:${i % 7},e${i % 9000},${i},"a ""b""\n${'x'.repeat(i % 90)}",p${i % 3}`,
    );
    const csv = `df_event_detail_log_id,df_event_log_id,n,memo,df_items_x\n${rows.join('\n')}\n`;
    const streams = [
      streamOf('events', { _key: 'string', n: 'long', memo: 'string' }),
      streamOf('event_logs', { df_event_log_id: 'string', n: 'long' }),
      streamOf('event_items', { _key: 'string', x: 'string', item_position: 'long' }),
    ];
    const alone = await fixture.write(csv, streams);
    const entry = await workerEntry(fixture.dir);
    const together = await fixture.write(csv, streams, { entry, workers: 3, bytes: 1e9 });
    expect(together.text).toBe(alone.text);
    expect(together.records).toEqual(alone.records);
    expect(alone.data('event_logs')).toHaveLength(9000);
    expect(new Set(alone.data('events').map((data) => data._key)).size).toBe(30_000);
  });
});

describe('workers that live as long as a run', () => {
  it('write consecutive windows with different headers and streams', async () => {
    const entry = await workerEntry(fixture.dir);
    const clock = { now: () => EMITTED_AT, sleep: async () => {}, after: () => () => {} };
    const writer = new RecordWriter({ timezone: undefined, clock, threads: { entry, workers: 2 } });
    try {
      for (let window = 0; window < 4; window++) {
        const columns = Array.from({ length: window + 1 }, (_, i) => `c${i}`);
        const rows = Array.from({ length: 3_000 }, (_, i) => `e${i},${columns.map((c) => `${c}-${window}-${i}`)}`);
        const csv = `df_event_detail_log_id,${columns}\n${rows.join('\n')}\n`;
        const texts = Object.fromEntries(columns.map((c) => [c, 'string' as const]));
        const streams = [streamOf('events', { _key: 'string', ...texts })];
        const alone = await fixture.write(csv, streams);
        const pooled = await fixture.write(csv, streams, { writer, bytes: 1e9 });
        expect(pooled.text).toBe(alone.text);
        expect(pooled.lines).toHaveLength(3_000);
      }
    } finally {
      await writer.close();
    }
  });
});

describe('a file split into parts', () => {
  it('is split at ends of rows that the scan recorded, in any chunks', async () => {
    const rows = Array.from({ length: 20_000 }, (_, i) => `e${i},"line\n${'y'.repeat(i % 70)}, ""q"""`);
    const csv = Buffer.from(`df_event_detail_log_id,memo\r\n${rows.join('\r\n')}`);
    const cuts = Array.from({ length: 300 }, (_, i) => (i + 1) * 1_001);
    const [whole, cut] = [[], cuts].map((at) => scanIn(new Scanner({ requireSystem: false }), csv, at));
    const { result, written } = whole;
    expect(result.rowEnds.length).toBeGreaterThan(2);
    expect(cut.result.rowEnds).toEqual(result.rowEnds);
    const path = join(fixture.dir, 'ends.csv');
    await writeFile(path, written);
    let at = 0;
    let found = 0;
    for (const { from, to } of blocksOf({ path, rowEnds: result.rowEnds }, 0)) {
      expect(from).toBe(at);
      found += (parse(written.subarray(from, to)) as string[][]).length;
      at = to;
    }
    // The first block begins with the header.
    expect([at, found]).toEqual([written.length, 20_001]);
  });
});
