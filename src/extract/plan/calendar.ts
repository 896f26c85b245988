import { addDays, type Day, dayAt, earlierOf, laterOf } from '../../base/days.ts';

const MS_PER_HOUR = 3_600_000;
const EAST = 14;
const WEST = -12;

/** The latest day that has begun anywhere: what may be asked for (S3). */
export const todayEast = (now: number): Day => dayAt(now, EAST);

/** Today in UTC: what is asked for once the service has refused a later day. */
export const todayUtc = (now: number): Day => dayAt(now);

/** The earliest day that is still going on somewhere: the cursor never passes it (S3). */
export const todayWest = (now: number): Day => dayAt(now, WEST);

/** The last day that is over everywhere. */
export const overThrough = (now: number): Day => addDays(todayWest(now), -1);

/** The last day that has been over everywhere for so many hours. */
export const settledThrough = (now: number, hours: number): Day => overThrough(now - hours * MS_PER_HOUR);

/** Of two clocks the one that claims less (S3). */
export const cautiousNow = (machine: number, service: number | undefined): number =>
  service === undefined ? machine : Math.min(machine, service);

/** How far two clocks may be apart before it is worth a warning. */
export const CLOCK_TOLERANCE_MS = MS_PER_HOUR;

/** The oldest days that may still be exported: surely refused before `surely`, probably accepted from `probably` on. */
export function oldestDays(now: number, historyDays: number): { readonly surely: Day; readonly probably: Day } {
  const probably = addDays(todayUtc(now), -historyDays);
  return { surely: earlierOf(addDays(todayWest(now), -historyDays), probably), probably };
}

/**
 * True when some of the days `first` to `through` could still get late rows as they were read (ms since 1970), and no run
 * from now on would look back at them.
 */
export function missesLateRows(first: Day, through: Day, readAt: number, now: number, lookbackDays: number): boolean {
  const openThen = addDays(overThrough(readAt), 1 - lookbackDays);
  const closedNow = addDays(overThrough(now), -lookbackDays);
  return laterOf(first, openThen) <= earlierOf(through, closedNow);
}
