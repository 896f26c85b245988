import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { addDays } from '../../../src/base/days.ts';
import { type Cells, csvOf } from '../../support/targets/csv.ts';
import { DuckDbFixture } from '../../support/targets/duckdb.ts';

let fixture: DuckDbFixture;
beforeEach(() => {
  fixture = new DuckDbFixture();
});
afterEach(() => fixture.close());

const dayOf = (n: number) => addDays('2026-01-01', n - 1);
/** A row of the id `a` on a day, at an hour. */
const row = (n: number, hour: number): Cells => {
  const time = `${dayOf(n)} ${String(hour).padStart(2, '0')}:00:00.000`;
  return { id: 'a', df_server_datetime: time, df_correction_datetime: time };
};
interface Asked {
  readonly first: number;
  readonly last: number;
  readonly row: Cells;
}
const windowOf = ({ first, last, row: cells }: Asked, isExclusive: boolean) => {
  const window = fixture.window(dayOf(first), csvOf([cells]), undefined, last - first + 1);
  return { ...window, state: { ...window.state, ...(isExclusive && { ranges_inclusive: false }) } };
};

/** How many rows of the id are there after one window and another. */
async function rowsAfter(before: Asked, after: Asked, isExclusive: boolean): Promise<number> {
  await fixture.load([windowOf(before, isExclusive), windowOf(after, isExclusive)]);
  return Number((await fixture.query('SELECT count(*) AS n FROM events'))[0].n);
}

/** On another date and at another time: the same row only where all days of its window are asked for again. */
describe('a row whose date and time have changed is recognised', () => {
  it.each([
    ['in a window that is read again', 2, 4, 2, 4, 1],
    ['in one that has its first day in common with the longer one', 2, 3, 2, 5, 1],
    ['in one that has its last day in common with the longer one', 4, 5, 2, 5, 1],
    ['of one day in a longer one', 3, 3, 2, 5, 1],
    ['not in one that begins before', 1, 3, 2, 5, 2],
    ['not in one that ends later', 3, 6, 2, 5, 2],
  ])('%s', async (_, first, last, askedFirst, askedLast, rows) => {
    const before = { first, last, row: row(first, 1) };
    const after = { first: askedFirst, last: askedLast, row: row(askedLast, 2) };
    expect(await rowsAfter(before, after, false)).toBe(rows);
  });

  it.each([
    ['in a window of one day that is read again', 3, 3, 3, 3, 1],
    ['in one that ends on the same day, which is left out of both', 3, 6, 2, 6, 1],
    ['not in one whose last day that counts is left out of the other', 3, 6, 2, 5, 2],
  ])('%s, when the last day is known to be excluded', async (_, first, last, askedFirst, askedLast, rows) => {
    const after = { first: askedFirst, last: askedLast, row: row(askedFirst, 2) };
    expect(await rowsAfter({ first, last, row: row(last - 1, 1) }, after, true)).toBe(rows);
  });
});

/** On the same date at another time: the same row where the windows share a day. */
describe('a row whose time has changed is recognised', () => {
  const afterBoth = (first: number, last: number, askedFirst: number, askedLast: number, isExclusive: boolean) =>
    rowsAfter({ first, last, row: row(4, 1) }, { first: askedFirst, last: askedLast, row: row(4, 2) }, isExclusive);

  it.each([
    ['where the first day of its window is the last one of the other', 4, 6, 2, 4, 1],
    ['where the last day of its window is the first one of the other', 2, 4, 4, 6, 1],
    ['not where its window begins after the other', 5, 6, 2, 4, 2],
    ['not where its window ends before the other', 2, 3, 4, 6, 2],
  ])('%s', async (_, first, last, askedFirst, askedLast, rows) => {
    expect(await afterBoth(first, last, askedFirst, askedLast, false)).toBe(rows);
  });

  it.each([
    ['not where the day in common is the last one of the other, which is left out', 4, 6, 2, 4, 2],
    ['not where the day in common is the last one of its window, which is left out', 2, 4, 4, 6, 2],
    ['where a day before it is in common, too', 2, 5, 4, 6, 1],
  ])('%s', async (_, first, last, askedFirst, askedLast, rows) => {
    expect(await afterBoth(first, last, askedFirst, askedLast, true)).toBe(rows);
  });
});
