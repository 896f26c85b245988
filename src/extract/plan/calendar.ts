import { addDays, type Day, dayAt, earlierOf, laterOf } from '../../base/days.ts';

const MS_PER_HOUR = 3_600_000;
const EAST = 14;
const WEST = -12;

/** The latest day that has begun in any time zone: the last that may be requested (S3). */
export const latestToday = (now: number): Day => dayAt(now, EAST);

/** Today in UTC: requested after the service has refused a later day. */
export const todayUtc = (now: number): Day => dayAt(now);

/** The earliest day that is not over in every time zone: the cursor never passes it (S3). */
export const earliestToday = (now: number): Day => dayAt(now, WEST);

/** The last day that is over in every time zone. */
export const lastDayOver = (now: number): Day => addDays(earliestToday(now), -1);

/** The last day that has been over in every time zone for at least `hours`. */
export const lastSettledDay = (now: number, hours: number): Day => lastDayOver(now - hours * MS_PER_HOUR);

/** The earlier of two clock readings, as far as the service's is known (S3). */
export const earlierReading = (machine: number, service: number | undefined): number =>
  service === undefined ? machine : Math.min(machine, service);

/** The difference between two clocks from which on a warning is logged. */
export const CLOCK_TOLERANCE_MS = MS_PER_HOUR;

/** Bounds of what the service still exports: days before `surely` are refused, from `probably` on most likely accepted. */
export function oldestDays(now: number, historyDays: number): { readonly surely: Day; readonly probably: Day } {
  const probably = addDays(todayUtc(now), -historyDays);
  return { surely: earlierOf(addDays(earliestToday(now), -historyDays), probably), probably };
}

/**
 * True when some of the days `first` to `through` could still get late rows at `readAt` (ms since 1970) and, at `now`, are
 * too old for the lookback of later runs.
 */
export function missesLateRows(first: Day, through: Day, readAt: number, now: number, lookbackDays: number): boolean {
  const openAtRead = addDays(lastDayOver(readAt), 1 - lookbackDays);
  const closedAtNow = addDays(lastDayOver(now), -lookbackDays);
  return laterOf(first, openAtRead) <= earlierOf(through, closedAtNow);
}
