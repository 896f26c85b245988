import { addDays, type Day, daysBetween } from '../../base/days.ts';

/** Neighbouring days, both ends included. */
export interface DayRange {
  readonly first: Day;
  readonly last: Day;
}

/** A planned window: the days it is for, and the days it will request. */
export interface WindowPlan extends DayRange {
  readonly from: Day;
  /** Sent as `to_date`; an assumption while the end-day rule is not proved yet. */
  readonly to: Day;
}

export const lengthOf = (range: DayRange): number => daysBetween(range.first, range.last) + 1;

/** The `to_date` that contains the last day of the range, once the end-day rule is known. */
export const lastAsked = (range: DayRange, inclusive: boolean): Day =>
  inclusive ? range.last : addDays(range.last, 1);

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

  /** The next range of at most `most` days; undefined when all are taken. */
  next(most: number): DayRange | undefined {
    const range = this.peekRange(most);
    if (range !== undefined) this.#at += lengthOf(range);
    return range;
  }

  /** The same, not taken yet. `through`: no day of the range is later, but its first. */
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

/** All windows of a plan. While nothing is proved the first is a single day: the export that can prove the rule (S2). */
export function planWindows(days: readonly Day[], windowDays: number, inclusive: boolean | undefined): WindowPlan[] {
  const ranges = new DayRanges(days);
  const out: WindowPlan[] = [];
  for (let next = ranges.next(inclusive === undefined ? 1 : windowDays); next; next = ranges.next(windowDays)) {
    out.push({ ...next, from: next.first, to: lastAsked(next, inclusive ?? true) });
  }
  return out;
}
