// This folder: from planned days to checked downloads: which request is sent when, and what its answer means.

import { unlink } from 'node:fs/promises';
import type { Day } from '../../base/days.ts';
import { lastDayOver, oldestDay } from '../plan/calendar.ts';
import type { Plan } from '../plan/which-days.ts';
import type { DayDownload } from '../receipt.ts';
import type { ExtractDeps } from '../session.ts';
import { type DayResult, downloadDay, type Unproven } from './day.ts';
import { findEndDay } from './end-day.ts';
import { discard, newEffort } from './export.ts';
import { openRun, type Run } from './run.ts';
import type { ServiceFacts } from './service-facts.ts';

/** Days after an unproven one that may prove it: a service that exports none of them exports nothing. */
const MAX_PROOFS = 7;

interface Task {
  readonly result: Promise<DayResult | Unproven>;
  /** True once the result is there and waits for its turn: it has files, or will have. */
  isHeld: boolean;
}

/** Downloads the days of a plan, at most `maxConcurrentExports` at once, and delivers them in order. */
export class DayDownloads {
  readonly facts: ServiceFacts;
  readonly #run: Run;
  /** Days that are started and not delivered. */
  readonly #tasks = new Map<Day, Task>();
  readonly #started = new Set<Day>();
  #running = 0;
  #next = 0;
  /** True once days may be started ahead of their turn. */
  #isOpen = false;

  private constructor(run: Run) {
    this.#run = run;
    this.facts = run.facts;
  }

  static async open(plan: Plan, deps: ExtractDeps): Promise<DayDownloads> {
    return new DayDownloads(await openRun(plan, deps));
  }

  /** The results in the order of days. Throws a failure that ends the run when the turn of its day comes. */
  async *results(): AsyncGenerator<DayResult, void, undefined> {
    const { plan, signal } = this.#run;
    await this.#sendFirst();
    this.#isOpen = true;
    for (const [i, day] of plan.days.entries()) {
      this.#startMore();
      const answer = await this.#taskOf(day).result;
      const result = answer.kind === 'unproven' ? await answer.decide(await this.#isAnyExported(i)) : answer;
      signal.throwIfAborted();
      this.#tasks.delete(day);
      yield result;
    }
  }

  /** True if the service exports a day in this run; waits for the days after the one at `index`. */
  async #isAnyExported(index: number): Promise<boolean> {
    const { plan, facts } = this.#run;
    for (const day of plan.days.slice(index + 1, index + 1 + MAX_PROOFS)) {
      if (facts.hasExported) break;
      await this.#taskOf(day).result;
    }
    return facts.hasExported;
  }

  /** Removes the files of a day that was stored. */
  async remove({ files }: DayDownload): Promise<void> {
    for (const { path } of files) await unlink(path).catch(() => {});
  }

  /** Ends all downloads and removes their files. */
  async close(): Promise<void> {
    this.#run.abort();
    await Promise.allSettled([...this.#tasks.values()].map(({ result }) => result));
    await this.#run.close();
  }

  /**
   * Sends the requests on which others depend. First the day on which the end of an export is found out. Then the
   * newest day that is over, in a first run: it shows that the service exports days at all. Then the newest day that is
   * probably lost: all days before a lost one are lost, too. If the service gives no answer at all, the run ends.
   */
  async #sendFirst(): Promise<void> {
    const { plan, deps, facts } = this.#run;
    const { days, endDayOn, receipts } = plan;
    if (endDayOn !== undefined && !days.includes(endDayOn)) {
      const { answer } = await findEndDay(this.#run, endDayOn, newEffort());
      await discard(answer);
    }
    const now = deps.clock.now();
    const newest = receipts.size === 0 ? days.findLast((day) => day <= lastDayOver(now)) : undefined;
    const lost = days.findLast((day) => day < oldestDay(now, plan.historyDays));
    for (const day of new Set([endDayOn, newest, lost])) {
      if (day === undefined || !days.includes(day)) continue;
      const first = await this.#start(day).result;
      if (first.kind === 'failed' && !facts.hasAnswered) throw first.error;
    }
  }

  /** Starts days in order, as many as may run or be held at once. */
  #startMore(): void {
    if (!this.#isOpen) return;
    const { plan, deps } = this.#run;
    const held = () => [...this.#tasks.values()].filter(({ isHeld }) => isHeld).length;
    while (this.#next < plan.days.length && this.#running + held() < deps.maxConcurrentExports) {
      const day = plan.days[this.#next++];
      if (!this.#started.has(day)) this.#start(day);
    }
  }

  #taskOf(day: Day): Task {
    return this.#tasks.get(day) ?? this.#start(day);
  }

  #start(day: Day): Task {
    this.#running++;
    this.#started.add(day);
    const task: Task = { result: downloadDay(this.#run, day), isHeld: false };
    this.#tasks.set(day, task);
    const ended = (isHeld: boolean) => {
      this.#running--;
      task.isHeld = isHeld;
      this.#startMore();
    };
    task.result.then(
      ({ kind }) => ended(kind === 'day' || kind === 'unproven'),
      () => {
        // The run ends when it is the turn of this day: no day after it is started.
        this.#next = this.#run.plan.days.length;
        ended(false);
      },
    );
    return task;
  }
}
