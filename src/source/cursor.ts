import { addDays, type Day, laterOf } from '../base/days.ts';
import type { Coverage } from '../extract/plan/coverage.ts';
import type { Plan } from '../extract/plan/plan.ts';
import type { KnownState } from '../extract/state.ts';
import type { Receipt, Window } from '../extract/window.ts';
import { sinceOf, withReading } from './reading.ts';

/** What the windows of a read have shown about the service, for the following windows and for the state. */
const KNOWLEDGE = ['to_date_inclusive', 'ranges_inclusive', 'final_newline', 'max_window_days', 'name_groups'] as const;

/** The keys of a state that hold knowledge about the service. */
export function knowledgeIn(state: KnownState): Partial<KnownState> {
  return Object.fromEntries(KNOWLEDGE.filter((key) => state[key] !== undefined).map((key) => [key, state[key]]));
}

/** The cursor of one stream: its own days, its own state, never backward. */
export class StreamCursor {
  state: KnownState;
  readonly #plan: Plan;
  readonly #coverage: Coverage;
  readonly #gaps: Set<string>;
  readonly #since: string | undefined;

  /** `now`: when the read begins, ms since 1970. */
  constructor(plan: Plan, now: number) {
    this.#plan = plan;
    // A full refresh has a mark of its own, and a settled day is read once anyway.
    const looksBack = !plan.fullRefresh && plan.delivery === 'fresh' && plan.lookbackDays > 0;
    this.#since = looksBack ? (sinceOf(plan.state) ?? new Date(now).toISOString()) : undefined;
    this.state = plan.state;
    this.#coverage = plan.coverage.clone();
    this.#gaps = new Set(plan.state.gaps ?? []);
  }

  /** Adds a window whose records were written to this stream; `lead` is the plan that it was extracted for. */
  take(window: Window, lead: Plan, now: number): void {
    const { receipt } = window;
    const found: KnownState = window.state;
    if (receipt.covers_to !== null) this.#coverage.add(receipt.covers_from, receipt.covers_to);
    for (const day of found.gaps ?? []) this.#lose(day);
    const moved = lead.start === this.#plan.start ? found.start_date : undefined;
    const start = moved ?? this.state.start_date ?? this.#plan.start;
    const state: KnownState = {
      ...this.state,
      ...knowledgeIn(found),
      version: 1,
      from_date: laterOf(this.state.from_date, this.#coverage.cursor(start, now)),
      start_date: start,
      last_receipt: receipt.id,
      ...(this.#plan.fullRefresh && { refreshed_through: this.#refreshedThrough(window) }),
      ...(this.#gaps.size > 0 && { gaps: [...this.#gaps].sort() }),
    };
    this.state = withReading(state, this.#isWithin(state, receipt) ? this.#since : undefined);
  }

  /** Marks the read as complete: the next one reads the lookback days again. */
  finish(): void {
    this.state = withReading(this.state, undefined);
  }

  /** True while days are left to read, once the ones before the cursor have all been read. */
  #isWithin(state: KnownState, { to, covers_to }: Receipt): boolean {
    const { lastDay, state: first } = this.#plan;
    const isLast = lastDay === undefined || (covers_to ?? to) >= lastDay;
    return !isLast && (sinceOf(first) !== undefined || state.from_date > first.from_date);
  }

  /** The last day that a full refresh has handed on; it may not be over yet, and is not read again within the same job. */
  #refreshedThrough({ receipt: { from, to }, state }: Window): Day {
    const isEndIncluded = from === to || state.ranges_inclusive === true;
    return laterOf(this.state.refreshed_through ?? from, isEndIncluded ? to : addDays(to, -1));
  }

  #lose(day: string): void {
    if (this.#plan.gapFrom === undefined || day < this.#plan.gapFrom || this.#coverage.has(day)) return;
    this.#coverage.add(day, day);
    this.#gaps.add(day);
  }
}
