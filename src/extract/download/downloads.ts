// This folder: from planned days to checked downloads: which request is sent when, and what its answer means.

import { unlink } from 'node:fs/promises';
import type { Day } from '../../base/days.ts';
import { lastDayOver, oldestDay } from '../plan/calendar.ts';
import type { Plan } from '../plan/plan.ts';
import type { DayDownload } from '../receipt.ts';
import type { ExtractDeps } from '../session.ts';
import { type DayResult, downloadDay } from './day.ts';
import { findEndDay } from './end-day.ts';
import { discard, newEffort } from './export.ts';
import { openRun, type Run } from './run.ts';
import type { ServiceFacts } from './service-facts.ts';

/** Days that wait for another one to be exported, before no more are started: such a service exports nothing. */
const MAX_WAITING = 7;

interface Task {
  readonly result: Promise<DayResult>;
  /** True once the result is there, with files that wait for their delivery. */
  hasFiles: boolean;
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
    for (const day of plan.days) {
      this.#startMore();
      const task = this.#tasks.get(day) ?? this.#start(day);
      const result = await task.result;
      signal.throwIfAborted();
      this.#tasks.delete(day);
      yield result;
    }
  }

  /** Removes the files of a day that was stored. */
  async remove({ files }: DayDownload): Promise<void> {
    for (const { path } of files) await unlink(path).catch(() => {});
  }

  /** Ends all downloads and removes their files. */
  async close(): Promise<void> {
    this.#run.abort();
    this.facts.giveUpWaiting();
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
      const { result } = this.#start(day);
      const waits = new Promise<void>((resolve) => {
        facts.onWaiting = resolve;
      });
      const first = await Promise.race([result, waits]);
      if (first?.kind === 'failed' && !facts.hasAnswered) throw first.error;
    }
    facts.onWaiting = () => this.#startMore();
  }

  /** Starts days in order. Days that wait for another day to be exported do not count. */
  #startMore(): void {
    if (!this.#isOpen) return;
    const { plan, deps, facts } = this.#run;
    const held = () => [...this.#tasks.values()].filter(({ hasFiles }) => hasFiles).length;
    while (
      this.#next < plan.days.length &&
      facts.waiting < MAX_WAITING &&
      this.#running - facts.waiting + held() < deps.maxConcurrentExports
    ) {
      const day = plan.days[this.#next++];
      if (!this.#started.has(day)) this.#start(day);
    }
    if (facts.waiting > 0 && facts.waiting === this.#running) facts.giveUpWaiting();
  }

  #start(day: Day): Task {
    this.#running++;
    this.#started.add(day);
    const task: Task = { result: downloadDay(this.#run, day), hasFiles: false };
    this.#tasks.set(day, task);
    const settle = (hasFiles: boolean) => {
      this.#running--;
      task.hasFiles = hasFiles;
      this.#startMore();
    };
    task.result.then(
      (result) => settle(result.kind === 'day'),
      () => {
        // The run ends when it is the turn of this day: no day after it is started.
        this.#next = this.#run.plan.days.length;
        settle(false);
      },
    );
    return task;
  }
}
