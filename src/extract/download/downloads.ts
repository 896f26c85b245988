// This folder: from planned days to checked downloads. `export.ts` sends a request until its answer is
// final, `day.ts` says what that means for a day, and this file runs several days at once.

import { unlink } from 'node:fs/promises';
import type { Day } from '../../base/days.ts';
import { lastDayOver, oldestDay } from '../plan/calendar.ts';
import type { Plan } from '../plan/which-days.ts';
import type { DayDownload } from '../receipt.ts';
import type { ExtractDeps } from '../session.ts';
import { type DayResult, downloadDay } from './day.ts';
import { Run } from './run.ts';

/** The newest days that a first run asks for before all others, until one comes as CSV. */
const MAX_PROOFS = 7;

interface Task {
  readonly result: Promise<DayResult>;
  /** True once its files are there and wait for their turn. */
  isHeld: boolean;
}

/** Downloads the days of a plan, at most `maxConcurrentExports` at once, and delivers them in order. */
export class DayDownloads {
  readonly run: Run;
  /** Days that are started and not delivered. */
  readonly #tasks = new Map<Day, Task>();
  readonly #started = new Set<Day>();
  #running = 0;
  #next = 0;
  /** True once days may be started ahead of their turn. */
  #isOpen = false;

  private constructor(run: Run) {
    this.run = run;
  }

  static async open(plan: Plan, deps: ExtractDeps): Promise<DayDownloads> {
    return new DayDownloads(await Run.open(plan, deps));
  }

  /** The results in the order of days. Throws a failure that ends the run when the turn of its day comes. */
  async *results(): AsyncGenerator<DayResult, void, undefined> {
    await this.#sendFirst();
    this.#isOpen = true;
    for (const day of this.run.plan.days) {
      this.#startMore();
      const result = await this.#taskOf(day).result;
      this.run.signal.throwIfAborted();
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
    this.run.abort();
    await Promise.allSettled([...this.#tasks.values()].map(({ result }) => result));
    await this.run.close();
  }

  /**
   * Sends, one after the other, the requests on which others depend. First the day that shows whether an export includes
   * its end. Then, in a first run, the newest days that are over, until one proves that the service exports days. Then
   * the newest day that is probably lost: all days before a lost one are lost, too.
   */
  async #sendFirst(): Promise<void> {
    const { plan, deps } = this.run;
    const now = deps.clock.now();
    const over = plan.days.filter((day) => day <= lastDayOver(now));
    if (plan.endDayOn !== undefined) await this.#first(plan.endDayOn);
    for (const day of over.slice(-MAX_PROOFS).reverse()) {
      if (this.run.exportsDays || (await this.#first(day)).kind !== 'empty') break;
    }
    const lost = plan.days.findLast((day) => day < oldestDay(now, plan.historyDays));
    if (lost !== undefined) await this.#first(lost);
  }

  /** If the service gives no answer at all, the run ends. */
  async #first(day: Day): Promise<DayResult> {
    const result = await this.#taskOf(day).result;
    if (result.kind === 'failed' && !this.run.hasAnswered) throw result.error;
    return result;
  }

  /** Starts days in order, as many as may run or be held at once. */
  #startMore(): void {
    if (!this.#isOpen) return;
    const { plan, deps } = this.run;
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
    const task: Task = { result: downloadDay(this.run, day), isHeld: false };
    this.#tasks.set(day, task);
    const ended = (isHeld: boolean) => {
      this.#running--;
      task.isHeld = isHeld;
      this.#startMore();
    };
    task.result.then(
      ({ kind }) => ended(kind === 'loaded'),
      () => {
        // The run ends when it is the turn of this day: no day after it is started.
        this.#next = this.run.plan.days.length;
        ended(false);
      },
    );
    return task;
  }
}
