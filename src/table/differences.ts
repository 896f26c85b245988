import type { Day } from '../base/days.ts';
import { plainCount } from '../base/quantities.ts';
import type { TableState } from './place-state.ts';
import { countStoredRows, type Receipts } from './receipts.ts';

export interface Difference {
  readonly check: 'files' | 'rows' | 'keys' | 'columns';
  /** Sentence for a person; names files, days and columns, never a key. */
  readonly message: string;
}

export const difference = (check: Difference['check'], message: string): Difference => ({ check, message });

/**
 * Checks that the rows of each day, as counted, are those of its receipt. A day without rows is no difference: somebody
 * removed it (`removedDays`).
 */
export function checkRows(receipts: Receipts, counted: ReadonlyMap<Day, number>): Difference[] {
  return [...counted].flatMap(([day, actual]) => {
    const expected = receipts.get(day)?.rows_stored;
    if (actual === expected) return [];
    const message =
      expected === undefined
        ? `${day} has ${plainCount(actual, 'row')} and no receipt`
        : `${day} should have ${plainCount(expected, 'row')}, and has ${actual}`;
    return [difference('rows', message)];
  });
}

/** Faults of the keys of a place. */
export interface KeyFaults {
  /** Rows without a key. */
  readonly absent: number;
  /** Keys that a day has more than once. */
  readonly repeated: number;
  /** Keys that occur under two days. */
  readonly shared: number;
}

export function checkKeys({ absent, repeated }: KeyFaults): Difference[] {
  const differences = [];
  if (absent > 0) differences.push(difference('keys', `${plainCount(absent, 'row has', 'rows have')} no _key`));
  if (repeated > 0) {
    differences.push(difference('keys', `${plainCount(repeated, 'key occurs', 'keys occur')} more than once in a day`));
  }
  return differences;
}

/** Checks that the table of profiles has the rows of its receipt, each with a key of its own. */
export function checkProfiles(
  { receipts }: Pick<TableState, 'receipts'>,
  { rows, keys }: { readonly rows: number; readonly keys: number },
): Difference[] {
  const expected = countStoredRows(receipts.values());
  const differences = [];
  if (rows !== expected) {
    differences.push(difference('rows', `user_profiles should have ${plainCount(expected, 'row')}, and has ${rows}`));
  }
  if (keys !== rows) {
    differences.push(
      difference('keys', `user_profiles has ${plainCount(rows - keys, 'row')} without a key of its own`),
    );
  }
  return differences;
}
