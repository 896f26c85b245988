import type { Day } from '../../../base/days.ts';
import type { KeptReceipt } from '../domains.ts';

/** Number of rows of each window, over all files. */
export function liveRows(files: Iterable<{ readonly windows?: ReadonlyMap<number, number> }>): Map<number, number> {
  const live = new Map<number, number>();
  for (const { windows } of files) {
    for (const [window, rows] of windows ?? []) live.set(window, (live.get(window) ?? 0) + rows);
  }
  return live;
}

/** Receipts to remove: none of their rows are left, and a later receipt for the same days covers at least as many. */
export function supersededReceipts(receipts: readonly KeptReceipt[], live: ReadonlyMap<number, number>): KeptReceipt[] {
  return receipts.filter(
    (receipt) => (live.get(receipt.window) ?? 0) === 0 && receipts.some((later) => supersedes(later, receipt)),
  );
}

function supersedes(later: KeptReceipt, earlier: KeptReceipt): boolean {
  if (later.window <= earlier.window || later.from !== earlier.from || later.to !== earlier.to) return false;
  if (earlier.covers_to === null) return true;
  return later.covers_to !== null && later.covers_from <= earlier.covers_from && later.covers_to >= earlier.covers_to;
}

/** Rows of the last receipt for exactly these days; undefined if there is none. */
export function rowsOf(receipts: readonly KeptReceipt[], from: Day, to: Day): number | undefined {
  return receipts.findLast((receipt) => receipt.from === from && receipt.to === to)?.rows;
}
