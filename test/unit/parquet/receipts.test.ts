import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Window } from '../../../src/extract/window.ts';
import { csvOf, on } from '../../support/targets/duckdb.ts';
import { ParquetBench } from '../../support/targets/parquet.ts';

let bench: ParquetBench;
beforeEach(() => {
  bench = new ParquetBench();
});
afterEach(() => bench.close());

const [ONE, TWO, THREE] = ['2026-01-01', '2026-01-02', '2026-01-03'];

interface Asked {
  readonly from?: string;
  readonly to?: string;
  readonly first?: string;
  /** null: no clock has ended the last day yet. */
  readonly last?: string | null;
  readonly ids?: readonly string[];
}

/** A window over days 1 to 2 that covers both, unless it is told otherwise. */
function windowOf({ from = ONE, to = TWO, first = from, last = to, ids = ['a'] }: Asked): Window {
  const window = bench.window(from, csvOf(ids.map((id) => ({ id, ...on(ONE) }))));
  return { ...window, receipt: { ...window.receipt, from, to, covers_from: first, covers_to: last } };
}
const kept = async (...asked: Asked[]) => {
  await bench.store(asked.map(windowOf));
  return bench.manifest.receipts.map(({ window, rows_live }) => [window, rows_live]);
};

describe('the receipt of a window without rows of its own', () => {
  it.each<[string, Asked, Asked]>([
    ['covered the same', {}, {}],
    ['covered a part of it at the end', { first: TWO }, {}],
    ['covered a part of it at the beginning', { last: ONE }, {}],
    ['covered nothing yet', { last: null }, { last: null }],
    ['covered nothing yet, the later one did', { last: null }, {}],
  ])('goes where a later one asked for the same days: it %s', async (_, earlier, later) => {
    expect(await kept(earlier, later)).toEqual([[2, 1]]);
  });

  it.each<[string, Asked, Asked]>([
    ['the later one asked from another day on', {}, { to: TWO, from: TWO }],
    ['the later one asked to another day', {}, { to: THREE }],
    ['it covered a day before', {}, { first: TWO }],
    ['it covered a day after', {}, { last: ONE }],
    ['the later one covers nothing yet', {}, { last: null }],
  ])('stays where it says more: %s', async (_, earlier, later) => {
    expect(await kept(earlier, later)).toEqual([
      [1, 0],
      [2, 1],
    ]);
  });

  it('stays as long as it has a row, and no later one goes for an earlier one', async () => {
    expect(await kept({ ids: ['a', 'b'] }, { ids: ['b'] })).toEqual([
      [1, 1],
      [2, 1],
    ]);
    expect(await kept({ ids: [] })).toEqual([
      [1, 1],
      [2, 1],
      [3, 0],
    ]);
    // The number of a window is never given again.
    expect(await kept({ ids: ['c'] })).toEqual([
      [1, 1],
      [2, 1],
      [4, 1],
    ]);
  });

  it('tells the rows of the last window that asked for exactly these days', async () => {
    await kept({ ids: ['a', 'b'] }, { ids: ['b'] }, { from: TWO, ids: ['c', 'd', 'e'] });
    const sink = await bench.openFolder();
    const { rowsOf } = await sink.readPriorLoads();
    await sink.close();
    expect([rowsOf?.(ONE, TWO), rowsOf?.(TWO, TWO), rowsOf?.(ONE, ONE)]).toEqual([1, 3, undefined]);
  });
});
