import { type Day, daysOf } from '../base/days.ts';
import { lastContained } from '../extract/plan/days.ts';
import type { Receipt } from '../extract/window.ts';

/**
 * A receipt as a target stores it, with the number of its window (`_dfinery_window`), and without header and scans:
 * these hold least and greatest values, which would outlive a purge.
 */
export type StoredReceipt = Omit<Receipt, 'header' | 'columns'> & {
  readonly window: number;
  /** Rows that this window wrote last and that are still there. */
  readonly rows_live: number;
  /** Rows whose key has a number, because another row has their id. */
  readonly id_repeats: number;
};

export function storedReceipt(receipt: Receipt, windowNumber: number, idRepeats: number): StoredReceipt {
  const { header: _header, columns: _columns, ...rest } = receipt;
  return { ...rest, window: windowNumber, rows_live: receipt.rows, id_repeats: idRepeats };
}

/**
 * The number of the last window, 0 if there is none. No number is used twice, since a receipt is removed only when a
 * later window takes its place.
 */
export const lastWindowNumber = (receipts: readonly Pick<StoredReceipt, 'window'>[]): number =>
  receipts.reduce((most, { window }) => Math.max(most, window), 0);

/**
 * The receipts that are still needed, with the current numbers of their rows. A receipt without rows is removed once a
 * later window supersedes it. `liveRows`: number of rows by window.
 */
export function receiptsWith(receipts: readonly StoredReceipt[], liveRows: ReadonlyMap<number, number>) {
  const counted = receipts.map((receipt) => ({ ...receipt, rows_live: liveRows.get(receipt.window) ?? 0 }));
  return counted.filter((receipt) => receipt.rows_live > 0 || !counted.some((later) => supersedes(later, receipt)));
}

/** True if a later window requested the same days and covers as many. So hourly runs leave one receipt a day. */
export function supersedes(later: StoredReceipt, earlier: StoredReceipt): boolean {
  if (later.window <= earlier.window || later.from !== earlier.from || later.to !== earlier.to) return false;
  if (earlier.covers_to === null) return true;
  return later.covers_to !== null && later.covers_from <= earlier.covers_from && later.covers_to >= earlier.covers_to;
}

/** Rows of the last receipt for exactly these days; undefined if they were never requested. */
export function rowsOf(receipts: readonly Pick<StoredReceipt, 'from' | 'to' | 'rows'>[], from: Day, to: Day) {
  return receipts.findLast((receipt) => receipt.from === from && receipt.to === to)?.rows;
}

export function coveredDays(receipts: Iterable<Pick<Receipt, 'covers_from' | 'covers_to'>>): Set<Day> {
  return new Set([...receipts].flatMap((r) => (r.covers_to === null ? [] : daysOf(r.covers_from, r.covers_to))));
}

/** Days that a window has, also those that were not over. `isExclusive`: an export may not contain its last day. */
export function requestedDays(receipts: readonly StoredReceipt[], isExclusive: boolean): Set<Day> {
  const requested = receipts.flatMap((receipt) => daysOf(receipt.from, lastContained(receipt, isExclusive)));
  return new Set([...requested, ...coveredDays(receipts)]);
}

/** A window by its number, and the requested days. */
export interface NumberedWindow extends Pick<Receipt, 'from' | 'to'> {
  readonly windowNumber: number;
}

export interface IncomingWindow extends NumberedWindow {
  /** True if the service is known to exclude the day `to`. */
  readonly isExclusive: boolean;
}

/** The numbers of a stored window and of a window of a batch that requests some of its days. */
export interface SharedDays {
  readonly stored: number;
  readonly incoming: number;
  /** True if all days of the stored window are requested. */
  readonly isWhole: boolean;
}

export function sharedDays(stored: readonly NumberedWindow[], incoming: readonly IncomingWindow[]): SharedDays[] {
  return incoming.flatMap(({ windowNumber, from, to, isExclusive }) => {
    const last = lastContained({ from, to }, isExclusive);
    return stored.flatMap((older) => {
      const lastStored = lastContained(older, isExclusive);
      if (older.from > last || from > lastStored) return [];
      return [
        { stored: older.windowNumber, incoming: windowNumber, isWhole: from <= older.from && lastStored <= last },
      ];
    });
  });
}
