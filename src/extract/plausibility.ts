import { addDays, type Day } from '../base/days.ts';
import type { ReceiptsByDay } from './checked-day.ts';

/** What is usual comes from the same weekday of so many weeks before. */
const WEEKS = 4;
/** Number of these weeks that must have been loaded. */
const MIN_WEEKS = 2;
/** Below this median of rows a day the numbers vary by themselves. */
const MIN_MEDIAN = 100;
/** A smaller part of the median is implausible. */
const USUAL_PART = 1 / 5;

/**
 * The median of rows of the same weekday in the four weeks before, if a day of these receipts is implausible; undefined
 * if it is not, or not over. A day without rows is implausible if these weekdays all had rows. A day with rows is
 * implausible if it has fewer than a fifth of the median, and the median is 100 or more.
 */
export function usualRowsIfImplausible(day: Day, receipts: ReceiptsByDay): number | undefined {
  const receipt = receipts.get(day);
  if (receipt === undefined || !receipt.is_over || receipt.pruned === true) return undefined;
  const earlierCounts: number[] = [];
  for (let week = 1; week <= WEEKS; week++) {
    const earlier = receipts.get(addDays(day, -7 * week));
    if (earlier?.is_over === true) earlierCounts.push(earlier.rows);
  }
  if (earlierCounts.length < MIN_WEEKS) return undefined;
  const usualRows = median(earlierCounts);
  const { rows } = receipt;
  const isEmpty = rows === 0 && earlierCounts.every((count) => count > 0);
  const isFarBelowUsual = rows > 0 && usualRows >= MIN_MEDIAN && rows < usualRows * USUAL_PART;
  return isEmpty || isFarBelowUsual ? usualRows : undefined;
}

export const isImplausible = (day: Day, receipts: ReceiptsByDay): boolean =>
  usualRowsIfImplausible(day, receipts) !== undefined;

function median(counts: readonly number[]): number {
  const sorted = counts.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
