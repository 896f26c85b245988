import type { Day } from '../../base/days.ts';
import { type DayRange, DayRanges, toDateFor } from './days.ts';
import type { Plan } from './plan.ts';

/** A window as it will be if nothing fails: the days it is for, and the days it will request. */
interface PlannedWindow extends DayRange {
  readonly from: Day;
  /** Sent as `to_date`; an assumption while the end-day rule is not proved yet. */
  readonly to: Day;
}

/** The windows of a plan. While nothing is proved the first is a single day: the export that can prove the rule (S2). */
export function plannedWindows(
  plan: Pick<Plan, 'days' | 'likelyGaps' | 'windowDays' | 'inclusive'>,
): readonly PlannedWindow[] {
  const { windowDays, inclusive } = plan;
  const ranges = new DayRanges(plan.days.filter((day) => !plan.likelyGaps.includes(day)));
  const out: PlannedWindow[] = [];
  for (let next = ranges.next(inclusive === undefined ? 1 : windowDays); next; next = ranges.next(windowDays)) {
    out.push({ ...next, from: next.first, to: toDateFor(next, inclusive ?? true) });
  }
  return out;
}

/**
 * How many exports a plan will send if nothing fails. Of days that are gone only the first is requested. With an unknown
 * end-day rule between one a day (the first proves it) and, where nothing ever does, two a day, or four where no row may
 * come twice; with a known one exactly one a window.
 */
export function exportsNeeded(plan: Plan): { readonly least: number; readonly most: number } {
  const gone = plan.likelyGaps.length;
  const least = plannedWindows(plan).length + (gone > 0 ? 1 : 0);
  if (plan.inclusive !== undefined || least === 0) return { least, most: least };
  const days = plan.days.length - gone;
  const most = plan.proveFirst ? 4 * days + 1 : Math.max(2 * days, days > 1 ? 5 : 2);
  return { least, most: most + (gone > 0 ? 1 : 0) };
}
