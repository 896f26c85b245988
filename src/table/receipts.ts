import type { Day } from '../base/days.ts';
import type { DayDownload } from '../extract/day-download.ts';
import type { RunProgress } from '../extract/export-state.ts';
import type { Receipt } from '../extract/receipt.ts';

/** The receipt of the last download of a day, as a place stores it beside the rows. */
export interface StoredReceipt extends Receipt {
  /** Rows of the day that are now in the place: without suppressed rows, and without those of a neighbouring day. */
  readonly rows_stored: number;
  /**
   * Instant (ISO, UTC) of the last commit that added, replaced, re-typed or removed rows of the day. It is later than
   * that of every commit before: whoever has read the place up to an instant finds the rest by it.
   */
  readonly changed_at: string;
  /** True if the rows of the day were removed since, by `prune` or by a user. */
  readonly pruned?: true;
}

/** The receipts of a place by day, in the order of days. */
export type Receipts = ReadonlyMap<Day, StoredReceipt>;

export const receiptsOf = (receipts: Iterable<StoredReceipt>): Receipts =>
  new Map([...receipts].map((receipt) => [receipt.day, receipt] as const).sort(([a], [b]) => (a < b ? -1 : 1)));

/** Number of the rows that a place holds by these receipts. */
export const storedRows = (receipts: Iterable<StoredReceipt>): number =>
  [...receipts].reduce((sum, { rows_stored }) => sum + rows_stored, 0);

/** The days of a batch: those whose rows a commit writes, and those whose rows the place holds already. */
interface BatchDays {
  readonly changed: readonly DayDownload[];
  readonly unchanged: readonly DayDownload[];
}

/**
 * Splits a batch by what a place holds. Left out is a download that was requested before the stored one, unless a user
 * gave its file. A day is unchanged if it has the same bytes and filters, and its rows are there: `countRows` counts
 * them, since receipts are not believed.
 */
export async function splitBatch(
  receipts: Receipts,
  batch: readonly DayDownload[],
  { rewrites }: Pick<RunProgress, 'rewrites'>,
  countRows: (days: readonly Day[]) => Promise<ReadonlyMap<Day, number>>,
): Promise<BatchDays> {
  const current = batch.filter(({ receipt: { day, requested_at, source } }) => {
    const stored = receipts.get(day);
    return stored === undefined || source === 'file' || stored.requested_at <= requested_at;
  });
  const same = current.filter(({ receipt: { day, sha256, filters } }) => {
    const stored = receipts.get(day);
    return !rewrites && stored?.sha256 === sha256 && stored.filters === filters && stored.pruned !== true;
  });
  const counted = same.length === 0 ? new Map<Day, number>() : await countRows(same.map(({ receipt }) => receipt.day));
  const unchanged = new Set(
    same.filter(({ receipt: { day, rows, suppressed } }) => (counted.get(day) ?? 0) === rows - suppressed),
  );
  return { changed: current.filter((download) => !unchanged.has(download)), unchanged: [...unchanged] };
}

/** True if the stored snapshot of a table was requested after this one. */
export const isLater = (
  stored: { readonly receipt: Pick<Receipt, 'requested_at'> } | undefined,
  { receipt }: DayDownload,
): boolean => stored !== undefined && stored.receipt.requested_at > receipt.requested_at;

/**
 * The receipts once days were downloaded again whose rows stay: a new one only if it says something else of the day.
 */
export function withUnchanged(receipts: Receipts, unchanged: readonly DayDownload[]): Receipts {
  const renewed = unchanged.flatMap(({ receipt }) => {
    const stored = receipts.get(receipt.day);
    if (stored === undefined || (stored.is_over === receipt.is_over && stored.to_date === receipt.to_date)) return [];
    return [{ ...receipt, rows_stored: stored.rows_stored, changed_at: stored.changed_at }];
  });
  return receiptsOf([...receipts.values(), ...renewed]);
}

/** Days that should have rows and have none: somebody removed them. `stored`: has a key for each day with rows. */
export function removedDays(receipts: Receipts, stored: ReadonlyMap<Day, unknown>): Day[] {
  return [...receipts.values()]
    .filter(({ day, rows_stored: rows }) => rows > 0 && !stored.has(day))
    .map(({ day }) => day);
}

/** What `prune` removes: the days before a day that still have rows, and the number of these. */
export function prunedBefore(receipts: Receipts, before: Day): { readonly days: Day[]; readonly rows: number } {
  const pruned = [...receipts.values()].filter(({ day, rows_stored: rows }) => day < before && rows > 0);
  return { days: pruned.map(({ day }) => day), rows: storedRows(pruned) };
}

/** The `changed_at` of a commit at `now` (ms): later than all of the place, also if its clock was set back. */
export function nextChange(receipts: Receipts, now: number): string {
  const latest = Math.max(0, ...[...receipts.values()].map(({ changed_at }) => Date.parse(changed_at)));
  return new Date(Math.max(now, latest + 1)).toISOString();
}

/** The receipts after the rows of some days are gone. */
export function withPruned(receipts: Receipts, days: readonly Day[], changed_at: string): Receipts {
  const gone = new Set(days);
  return receiptsOf(
    [...receipts.values()].map((receipt) =>
      gone.has(receipt.day) ? { ...receipt, rows_stored: 0, changed_at, pruned: true as const } : receipt,
    ),
  );
}

/** The receipts after days have other rows than before. `rows`: all rows of a day that are there now, by day. */
export function withRows(receipts: Receipts, rows: ReadonlyMap<Day, number>, changed_at: string): Receipts {
  return receiptsOf(
    [...receipts.values()].map((receipt) => {
      const rows_stored = rows.get(receipt.day) ?? receipt.rows_stored;
      return rows_stored === receipt.rows_stored ? receipt : { ...receipt, rows_stored, changed_at };
    }),
  );
}
