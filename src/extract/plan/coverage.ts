import { addDays, type Day, daysOf, earlierOf, laterOf } from '../../base/days.ts';
import type { KnownState } from '../state.ts';
import { earliestToday } from './calendar.ts';

/** Which days are known to be complete: by receipts, by recorded gaps, or by a cursor, before which all days count as complete. */
export class Coverage {
  readonly #days: Set<Day>;
  readonly #floor: Day | undefined;

  /** `floor`: every day before it counts as complete. */
  constructor(days: Iterable<Day>, floor: Day | undefined) {
    this.#days = new Set(days);
    this.#floor = floor;
  }

  /**
   * From a stored state and the days covered by receipts. Without receipts (a platform stores the state alone), or if they
   * belong to other filters, the days before the cursor count as complete.
   */
  static of(state: KnownState | undefined, covered: ReadonlySet<Day>): Coverage {
    const byCursor = state !== undefined && (state.by_cursor === true || covered.size === 0);
    const days = state?.by_cursor === true ? [] : covered;
    return new Coverage([...days, ...(state?.gaps ?? [])], byCursor ? state.from_date : undefined);
  }

  has(day: Day): boolean {
    return (this.#floor !== undefined && day < this.#floor) || this.#days.has(day);
  }

  add(first: Day, last: Day): void {
    for (const day of daysOf(first, last)) this.#days.add(day);
  }

  /** The first day from `start` on that is not complete: the cursor (S4), at most today in UTC-12 (S3). */
  cursor(start: Day, now: number): Day {
    let day = this.#floor === undefined ? start : laterOf(start, this.#floor);
    while (this.#days.has(day)) day = addDays(day, 1);
    return earlierOf(day, earliestToday(now));
  }

  clone(): Coverage {
    return new Coverage(this.#days, this.#floor);
  }
}
