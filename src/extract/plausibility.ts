import { addDays, type Day } from '../base/days.ts';
import { lastDayOver } from './calendar.ts';
import type { ReceiptSummary, ReceiptsByDay } from './checked-day.ts';

/** What is usual comes from the same weekday of so many weeks before. */
const WEEKS = 4;
/** Number of these weeks that must have been loaded. */
const MIN_WEEKS = 2;
/** Below this median of rows a day the numbers vary by themselves. */
const MIN_MEDIAN = 100;
/** A smaller part of the median is implausible. */
const USUAL_PART = 1 / 5;
/** Days after a day was over in which the rest of it may still come. */
const READ_AGAIN_DAYS = 7;

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

function median(counts: readonly number[]): number {
  const sorted = counts.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

interface ReadAgainOptions {
  readonly oldestDay: Day;
  /** Whether only days without rows are read again. */
  readonly appends?: boolean;
  /** Whether an export includes its `to_date`; undefined: not known. */
  readonly includesToDate?: boolean | undefined;
}

/**
 * The empty or implausible days that are still exported, in order, but for those that were requested a week after they
 * were over. An empty day whose request asked for too little does not count as requested.
 */
export function daysToReadAgain(
  receipts: ReceiptsByDay,
  { oldestDay, appends = false, includesToDate }: ReadAgainOptions,
): Day[] {
  const isReadAgain = ([day, receipt]: readonly [Day, ReceiptSummary]) => {
    const { rows, is_over, requested_at, pruned, to_date } = receipt;
    if (!is_over || pruned === true || day < oldestDay) return false;
    if (rows === 0 && includesToDate === false && to_date === day) return true;
    if (day <= addDays(lastDayOver(Date.parse(requested_at)), -READ_AGAIN_DAYS)) return false;
    return rows === 0 || (!appends && usualRowsIfImplausible(day, receipts) !== undefined);
  };
  return [...receipts]
    .filter(isReadAgain)
    .map(([day]) => day)
    .sort();
}
