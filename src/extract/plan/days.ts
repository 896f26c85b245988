import { addDays, type Day, dayAt, daysBetween, daysOf, earlierOf, laterOf } from '../../base/days.ts';
import { HOUR_MS } from '../../base/durations.ts';
import type { ExportState } from '../window.ts';

const EAST = 14;
const WEST = -12;

/** The latest day that has begun in any time zone: the last that may be requested. */
export const latestToday = (now: number): Day => dayAt(now, EAST);

/** Today in UTC, which is requested after the service has refused a later day. */
export const todayUtc = (now: number): Day => dayAt(now);

/** The earliest day that is not over in every time zone: the cursor never passes it. */
export const earliestToday = (now: number): Day => dayAt(now, WEST);

/** The last day that is over in every time zone. */
export const lastDayOver = (now: number): Day => addDays(earliestToday(now), -1);

/** The last day that has been over in every time zone for at least `hours`. */
export const lastSettledDay = (now: number, hours: number): Day => lastDayOver(now - hours * HOUR_MS);

/** The difference between two clocks (ms) above which a warning is logged. */
export const CLOCK_TOLERANCE_MS = HOUR_MS;

/** The service refuses days before `surely`, and most likely accepts days from `probably` on. */
export function oldestDays(now: number, historyDays: number): { readonly surely: Day; readonly probably: Day } {
  const probably = addDays(todayUtc(now), -historyDays);
  return { surely: earlierOf(addDays(earliestToday(now), -historyDays), probably), probably };
}

/** True if some of these days could get late rows after `readAt` and are too old for the lookback now (ms). */
export function missesLateRows(
  { first, last }: DayRange,
  { readAt, now, lookbackDays }: { readonly readAt: number; readonly now: number; readonly lookbackDays: number },
): boolean {
  const openAtRead = addDays(lastDayOver(readAt), 1 - lookbackDays);
  const closedAtNow = addDays(lastDayOver(now), -lookbackDays);
  return laterOf(first, openAtRead) <= earlierOf(last, closedAtNow);
}

/** The days known to be complete: by receipts, by recorded gaps, or as all days before a cursor. */
export class Coverage {
  readonly #days: Set<Day>;
  readonly #floor: Day | undefined;
  /**
   * The latest result of `cursor`, and the day from which it was searched. Days are only added, so the next search
   * begins where this one ended.
   */
  #found: { readonly from: Day; readonly day: Day } | undefined;

  /** `floor`: every day before it counts as complete. */
  constructor(days: Iterable<Day>, floor: Day | undefined) {
    this.#days = new Set(days);
    this.#floor = floor;
  }

  /**
   * Makes the coverage of a stored state and of the days that receipts cover. The days before the cursor count as
   * complete if there are no receipts, since a platform stores the state alone, or if the receipts belong to other
   * filters.
   */
  static of(state: ExportState | undefined, covered: ReadonlySet<Day>): Coverage {
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

  /** The first day from `start` on that is not complete: the cursor, at most today in UTC-12. */
  cursor(start: Day, now: number): Day {
    const from = this.#floor === undefined ? start : laterOf(start, this.#floor);
    let day = this.#found?.from === from ? this.#found.day : from;
    while (this.#days.has(day)) day = addDays(day, 1);
    this.#found = { from, day };
    return earlierOf(day, earliestToday(now));
  }

  clone(): Coverage {
    return new Coverage(this.#days, this.#floor);
  }
}

/** Neighbouring days, both ends included. */
export interface DayRange {
  readonly first: Day;
  readonly last: Day;
}

export const only = (day: Day): DayRange => ({ first: day, last: day });

export const lengthOf = (range: DayRange): number => daysBetween(range.first, range.last) + 1;

/** The `to_date` that contains the last day of the range, once the end-day rule is known. */
export const toDateFor = (range: DayRange, inclusive: boolean): Day =>
  inclusive ? range.last : addDays(range.last, 1);

/** The last day of an export's rows. `isExclusive`: several days are known not to contain `to_date`. */
export const lastContained = ({ from, to }: { readonly from: Day; readonly to: Day }, isExclusive: boolean): Day =>
  isExclusive && to > from ? addDays(to, -1) : to;

/** The days of a plan in order, consumed in ranges of consecutive days. */
export class DayRanges {
  readonly #days: readonly Day[];
  #at = 0;

  constructor(days: readonly Day[]) {
    this.#days = days;
  }

  peek(): Day | undefined {
    return this.#days[this.#at];
  }

  /** Takes the next range of at most `most` days; undefined if all are taken. */
  next(most: number): DayRange | undefined {
    const range = this.peekRange(most);
    if (range !== undefined) this.#at += lengthOf(range);
    return range;
  }

  /** Gives back the range that was taken last. */
  putBack(range: DayRange): void {
    this.#at -= lengthOf(range);
  }

  /** The next range of at most `most` days, not taken; only its first day may be later than `through`. */
  peekRange(most: number, through?: Day): DayRange | undefined {
    const first = this.#days[this.#at];
    if (first === undefined) return undefined;
    let last = first;
    for (let count = 1; count < most; count++) {
      const day = this.#days[this.#at + count];
      if (day !== addDays(first, count) || (through !== undefined && day > through)) break;
      last = day;
    }
    return { first, last };
  }
}
