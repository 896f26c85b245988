import type { Plan } from './plan.ts';

/**
 * The number of exports that a plan will send if nothing fails: one a day, up to two more to find out whether an export
 * includes its `to_date`, and one if that is done on a day which is not read.
 */
export function exportsNeeded({ days, endDayOn }: Plan): { readonly least: number; readonly most: number } {
  const least = days.length;
  if (endDayOn === undefined || least === 0) return { least, most: least };
  const extra = days.includes(endDayOn) ? 0 : 1;
  return { least: least + extra, most: least + extra + 2 };
}
