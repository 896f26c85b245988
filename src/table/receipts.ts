import type { Day } from '../base/days.ts';
import { compareUtf8 } from '../base/text.ts';
import type { Receipt } from '../extract/checked-day.ts';

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

/** The receipts by day. Of several of one day the last counts. */
export const receiptsOf = (receipts: Iterable<StoredReceipt>): Receipts =>
  new Map([...receipts].sort((a, b) => compareUtf8(a.day, b.day)).map((receipt) => [receipt.day, receipt]));

/** The receipts with new ones, each in place of that of its day. */
export const withReceipts = (receipts: Receipts, newReceipts: readonly StoredReceipt[]): Receipts =>
  receiptsOf([...receipts.values(), ...newReceipts]);

/** The receipts of the same days after a change. */
export const mapReceipts = (receipts: Receipts, change: (receipt: StoredReceipt) => StoredReceipt): Receipts =>
  new Map([...receipts].map(([day, receipt]) => [day, change(receipt)]));

/** Number of the rows that a place holds by these receipts. */
export const countStoredRows = (receipts: Iterable<StoredReceipt>): number =>
  [...receipts].reduce((sum, { rows_stored }) => sum + rows_stored, 0);

/** Days that should have rows and have none: somebody removed them. `daysWithRows`: the days that have some. */
export function findRemovedDays(receipts: Receipts, daysWithRows: { has(day: Day): boolean }): Day[] {
  return [...receipts.values()]
    .filter(({ day, rows_stored }) => rows_stored > 0 && !daysWithRows.has(day))
    .map(({ day }) => day);
}

/** What `prune` would remove: the days before `firstKeptDay` that still have rows, and the number of these. */
export function prunableBefore(receipts: Receipts, firstKeptDay: Day): { readonly days: Day[]; readonly rows: number } {
  const prunable = [...receipts.values()].filter(({ day, rows_stored }) => day < firstKeptDay && rows_stored > 0);
  return { days: prunable.map(({ day }) => day), rows: countStoredRows(prunable) };
}

/** The `changed_at` of a commit at `now` (ms): later than all of these receipts, also if the clock was set back. */
export function nextChangedAt(receipts: Receipts, now: number): string {
  const latestChange = Math.max(0, ...[...receipts.values()].map(({ changed_at }) => Date.parse(changed_at)));
  return new Date(Math.max(now, latestChange + 1)).toISOString();
}

/** The receipts once all rows of some days are gone, at `now` (ms). */
export function withPrunedDays(receipts: Receipts, days: readonly Day[], now: number): Receipts {
  const changed_at = nextChangedAt(receipts, now);
  return mapReceipts(receipts, (receipt) =>
    days.includes(receipt.day) ? { ...receipt, rows_stored: 0, changed_at, pruned: true } : receipt,
  );
}
