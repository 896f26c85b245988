import { addDays, type Day, earlierOf, laterOf } from '../base/days.ts';
import { sentAtOf } from './download/ask.ts';
import type { Fetch } from './download/outcome.ts';
import type { Knowledge } from './download/run.ts';
import { overThrough } from './plan/calendar.ts';
import type { Coverage } from './plan/coverage.ts';
import type { Plan } from './plan/plan.ts';
import type { KnownState } from './state.ts';

/** The cursor as windows become final, one after the other. */
export class Progress {
  readonly #plan: Plan;
  readonly #coverage: Coverage;
  readonly #gaps: Set<Day>;
  #start: Day;
  #fromDate: Day;

  constructor(plan: Plan) {
    this.#plan = plan;
    this.#coverage = plan.coverage.clone();
    this.#gaps = new Set(plan.state.gaps ?? []);
    this.#start = plan.start;
    this.#fromDate = plan.state.from_date;
  }

  /** A day that the service no longer has: a gap where it was wanted, else the start moves past it (S5). */
  lose(day: Day): 'gap' | 'clamped' {
    if (this.#plan.gapFrom !== undefined && day >= this.#plan.gapFrom) {
      this.#coverage.add(day, day);
      this.#gaps.add(day);
      return 'gap';
    }
    // Before the cursor (lookback) nothing changes; from the start on, the wish moves along with what there is.
    if (day === this.#start) this.#start = addDays(day, 1);
    return 'clamped';
  }

  /** Last day that the window makes complete, or null: contained for certain, and over everywhere when asked for. */
  coversTo(fetch: Fetch): Day | null {
    if (fetch.contains === undefined) return null;
    const last = earlierOf(fetch.contains, overThrough(sentAtOf(fetch.answer)));
    return last < fetch.span.first ? null : last;
  }

  /** The state to store with this window: never behind an earlier one, never past today in UTC-12. */
  stateAfter(fetch: Fetch, receipt: string, known: Knowledge, now: number): KnownState {
    const last = this.coversTo(fetch);
    if (last !== null) this.#coverage.add(fetch.span.first, last);
    this.#fromDate = laterOf(this.#fromDate, this.#coverage.cursor(this.#start, now));
    return {
      ...this.#plan.state,
      version: 1,
      from_date: this.#fromDate,
      start_date: this.#start,
      last_receipt: receipt,
      ...(!this.#plan.ruleConfigured && known.inclusive !== undefined && { to_date_inclusive: known.inclusive }),
      ...(known.finalNewline !== undefined && { final_newline: known.finalNewline }),
      ...(known.maxWindowDays !== undefined && { max_window_days: known.maxWindowDays }),
      ...(known.nameGroups !== undefined && { name_groups: known.nameGroups }),
      ...(this.#gaps.size > 0 && { gaps: [...this.#gaps].sort() }),
    };
  }
}
