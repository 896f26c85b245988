import { addDays, type Day, daysBetween } from '../../base/days.ts';

/** Neighbouring days that are wanted together. */
export interface Span {
  readonly first: Day;
  readonly last: Day;
}

/** A window as planned: the days it is for and the days it will ask for. */
export interface WindowPlan extends Span {
  readonly from: Day;
  /** Sent as `to_date`; what is expected while the end-day rule is not proved yet. */
  readonly to: Day;
}

export const lengthOf = (span: Span): number => daysBetween(span.first, span.last) + 1;

/** The `to_date` that surely contains the last day of the span, once the rule is known. */
export const lastAsked = (span: Span, inclusive: boolean): Day => (inclusive ? span.last : addDays(span.last, 1));

/** Hands out the days of a plan in order, as spans of neighbours. */
export class Layout {
  readonly #days: readonly Day[];
  #at = 0;

  constructor(days: readonly Day[]) {
    this.#days = days;
  }

  get left(): number {
    return this.#days.length - this.#at;
  }

  peek(): Day | undefined {
    return this.#days[this.#at];
  }

  /** The next span of at most `most` days; undefined when all are handed out. */
  next(most: number): Span | undefined {
    const first = this.#days[this.#at];
    if (first === undefined) return undefined;
    let count = 1;
    while (count < most && this.#days[this.#at + count] === addDays(first, count)) count++;
    this.#at += count;
    return { first, last: addDays(first, count - 1) };
  }
}

/** All windows of a plan. While nothing is proved the first is a single day: the export that can prove the rule (S2). */
export function layOut(days: readonly Day[], windowDays: number, inclusive: boolean | undefined): WindowPlan[] {
  const layout = new Layout(days);
  const out: WindowPlan[] = [];
  for (let span = layout.next(inclusive === undefined ? 1 : windowDays); span; span = layout.next(windowDays)) {
    out.push({ ...span, from: span.first, to: lastAsked(span, inclusive ?? true) });
  }
  return out;
}
