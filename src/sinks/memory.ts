import { type Day, daysOf } from '../base/days.ts';
import { configFailure, type Failure } from '../base/errors.ts';
import type { State } from '../extract/window.ts';

/** What a target remembers of earlier runs. */
export interface Memory {
  readonly state: State | undefined;
  /** Days that committed receipts cover. */
  readonly covered: ReadonlySet<Day>;
  /** Event names seen so far, for a day that must be split. */
  readonly eventNames: readonly string[];
  /** Rows of the latest receipt that asked for exactly these days; without it a re-read is compared with nothing (S8). */
  readonly rowsOf?: ((from: Day, to: Day) => number | undefined) | undefined;
}

/** That of a first run, and of a target that keeps nothing. */
export const NO_MEMORY: Memory = { state: undefined, covered: new Set(), eventNames: [] };

/** Event names remembered at most, for days that must be split. */
export const MOST_EVENT_NAMES = 10_000;

/** Days that committed receipts cover. */
export function coveredDays(
  receipts: Iterable<{ readonly covers_from: Day; readonly covers_to: Day | null }>,
): Set<Day> {
  return new Set([...receipts].flatMap((r) => (r.covers_to === null ? [] : daysOf(r.covers_from, r.covers_to))));
}

/** The zone of a target's datetimes is that of its first load. `what`: `file` or `folder`. */
export function otherTimezone(
  place: string,
  what: string,
  { wanted, stored }: { readonly wanted: string | null; readonly stored: string | null },
): Failure {
  return configFailure(
    `timezone is ${wanted ?? 'not set'}, but ${place} was loaded with ${stored ?? 'none'}: keep it, or load into another ${what}.`,
  );
}
