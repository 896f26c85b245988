import { addDays, type Day } from '../base/days.ts';
import type { Plan } from './plan/which-days.ts';
import { type ImplausibleDay, implausible } from './plausible.ts';
import type { Receipt, RunFacts, StoredReceiptFacts } from './receipt.ts';

/** What the days of one plan have come to so far, for a place or for a stream: what its next state follows from. */
export class Progress {
  /** Receipts before the run, and of the days that it loaded. */
  readonly receipts: Map<Day, StoredReceiptFacts>;
  /** Days that an earlier run wanted and that the service no longer exports. */
  readonly lost: Day[] = [];
  isLoaded = false;
  readonly #plan: Plan;
  /** First day that is still exported, of a reader that has no start yet. */
  #start: Day;

  constructor(plan: Plan) {
    this.#plan = plan;
    this.receipts = new Map(plan.receipts);
    this.#start = plan.start;
  }

  /** Takes a day that was loaded; returns it if it is implausible. */
  addLoaded({ day, rows, to_date, is_over, requested_at }: Receipt): ImplausibleDay | undefined {
    this.isLoaded = true;
    this.receipts.set(day, { rows, to_date, is_over, requested_at });
    return implausible(day, this.receipts);
  }

  /** Takes a day that the service no longer exports. False if nobody wanted it before: the history begins after it. */
  addGone(day: Day): boolean {
    const { isNamed, gapFrom, state } = this.#plan;
    const isLost = gapFrom !== undefined && day >= gapFrom && this.receipts.get(day)?.is_over !== true;
    if (isNamed || isLost) this.lost.push(day);
    else if (state?.start_date === undefined && day >= this.#start) this.#start = addDays(day, 1);
    return isNamed || isLost;
  }

  /** True if a lost day fails the run. */
  get failsAtGap(): boolean {
    return this.#plan.isNamed || this.#plan.onGap === 'fail';
  }

  /** The facts to store with what was loaded so far. */
  facts(learned: Pick<RunFacts, 'now' | 'toDateInclusive' | 'finalNewline'>, isMixed = false): RunFacts {
    const { now, toDateInclusive, finalNewline } = learned;
    const { hashes, hashing, appends } = this.#plan;
    const gaps = this.failsAtGap ? [] : this.lost;
    return { now, toDateInclusive, finalNewline, start: this.#start, hashes, hashing, appends, isMixed, gaps };
  }
}
