import type { Plan } from './plan.ts';

/**
 * The number of exports that a plan will send if nothing fails: one a day. Finding out whether an export includes its
 * `to_date` costs up to two more, and one if it is done on a day that is not read.
 */
export function exportsNeeded({ days, endDayOn }: Plan): { readonly least: number; readonly most: number } {
  const least = days.length;
  if (endDayOn === undefined || least === 0) return { least, most: least };
  const extra = days.includes(endDayOn) ? 0 : 1;
  return { least: least + extra, most: least + extra + 2 };
}
