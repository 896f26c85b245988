import { type Day, daysOf } from '../base/days.ts';
import { plainCount } from '../base/quantities.ts';
import { Coverage } from '../extract/plan/days.ts';
import { nameDays } from '../extract/plan/gaps.ts';
import { parseState } from '../extract/state.ts';
import type { StoredReceipt } from './receipts.ts';

export interface Difference {
  readonly check: 'files' | 'rows' | 'keys' | 'days' | 'columns';
  /** Sentence for a person; names files, windows, days and columns, never a key. */
  readonly message: string;
}

export const difference = (check: Difference['check'], message: string): Difference => ({ check, message });

/** Checks that the rows of each window, counted in the rows themselves, are those of its receipt. */
export function checkLiveRows(
  receipts: readonly Pick<StoredReceipt, 'window' | 'from' | 'to' | 'rows' | 'rows_live'>[],
  counted: ReadonlyMap<number, number>,
): Difference[] {
  const known = new Set(receipts.map(({ window }) => window));
  const unknownWindows = [...counted].filter(([windowNumber]) => !known.has(windowNumber)).sort(([a], [b]) => a - b);
  return [
    ...receipts.flatMap(({ window: windowNumber, from, to, rows, rows_live: expected }) => {
      const actual = counted.get(windowNumber) ?? 0;
      if (actual === expected && expected <= rows) return [];
      const name = `window ${windowNumber} (${from} to ${to})`;
      const message =
        actual > rows
          ? `has ${plainCount(actual, 'row')}, and its export had ${rows}: another program added rows to it`
          : `should have ${plainCount(expected, 'row')} of its ${rows}, and has ${actual}`;
      return [difference('rows', `${name} ${message}`)];
    }),
    ...unknownWindows.map(([windowNumber, rows]) =>
      difference(
        'rows',
        `${plainCount(rows, 'row belongs', 'rows belong')} to window ${windowNumber}, which has no receipt`,
      ),
    ),
  ];
}

/**
 * The warning that rows of receipts were removed, but not by this program, with what brings them back; undefined if
 * none were. `counted`: rows by window.
 */
export function removedRowsWarning(
  receipts: readonly Pick<StoredReceipt, 'window' | 'from' | 'to' | 'rows_live'>[],
  counted: ReadonlyMap<number, number>,
): string | undefined {
  const rowsGone = (receipt: Pick<StoredReceipt, 'window' | 'rows_live'>) =>
    receipt.rows_live - (counted.get(receipt.window) ?? 0);
  const lessened = receipts.filter((receipt) => rowsGone(receipt) > 0);
  if (lessened.length === 0) return undefined;
  const rows = lessened.reduce((sum, receipt) => sum + rowsGone(receipt), 0);
  const days = [...new Set(lessened.flatMap(({ from, to }) => daysOf(from, to)))].sort();
  return (
    `another program removed ${plainCount(rows, 'row')} of ${nameDays(days)}, without which this run goes on. To load what ` +
    `the service still has of them: sync with --from ${days[0]} --to ${days[days.length - 1]}.`
  );
}

/** Checks that every day from the first one wanted up to the cursor is covered by a receipt or is a recorded gap. */
export function checkDays(stored: unknown, covered: ReadonlySet<Day>): Difference[] {
  const state = parseState(stored);
  if (state === undefined) return [];
  const start = state.start_date ?? [...covered].sort()[0] ?? state.from_date;
  const coverage = Coverage.of(state, covered);
  const missing = daysOf(start, state.from_date).filter((day) => day < state.from_date && !coverage.has(day));
  if (missing.length === 0) return [];
  return [difference('days', `the cursor is at ${state.from_date}, but no receipt covers ${nameDays(missing)}`)];
}

/** Reports rows without a key, and keys that are not unique. */
export function checkKeys({ absent, repeated }: { readonly absent: number; readonly repeated: number }): Difference[] {
  const found = [];
  if (absent > 0) found.push(difference('keys', `${plainCount(absent, 'row has', 'rows have')} no _key`));
  if (repeated > 0) found.push(difference('keys', `${repeated} keys occur more than once`));
  return found;
}
