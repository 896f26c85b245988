import { laterOf } from '../base/days.ts';
import type { Coverage } from '../extract/coverage.ts';
import type { Plan } from '../extract/plan.ts';
import type { KnownState } from '../extract/state.ts';
import type { Window } from '../extract/window.ts';

/** What windows teach about the service, for the next ones and for the state. */
const KNOWLEDGE = ['to_date_inclusive', 'final_newline', 'max_window_days', 'name_groups'] as const;

/** Only the keys of a state that say what was found out about the service. */
export function knowledgeIn(state: KnownState): Partial<KnownState> {
  return Object.fromEntries(KNOWLEDGE.filter((key) => state[key] !== undefined).map((key) => [key, state[key]]));
}

/** The cursor of one stream: its own days, its own state, never backward. */
export class StreamCursor {
  state: KnownState;
  readonly #plan: Plan;
  readonly #coverage: Coverage;
  readonly #gaps: Set<string>;

  constructor(plan: Plan) {
    this.#plan = plan;
    this.state = plan.state;
    this.#coverage = plan.coverage.clone();
    this.#gaps = new Set(plan.state.gaps ?? []);
  }

  /** Takes in a window whose records this stream has; `lead` is the plan that it was extracted for. */
  take(window: Window, lead: Plan, now: number): void {
    const { receipt } = window;
    const found: KnownState = window.state;
    if (receipt.covers_to !== null) this.#coverage.add(receipt.covers_from, receipt.covers_to);
    for (const day of found.gaps ?? []) this.#lose(day);
    const moved = lead.start === this.#plan.start ? found.start_date : undefined;
    const start = moved ?? this.state.start_date ?? this.#plan.start;
    this.state = {
      ...this.state,
      ...knowledgeIn(found),
      version: 1,
      from_date: laterOf(this.state.from_date, this.#coverage.cursor(start, now)),
      start_date: start,
      last_receipt: receipt.id,
      ...(this.#gaps.size > 0 && { gaps: [...this.#gaps].sort() }),
    };
  }

  #lose(day: string): void {
    if (this.#plan.gapFrom === undefined || day < this.#plan.gapFrom) return;
    this.#coverage.add(day, day);
    this.#gaps.add(day);
  }
}
