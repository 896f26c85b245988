import { describe, expect, it } from 'vitest';
import type { Day } from '../../../src/base/days.ts';
import { receiptsWith, type StoredReceipt } from '../../../src/table/receipts.ts';

const [ONE, TWO, THREE] = ['2026-01-01', '2026-01-02', '2026-01-03'] as const;

interface Asked {
  readonly from?: Day;
  readonly to?: Day;
  readonly first?: Day;
  /** null: no clock has ended the last day yet. */
  readonly last?: Day | null;
}

/** The receipt of a window over days 1 to 2 that covers both, unless it is told otherwise. */
function receipt(window: number, { from = ONE, to = TWO, first = from, last = to }: Asked): StoredReceipt {
  const days = { from, to, covers_from: first, covers_to: last };
  return { ...days, window, rows: 1, rows_live: 1, id_repeats: 0 } as StoredReceipt;
}

/** The windows whose receipts stay of two, of which the later has all rows. */
const kept = (earlier: Asked, later: Asked) =>
  receiptsWith([receipt(1, earlier), receipt(2, later)], new Map([[2, 1]])).map(({ window }) => window);

describe('the receipt of a window without live rows', () => {
  it.each<[string, Asked, Asked]>([
    ['covered the same', {}, {}],
    ['covered a part of it at the end', { first: TWO }, {}],
    ['covered a part of it at the beginning', { last: ONE }, {}],
    ['covered nothing yet', { last: null }, { last: null }],
    ['covered nothing yet, from a later day on', { last: null }, { first: TWO, last: null }],
    ['covered nothing yet, the later one did', { last: null }, {}],
  ])('is removed when a later one covers the same days: it %s', (_, earlier, later) => {
    expect(kept(earlier, later)).toEqual([2]);
  });

  it.each<[string, Asked, Asked]>([
    ['the later one asked from another day on', {}, { from: TWO }],
    ['the later one asked to another day', {}, { to: THREE }],
    ['the later one asked to an earlier day', {}, { to: ONE, first: ONE, last: TWO }],
    ['it covered a day before', {}, { first: TWO }],
    ['it covered a day after', {}, { last: ONE }],
    ['the later one covers nothing yet', {}, { last: null }],
  ])('stays when it says more: %s', (_, earlier, later) => {
    expect(kept(earlier, later)).toEqual([1, 2]);
  });

  it('is not removed for an earlier one', () => {
    const receipts = receiptsWith([receipt(1, {}), receipt(2, {})], new Map([[1, 1]]));
    expect(receipts.map(({ window, rows_live: live }) => [window, live])).toEqual([
      [1, 1],
      [2, 0],
    ]);
  });
});
