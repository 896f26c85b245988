import type { Day } from '../../base/days.ts';
import { type DayRange, DayRanges, toDateFor } from './days.ts';
import type { Plan } from './plan.ts';

/**
 * The windows of a plan if nothing fails: the days that each is for, and `to_date` of its request, an assumption while
 * the end-day rule is not proved. Until then the first is a single day, since that export can prove the rule.
 */
export function plannedWindows(plan: Pick<Plan, 'days' | 'likelyGaps' | 'windowDays' | 'singleDaysInclusive'>) {
  const { windowDays, singleDaysInclusive } = plan;
  const ranges = new DayRanges(plan.days.filter((day) => !plan.likelyGaps.has(day)));
  const out: (DayRange & { readonly to: Day })[] = [];
  for (
    let next = ranges.next(singleDaysInclusive === undefined ? 1 : windowDays);
    next;
    next = ranges.next(windowDays)
  ) {
    out.push({ ...next, to: toDateFor(next, singleDaysInclusive ?? true) });
  }
  return out;
}

/**
 * The number of exports that a plan will send if nothing fails. Of days that are gone only the first is requested. With
 * a known end-day rule it is exactly one for each window. With an unknown rule it is at least one for each day (the
 * first proves the rule), and at most two for each day, or four if no row may come twice (nothing proves the rule).
 */
export function exportsNeeded(plan: Plan): { readonly least: number; readonly most: number } {
  const gone = plan.likelyGaps.size;
  const least = plannedWindows(plan).length + (gone > 0 ? 1 : 0);
  if (plan.singleDaysInclusive !== undefined || least === 0) return { least, most: least };
  const days = plan.days.length - gone;
  const most = plan.proveFirst ? 4 * days + 1 : Math.max(2 * days, days > 1 ? 5 : 2);
  return { least, most: most + (gone > 0 ? 1 : 0) };
}
