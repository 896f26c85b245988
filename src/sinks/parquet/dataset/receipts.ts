import type { Day } from '../../../base/days.ts';
import type { Receipt } from '../../../extract/window.ts';
import type { StoredWindow } from '../../../table/receipts.ts';
import type { LiveFile, LiveReceipt, Manifest } from './manifest.ts';

/** A receipt as the manifest keeps it: without the shapes of cells. */
export function liveReceipt(receipt: Receipt, window: number, idRepeats: number): LiveReceipt {
  const columns = receipt.columns.map(({ seen: _seen, ...column }) => column);
  return { ...receipt, columns, window, rows_live: receipt.rows, id_repeats: idRepeats };
}

/** Windows that still have rows of their own. */
export function liveWindows({ receipts }: Manifest): StoredWindow[] {
  return receipts.flatMap(({ window, rows_live, from, to }) => (rows_live > 0 ? [{ number: window, from, to }] : []));
}

/** The number of the next window, from 1. */
export function nextWindow(manifest: Manifest): number {
  return manifest.receipts.reduce((most, { window }) => Math.max(most, window), 0) + 1;
}

/** The receipts with the rows that the files now have of each, without those that nothing needs any more. */
export function receiptsAfter(receipts: readonly LiveReceipt[], files: readonly LiveFile[]): LiveReceipt[] {
  const live = new Map<number, number>();
  for (const { windows = {} } of files) {
    for (const [window, rows] of Object.entries(windows)) {
      live.set(Number(window), (live.get(Number(window)) ?? 0) + rows);
    }
  }
  const counted = receipts.map((receipt) => ({ ...receipt, rows_live: live.get(receipt.window) ?? 0 }));
  return counted.filter((receipt) => receipt.rows_live > 0 || !counted.some((later) => supersedes(later, receipt)));
}

/** True when a later window asked for the same days and covers as many: an hourly run leaves one receipt a day. */
function supersedes(later: LiveReceipt, earlier: LiveReceipt): boolean {
  if (later.window <= earlier.window || later.from !== earlier.from || later.to !== earlier.to) return false;
  if (earlier.covers_to === null) return true;
  return later.covers_to !== null && later.covers_from <= earlier.covers_from && later.covers_to >= earlier.covers_to;
}

/** Rows of the last receipt for exactly these days; undefined when they were never asked for. */
export function rowsOf(receipts: readonly LiveReceipt[], from: Day, to: Day): number | undefined {
  return receipts.findLast((receipt) => receipt.from === from && receipt.to === to)?.rows;
}
