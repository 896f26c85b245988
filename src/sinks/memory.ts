import { type Day, daysOf } from '../base/days.ts';
import { configFailure, type Failure } from '../base/errors.ts';
import type { State } from '../extract/window.ts';

/** What a target has stored about earlier runs. */
export interface Memory {
  readonly state: State | undefined;
  /** Days that committed receipts cover. */
  readonly covered: ReadonlySet<Day>;
  /** Event names seen so far, for a day that must be split. */
  readonly eventNames: readonly string[];
  /** Rows of the latest receipt for exactly these days, with which a re-read is compared (S8). */
  readonly rowsOf?: ((from: Day, to: Day) => number | undefined) | undefined;
}

/** The memory of a target before its first run, and of a target that stores nothing. */
export const NO_MEMORY: Memory = { state: undefined, covered: new Set(), eventNames: [] };

/** Maximum number of stored event names, which are used for days that must be split. */
export const MOST_EVENT_NAMES = 10_000;

/** Days that committed receipts cover. */
export function coveredDays(
  receipts: Iterable<{ readonly covers_from: Day; readonly covers_to: Day | null }>,
): Set<Day> {
  return new Set([...receipts].flatMap((r) => (r.covers_to === null ? [] : daysOf(r.covers_from, r.covers_to))));
}

/** The failure for a configured time zone that is not that of the target's first load. `what`: `file` or `folder`. */
export function otherTimezone(
  place: string,
  what: string,
  { wanted, stored }: { readonly wanted: string | null; readonly stored: string | null },
): Failure {
  return configFailure(
    `timezone is ${wanted ?? 'not set'}, but ${place} was loaded with ${stored ?? 'none'}: keep it, or load into another ${what}.`,
  );
}
