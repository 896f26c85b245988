import type { Day } from '../base/days.ts';
import type { CheckedDay, Receipt } from '../extract/checked-day.ts';

/** The receipt of the last download of a day, as a place stores it beside the rows. */
export interface StoredReceipt extends Receipt {
  /** Rows of the day that are now in the place: without suppressed rows, and without those of a neighbouring day. */
  readonly rows_stored: number;
  /**
   * Instant (ISO, UTC) of the last commit that added, replaced, widened or removed rows of the day. It is later than
   * that of every commit before: whoever has read the place up to an instant finds the rest by it.
   */
  readonly changed_at: string;
  /** True if the rows of the day were removed since, by `prune` or by a user. */
  readonly pruned?: true;
}

/** The receipts of a place by day, in the order of days. */
export type Receipts = ReadonlyMap<Day, StoredReceipt>;

/** Of several receipts of a day the last one counts. */
export const receiptsOf = (receipts: Iterable<StoredReceipt>): Receipts =>
  new Map([...new Map([...receipts].map((receipt) => [receipt.day, receipt]))].sort(([a], [b]) => (a < b ? -1 : 1)));

/** Number of the rows that a place holds by these receipts. */
export const countStoredRows = (receipts: Iterable<StoredReceipt>): number =>
  [...receipts].reduce((sum, { rows_stored }) => sum + rows_stored, 0);

/** Days that should have rows and have none: somebody removed them. `daysWithRows`: the days that have some. */
export function findRemovedDays(receipts: Receipts, daysWithRows: { has(day: Day): boolean }): Day[] {
  return [...receipts.values()]
    .filter(({ day, rows_stored: rows }) => rows > 0 && !daysWithRows.has(day))
    .map(({ day }) => day);
}

/** What `prune` would remove: the days before `firstKeptDay` that still have rows, and the number of these. */
export function prunableBefore(receipts: Receipts, firstKeptDay: Day): { readonly days: Day[]; readonly rows: number } {
  const prunableReceipts = [...receipts.values()].filter(
    ({ day, rows_stored: rows }) => day < firstKeptDay && rows > 0,
  );
  return { days: prunableReceipts.map(({ day }) => day), rows: countStoredRows(prunableReceipts) };
}

/** The `changed_at` of a commit at `now` (ms): later than all of these receipts, also if the clock was set back. */
export function nextChangedAt(receipts: Receipts, now: number): string {
  const latestChange = Math.max(0, ...[...receipts.values()].map(({ changed_at }) => Date.parse(changed_at)));
  return new Date(Math.max(now, latestChange + 1)).toISOString();
}

/** Receipts of the same days in the same order, each as `change` makes it. */
const mapReceipts = (receipts: Receipts, change: (receipt: StoredReceipt) => StoredReceipt): Receipts =>
  new Map([...receipts].map(([day, receipt]) => [day, change(receipt)]));

/** The receipts once downloads came whose rows are there. One is renewed if its `is_over` or `to_date` changed. */
export function withRenewed(receipts: Receipts, unchangedDownloads: readonly CheckedDay[]): Receipts {
  const newReceipts = new Map(unchangedDownloads.map(({ receipt }) => [receipt.day, receipt]));
  return mapReceipts(receipts, (before) => {
    const receipt = newReceipts.get(before.day) ?? before;
    if (receipt.is_over === before.is_over && receipt.to_date === before.to_date) return before;
    return { ...receipt, rows_stored: before.rows_stored, changed_at: before.changed_at };
  });
}

/** The receipts after the rows of some days are gone. */
export const withPruned = (receipts: Receipts, days: readonly Day[], changedAt: string): Receipts =>
  mapReceipts(receipts, (receipt) =>
    days.includes(receipt.day) ? { ...receipt, rows_stored: 0, changed_at: changedAt, pruned: true } : receipt,
  );

/** The receipts after a commit has changed the rows of some days, but not their number. */
export const withChangedAt = (receipts: Receipts, days: ReadonlySet<Day>, changedAt: string): Receipts =>
  mapReceipts(receipts, (receipt) => (days.has(receipt.day) ? { ...receipt, changed_at: changedAt } : receipt));

/** The receipts after days have other rows than before. `rowsByDay`: all rows of a day that are there now. */
export const withRows = (receipts: Receipts, rowsByDay: ReadonlyMap<Day, number>, changedAt: string): Receipts =>
  mapReceipts(receipts, (receipt) => {
    const rows_stored = rowsByDay.get(receipt.day) ?? receipt.rows_stored;
    return rows_stored === receipt.rows_stored ? receipt : { ...receipt, rows_stored, changed_at: changedAt };
  });
