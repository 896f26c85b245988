import { addDays, type Day, dayAt } from '../../base/days.ts';
import { HOUR_MS } from '../../base/durations.ts';
import { implausible } from '../plausible.ts';
import type { PriorReceipts } from '../receipt.ts';

const EAST = 14;
const WEST = -12;
/** Number of days after a day was over in which it is read again if it is empty or implausible. */
const READ_AGAIN_DAYS = 7;

/** The latest day that has begun in any time zone. */
export const latestToday = (now: number): Day => dayAt(now, EAST);

/** The last day that is requested: the date now in `timezone`, or in UTC. */
export function todayIn(timezone: string | undefined, now: number): Day {
  if (timezone === undefined) return dayAt(now);
  const format = new Intl.DateTimeFormat('en', {
    timeZone: timezone,
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
  });
  const parts = new Map(format.formatToParts(now).map(({ type, value }) => [type, value]));
  return `${parts.get('year')}-${parts.get('month')}-${parts.get('day')}`;
}

/** The last day that is over: it has ended at UTC−12. */
export const lastDayOver = (now: number): Day => addDays(dayAt(now, WEST), -1);

/** The last day that has been over for at least `hours`. */
export const lastDayOverFor = (now: number, hours: number): Day => lastDayOver(now - hours * HOUR_MS);

/** The oldest day that the service most likely still exports. */
export const oldestDay = (now: number, historyDays: number): Day => addDays(dayAt(now), -historyDays);

/** True until seven days after the day was over. */
const mayStillArrive = (day: Day, now: number): boolean => day > addDays(lastDayOver(now), -READ_AGAIN_DAYS);

/**
 * The days that are over, are empty or implausible, and are read again, in order. Plain append (`appends`) reads only
 * days without rows again.
 */
export const readAgainDays = (
  receipts: PriorReceipts,
  { now, appends }: { readonly now: number; readonly appends: boolean },
): Day[] =>
  [...receipts]
    .filter(([day, { rows, is_over, pruned }]) => {
      if (!is_over || pruned === true || !mayStillArrive(day, now)) return false;
      return rows === 0 || (!appends && implausible(day, receipts) !== undefined);
    })
    .map(([day]) => day)
    .sort();

const NAMED_RUNS = 40;

/** Formats days for a message: `2026-01-01`, `2026-01-01 to 2026-01-03`, `2026-01-01, 2026-01-04`. */
export function nameDays(days: readonly Day[]): string {
  const runs: string[] = [];
  for (let i = 0; i < days.length; i++) {
    const first = days[i];
    while (i + 1 < days.length && days[i + 1] === addDays(days[i], 1)) i++;
    runs.push(first === days[i] ? first : `${first} to ${days[i]}`);
  }
  if (runs.length <= NAMED_RUNS) return runs.join(', ');
  return `${runs.slice(0, NAMED_RUNS).join(', ')} and ${runs.length - NAMED_RUNS} more`;
}
