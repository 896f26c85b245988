import type { Plan } from './plan.ts';

/**
 * How many exports a plan will send if nothing fails. Of days that are gone only the first is requested. With an unknown
 * end-day rule between one a day (the first proves it) and, where nothing ever does, two a day, or four where no row may
 * come twice; with a known one exactly one a window.
 */
export function exportsNeeded(plan: Plan): { readonly least: number; readonly most: number } {
  const gone = plan.likelyGaps.length;
  const least = plan.windows.length + (gone > 0 ? 1 : 0);
  if (plan.inclusive !== undefined || least === 0) return { least, most: least };
  const days = plan.days.length - gone;
  const most = plan.proveFirst ? 4 * days + 1 : Math.max(2 * days, days > 1 ? 5 : 2);
  return { least, most: most + (gone > 0 ? 1 : 0) };
}
