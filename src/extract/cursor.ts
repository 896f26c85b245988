import { addDays, type Day, daysOf, earlierOf, laterOf } from '../base/days.ts';
import { CLOCK_TOLERANCE_MS, type Coverage, oldestDays } from './plan/days.ts';
import type { Plan } from './plan/plan.ts';
import type { ExportState, Receipt } from './window.ts';

/**
 * The cursor, with the gaps and the rest of the state, while windows are delivered one after the other. It is the first
 * wanted day that no window has completed, and passes no day that is not over everywhere.
 */
export class Cursor {
  /** The state to store with the last window; its cursor is never before that of an earlier window. */
  state: ExportState;
  readonly #plan: Plan;
  readonly #coverage: Coverage;
  readonly #gaps: Set<Day>;
  /** Days that windows of this run made complete. */
  readonly #completed = new Set<Day>();
  #start: Day;

  constructor(plan: Plan) {
    this.#plan = plan;
    this.#coverage = plan.coverage.clone();
    this.#gaps = new Set(plan.state.gaps ?? []);
    this.#start = plan.start;
    this.state = plan.state;
  }

  /**
   * Records a day that the service no longer has. A wanted day becomes a gap; for another day the start moves past
   * it. A day that is complete already, and was to be read again, is no gap, since nothing of it is lost.
   */
  recordLost(day: Day): 'gap' | 'clamped' {
    if (this.#completed.has(day)) return 'clamped';
    if (this.#plan.isGap(day)) {
      this.#coverage.add(day, day);
      this.#gaps.add(day);
      return 'gap';
    }
    if (this.#plan.coverage.has(day)) return 'clamped';
    // Days before the cursor (lookback) change nothing; the start moves past a first day that is gone.
    if (day === this.#start) this.#start = addDays(day, 1);
    return 'clamped';
  }

  /** Sets the start, which another extraction of the same days has moved. */
  moveStart(start: Day): void {
    this.#start = start;
  }

  /**
   * Records a window and returns the state to store with it. `found` holds the facts about the service that are known
   * by then. `now` is the time by the earlier of the two clocks (ms since 1970); the cursor is at most today in UTC-12.
   */
  record({ id, covers_from, covers_to }: Receipt, found: Partial<ExportState>, now: number): ExportState {
    if (covers_to !== null) {
      this.#coverage.add(covers_from, covers_to);
      for (const day of daysOf(covers_from, covers_to)) this.#completed.add(day);
    }
    const before = this.#correctStart(now) ? earlierOf(this.state.from_date, this.#start) : this.state.from_date;
    this.state = {
      ...this.state,
      ...found,
      version: 1,
      from_date: laterOf(before, this.#coverage.cursor(this.#start, now)),
      start_date: this.#start,
      last_receipt: id,
      ...(this.#gaps.size > 0 && { gaps: [...this.#gaps].sort() }),
    };
    return this.state;
  }

  /** Moves a start that this machine's fast clock put too late back to the oldest day. True if it did. */
  #correctStart(now: number): boolean {
    const { startIsClamped, historyDays, plannedAt } = this.#plan;
    if (!startIsClamped || plannedAt - now <= CLOCK_TOLERANCE_MS) return false;
    this.#start = earlierOf(this.#start, oldestDays(now, historyDays).probably);
    return true;
  }
}
