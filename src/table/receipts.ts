import { addDays, type Day, daysOf } from '../base/days.ts';
import type { Receipt } from '../extract/window.ts';

/**
 * A receipt as a target stores it, with the number of its window (`_dfinery_window` of its rows, from 1). Without the
 * header and the scans of the columns: those hold least and greatest values, which would outlive a purge.
 */
export type StoredReceipt = Omit<Receipt, 'header' | 'columns'> & {
  readonly window: number;
  /** Rows that it last wrote and that are still there (S14). */
  readonly rows_live: number;
  /** Rows whose key has a number, because another row has their id. */
  readonly id_repeats: number;
};

export function storedReceipt(receipt: Receipt, window: number, idRepeats: number): StoredReceipt {
  const { header: _header, columns: _columns, ...rest } = receipt;
  return { ...rest, window, rows_live: receipt.rows, id_repeats: idRepeats };
}

/** The number of the last window, 0 if there is none. A receipt is dropped only for a later one, so none is given twice. */
export const lastWindow = (receipts: readonly Pick<StoredReceipt, 'window'>[]): number =>
  receipts.reduce((most, { window }) => Math.max(most, window), 0);

/**
 * The receipts with the rows that each has now, without those that nothing needs any more. `live`: rows by window.
 */
export function receiptsWith(
  receipts: readonly StoredReceipt[],
  live: ReadonlyMap<number, number>,
): readonly StoredReceipt[] {
  const counted = receipts.map((receipt) => ({ ...receipt, rows_live: live.get(receipt.window) ?? 0 }));
  return counted.filter((receipt) => receipt.rows_live > 0 || !counted.some((later) => supersedes(later, receipt)));
}

/** True if a later window asked for the same days and covers as many: hourly runs leave one receipt a day. */
export function supersedes(later: StoredReceipt, earlier: StoredReceipt): boolean {
  if (later.window <= earlier.window || later.from !== earlier.from || later.to !== earlier.to) return false;
  if (earlier.covers_to === null) return true;
  return later.covers_to !== null && later.covers_from <= earlier.covers_from && later.covers_to >= earlier.covers_to;
}

/** Rows of the last receipt for exactly these days; undefined if they were never asked for. */
export function rowsOf(
  receipts: readonly Pick<StoredReceipt, 'from' | 'to' | 'rows'>[],
  from: Day,
  to: Day,
): number | undefined {
  return receipts.findLast((receipt) => receipt.from === from && receipt.to === to)?.rows;
}

/** Days that receipts cover. */
export function coveredDays(receipts: Iterable<Pick<Receipt, 'covers_from' | 'covers_to'>>): Set<Day> {
  return new Set([...receipts].flatMap((r) => (r.covers_to === null ? [] : daysOf(r.covers_from, r.covers_to))));
}

/** A window whose rows are stored. */
export interface StoredWindow {
  readonly number: number;
  /** Days asked for, both as sent. */
  readonly from: Day;
  readonly to: Day;
}

/** Windows that still have rows of their own. */
export function liveWindows(receipts: readonly StoredReceipt[]): StoredWindow[] {
  return receipts.flatMap(({ window, rows_live, from, to }) => (rows_live > 0 ? [{ number: window, from, to }] : []));
}

/** Numbers of stored windows by what they have in common with a new one. */
export interface Overlap {
  /** All of their days are asked for again. */
  readonly within: readonly number[];
  /** Some of their days are. */
  readonly sharing: readonly number[];
}

/** `isExclusive`: the service is known to leave `to_date` out. */
export function overlapOf(
  stored: Iterable<StoredWindow>,
  asked: { readonly from: Day; readonly to: Day },
  isExclusive: boolean,
): Overlap {
  const lastOf = ({ from, to }: { readonly from: Day; readonly to: Day }) =>
    isExclusive && to > from ? addDays(to, -1) : to;
  const last = lastOf(asked);
  const shared = [...stored].filter((window) => window.from <= last && asked.from <= lastOf(window));
  const isWithin = (window: StoredWindow) => asked.from <= window.from && lastOf(window) <= last;
  return {
    within: shared.filter(isWithin).map(({ number }) => number),
    sharing: shared.filter((window) => !isWithin(window)).map(({ number }) => number),
  };
}
