import { addDays, type Day, dayAt, daysBetween } from '../base/days.ts';

const EASTERNMOST_HOURS = 14;
const WESTERNMOST_HOURS = -12;

/** The last day that has begun in any time zone. */
export const lastDayBegunAnywhere = (now: number): Day => dayAt(now, EASTERNMOST_HOURS);

/** The last day that has begun in every time zone. */
export const lastDayBegunEverywhere = (now: number): Day => dayAt(now, WESTERNMOST_HOURS);

/** The last day that is requested: the date now in `timezone`, or in UTC. */
export function todayIn(timezone: string | undefined, now: number): Day {
  // Swedish writes a date as yyyy-MM-dd.
  return timezone === undefined ? dayAt(now) : new Intl.DateTimeFormat('sv', { timeZone: timezone }).format(now);
}

/** The last day that is over: it has ended at UTC−12. */
export const lastDayOver = (now: number): Day => addDays(lastDayBegunEverywhere(now), -1);

/** The oldest day that the service most likely still exports. */
export const oldestExportedDay = (now: number, historyDays: number): Day => addDays(dayAt(now), -historyDays);

/** A day that is not loaded and leaves the service within so many days is lost soon. */
export const LOST_SOON_DAYS = 7;

/** Days until the service no longer exports a day, also where its own today is a day ahead. */
export const daysUntilLost = (day: Day, today: Day, historyDays: number): number =>
  daysBetween(addDays(today, -historyDays), day);

/** How many days the service exports, and the last one that runs read. */
export interface ExportedDays {
  readonly historyDays: number;
  readonly endDate?: Day | undefined;
}

/** Days until the service no longer exports the day of the cursor; null if that is after the last day that runs read. */
export const daysUntilCursorIsLost = (
  cursor: Day,
  today: Day,
  { historyDays, endDate }: ExportedDays,
): number | null => (endDate !== undefined && cursor > endDate ? null : daysUntilLost(cursor, today, historyDays));
