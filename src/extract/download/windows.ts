import { Layout, type Span } from '../plan/layout.ts';
import type { Answered } from './ask.ts';
import { EndRule } from './end-rule.ts';
import type { Outcome } from './outcome.ts';
import type { Run } from './run.ts';
import { fetchSpan } from './span.ts';

/** Single days that are tried for the proof before days are asked for together again. */
const SINGLE_TRIES = 3;

/** Starts the downloads of a plan, at most so many at once, and gives what became of them in the order of days. */
export class Downloads {
  readonly #run: Run;
  readonly #layout: Layout;
  readonly #rule: EndRule;
  readonly #pending: Promise<Outcome[]>[] = [];
  #singles = 0;
  #failed = false;

  constructor(run: Run) {
    this.#run = run;
    this.#layout = new Layout(run.plan.days);
    this.#rule = new EndRule(run);
  }

  /** Starts what may be started so that at most `most` are under way or waiting. */
  fill(most: number): void {
    while (!this.#failed && this.#pending.length < most) {
      const next = this.#next();
      if (next === undefined) return;
      const task = next();
      // A failure is thrown when its turn comes; nothing new is started before that.
      task.catch(() => {
        this.#failed = true;
      });
      this.#pending.push(task);
    }
  }

  /** What became of the next days; undefined when all are done. */
  async shift(): Promise<Outcome[] | undefined> {
    const head = this.#pending[0];
    if (head === undefined) return undefined;
    try {
      return await head;
    } finally {
      this.#pending.shift();
    }
  }

  /** Waits until nothing is under way any more; call it after the signal was aborted. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#pending);
    await this.#rule.close();
  }

  #next(): (() => Promise<Outcome[]>) | undefined {
    const { inclusive, maxWindowDays } = this.#run.known;
    const most = Math.min(this.#run.plan.windowDays, maxWindowDays ?? this.#run.plan.windowDays);
    if (inclusive === undefined) return this.#nextOpen(most);
    return this.#nextKnown(most, inclusive);
  }

  /** While the rule is open one window follows the other: each may settle it for all that come after. */
  #nextOpen(most: number): (() => Promise<Outcome[]>) | undefined {
    if (this.#pending.length > 0) return undefined;
    const together = most > 1 && !this.#run.plan.settleFirst && this.#singles++ >= SINGLE_TRIES;
    const span = this.#layout.next(together ? most : 1);
    if (span === undefined) return undefined;
    if (span.first === span.last) return () => this.#rule.fetchDay(span.first);
    // One day more than wanted: all of the span is in it under both readings.
    return () => fetchSpan(this.#run, span, false);
  }

  #nextKnown(most: number, inclusive: boolean): (() => Promise<Outcome[]>) | undefined {
    const ahead = this.#layout.peek();
    const answer = ahead === undefined ? undefined : this.#rule.takeAhead(ahead);
    const span = this.#layout.next(answer === undefined ? most : 1);
    if (span === undefined) return undefined;
    return answer === undefined ? () => fetchSpan(this.#run, span, inclusive) : async () => [given(span, answer)];
  }
}

const given = (span: Span, answer: Answered): Outcome => ({ kind: 'window', span, answer, contains: span.last });
