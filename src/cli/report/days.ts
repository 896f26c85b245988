import { addDays, type Day, daysBetween, daysOf, laterOf } from '../../base/days.ts';
import type { TargetReport } from '../../sinks/report.ts';

export const DAY_STATES = ['loaded', 'read again', 'so far', 'gap', 'not there yet', 'lost soon'] as const;
type DayState = (typeof DAY_STATES)[number];

export interface ReportedDay {
  readonly day: Day;
  readonly state: DayState;
  /** Of the latest export of that day alone; undefined where a window held more days. */
  readonly rows: number | undefined;
  readonly bytes: number | undefined;
  /** Days until the service no longer exports it, for a day that is lost soon. */
  readonly daysLeft: number | undefined;
}

/** A day that is not loaded and leaves the service within so many days is lost soon. */
const SOON_DAYS = 7;
/** Days shown; of a longer history the latest. */
const MOST_DAYS = 1_100;

/** Every day from the first that was wanted through today, with what became of it. */
export function reportedDays(report: TargetReport, today: Day, historyDays: number): ReportedDay[] {
  const reads = new Map<Day, number>();
  const asked = new Set<Day>();
  const latest = new Map<Day, { readonly rows: number; readonly bytes: number }>();
  for (const window of report.windows) {
    for (const day of daysOf(window.from, window.to)) asked.add(day);
    if (window.coversTo === null) continue;
    const days = daysOf(window.coversFrom, window.coversTo);
    for (const day of days) reads.set(day, (reads.get(day) ?? 0) + 1);
    if (days.length === 1) latest.set(days[0], window);
  }
  const gaps = new Set(gapsOf(report));
  const known = [...reads.keys(), ...gaps].sort();
  const start = report.state?.start_date;
  const first = typeof start === 'string' && (known[0] === undefined || start < known[0]) ? start : known[0];
  if (first === undefined) return [];
  const last = laterOf(today, known.at(-1) ?? today);
  const oldest = addDays(today, 1 - historyDays);
  return daysOf(laterOf(first, addDays(last, 1 - MOST_DAYS)), last).map((day) => {
    const daysLeft = daysBetween(oldest, day) + 1;
    const state = stateOf(reads.get(day) ?? 0, gaps.has(day), asked.has(day), daysLeft);
    return {
      day,
      state,
      ...latest.get(day),
      daysLeft: state === 'lost soon' ? Math.max(0, daysLeft) : undefined,
    } as ReportedDay;
  });
}

function stateOf(reads: number, isGap: boolean, isAsked: boolean, daysLeft: number): DayState {
  if (reads > 1) return 'read again';
  if (reads === 1) return 'loaded';
  if (isGap) return 'gap';
  if (isAsked && daysLeft > SOON_DAYS) return 'so far';
  return daysLeft <= SOON_DAYS ? 'lost soon' : 'not there yet';
}

function gapsOf({ state }: TargetReport): Day[] {
  const gaps = state?.gaps;
  return Array.isArray(gaps) ? gaps.filter((day): day is Day => typeof day === 'string') : [];
}
