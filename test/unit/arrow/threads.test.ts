import { existsSync, readFileSync, truncateSync } from 'node:fs';
import { RecordBatchReader } from 'apache-arrow';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Window } from '../../../src/extract/window.ts';
import type { ColumnType } from '../../../src/types/type.ts';
import { ArrowBench, arrowWorker, streamedColumns } from '../../support/targets/arrow.ts';
import { type Cells, csvOf } from '../../support/targets/duckdb.ts';

let bench: ArrowBench;
beforeEach(() => {
  bench = new ArrowBench();
});
afterEach(() => bench.close());

/** As if it were so large that threads are worth it. */
const large = (window: Window): Window => ({ ...window, receipt: { ...window.receipt, bytes: 10 ** 9 } });

function rowsOf(day: number, count: number, idOf: (i: number) => string): Cells[] {
  return Array.from({ length: count }, (_, i) => ({
    id: idOf(i),
    n: i % 7 === 0 ? '' : `${i * day}`,
    late: day > 1 ? `[${i},null]` : '',
    memo: `${'x'.repeat(i % 70)} "안녕", ${i}`,
    df_event_name: `e${(i * day) % 5}`,
    mixed: day === 1 ? `${i}` : 'TRUE',
  }));
}

/** Days of all kinds: rows without an id, repeated ids, one that shares a day with the next. */
function days(): Window[] {
  const plain = bench.window('2026-01-01', csvOf(rowsOf(1, 3_000, (i) => `a${i}`)));
  const repeated = bench.window('2026-01-02', csvOf(rowsOf(2, 3_000, (i) => (i % 50 === 0 ? '' : `b${i % 1_300}`))));
  const shared = bench.window('2026-01-03', csvOf(rowsOf(3, 3_000, (i) => `c${i}`)));
  const again = bench.window('2026-01-04', csvOf(rowsOf(3, 3_000, (i) => `c${i + 1_500}`)));
  return [plain, repeated, { ...shared, receipt: { ...shared.receipt, to: '2026-01-04' } }, again].map(large);
}

describe('threads that build columns', () => {
  it('give the stream that the thread which sends it would have built [R421]', async () => {
    const windows = days();
    const alone = await bench.write(windows);
    const expected = streamedColumns(bench.out);
    const threads = { entry: await arrowWorker(bench.dir), workers: 2 };
    const together = await bench.write(windows, { threads });
    expect(together).toEqual(alone);
    expect(alone.rows).toBe(3_000 * 4 - 1_500);
    const found = streamedColumns(bench.out);
    expect(found.map(({ name }) => name)).toEqual(expected.map(({ name }) => name));
    for (const [i, { name, values }] of found.entries()) {
      expect(values.length, name).toBe(alone.rows);
      expect(
        values.filter((value, row) => String(value) !== String(expected[i]?.values[row])),
        name,
      ).toEqual([]);
    }
  });

  it('end the run when one of them fails, and leave no file [R421]', async () => {
    const [window] = days();
    if (window === undefined) throw new Error('no window');
    truncateSync(window.files[0]?.path ?? '', 100_000);
    const threads = { entry: await arrowWorker(bench.dir), workers: 2 };
    await expect(bench.write([window], { threads })).rejects.toThrow();
    expect(existsSync(bench.out)).toBe(false);
  });
});

describe('a record batch', () => {
  it('stays small where the schema has very many columns [R422]', async () => {
    const columns = 1_500;
    const pinned = new Map(Array.from({ length: columns }, (_, i) => [`n${i}`, 'long'] as [string, ColumnType]));
    const rows = 4_000;
    const csv = csvOf(Array.from({ length: rows }, (_, i) => ({ id: `r${i}`, [`n${i % 3}`]: `${i}` })));
    expect(await bench.write([bench.window('2026-01-01', csv)], { pinned })).toMatchObject({ rows });
    const sizes = [...RecordBatchReader.from(readFileSync(bench.out))].map((batch) => batch.numRows);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(rows);
    expect(Math.max(...sizes) * columns * 8).toBeLessThan(16 * 1024 * 1024);
  });
});

describe('a column that a stream has no place for', () => {
  it('is rescued, whatever column_types say of it [R423]', async () => {
    const pinned = new Map([['n', 'long' as const]]);
    const columnTypes = new Map([['x', 'boolean' as const]]);
    const csv = csvOf([
      { id: 'a', n: '1', x: 'TRUE' },
      { id: 'b', x: '' },
    ]);
    const result = await bench.write([bench.window('2026-01-01', csv)], { pinned, columnTypes });
    expect(Object.fromEntries(result.rescued)).toEqual({ x: 1 });
    const held = streamedColumns(bench.out);
    expect(held.find(({ name }) => name === 'n')?.values).toEqual(['1', null]);
    expect(held.find(({ name }) => name === '_rescued')?.values).toEqual(['{"x":"TRUE"}', null]);
  });
});
