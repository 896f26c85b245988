import type { Day } from '../base/days.ts';
import type { Plan } from './plan/plan.ts';

/** Counts of an extraction, updated while it runs. */
export interface Tally {
  /** Exports sent, bytes of CSV received (retries included), windows made. */
  exports: number;
  bytes: number;
  windows: number;
  /** The cursor that the consumer has stored with the last window. */
  nextFromDate: Day | undefined;
  inclusive: boolean | undefined;
  gaps: Day[];
}

export const newTally = (): Tally => ({
  exports: 0,
  bytes: 0,
  windows: 0,
  nextFromDate: undefined,
  inclusive: undefined,
  gaps: [],
});

/** What the command line's summary takes from an extraction; keys as in schemas/summary.json. */
export function summaryOf(plan: Plan, tally: Tally) {
  return {
    exports: tally.exports,
    bytes: tally.bytes,
    from_date: plan.firstDay ?? null,
    next_from_date: tally.nextFromDate ?? plan.state.from_date,
    to_date_inclusive: tally.inclusive ?? plan.inclusive ?? null,
    gaps: [...new Set(tally.gaps)].sort(),
  };
}

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
