import type { Day } from '../../base/days.ts';
import { type DayRange, DayRanges } from '../plan/day-ranges.ts';
import { type RangeDownload, windowOf, withoutWindow } from './download.ts';
import { EndRule } from './end-rule.ts';
import { fetchRange } from './range.ts';
import { isSurelyGone, type Run } from './run.ts';

/** Single days that are requested to prove the end-day rule, before several days are requested together. */
const SINGLE_DAY_ATTEMPTS = 3;

type Task = () => Promise<RangeDownload[]>;

/** Starts the downloads of a plan, a bounded number at once, and returns their results in the order of days. */
export class Scheduler {
  readonly #run: Run;
  readonly #ranges: DayRanges;
  readonly #rule: EndRule;
  readonly #pending: Promise<RangeDownload[]>[] = [];
  #singles = 0;
  #failed = false;

  constructor(run: Run) {
    this.#run = run;
    this.#ranges = new DayRanges(run.plan.days);
    this.#rule = new EndRule(run);
  }

  /** Starts downloads until `most` are in progress or finished and not yet shifted. */
  fill(most: number): void {
    while (!this.#failed && this.#pending.length < most) {
      const next = this.#next();
      if (next === undefined) return;
      const task = next();
      // The failure is thrown by `shift`; until then nothing new is started.
      task.catch(() => {
        this.#failed = true;
      });
      this.#pending.push(task);
    }
  }

  /** Settles when `shift` will not have to wait. */
  ready(): Promise<void> {
    return Promise.allSettled(this.#pending.slice(0, 1)).then(() => {});
  }

  /** The results for the next days; undefined when all are done. */
  async shift(): Promise<RangeDownload[] | undefined> {
    const head = this.#pending[0];
    if (head === undefined) return undefined;
    try {
      return await head;
    } finally {
      this.#pending.shift();
    }
  }

  /** Waits for the downloads in progress; call it after the signal was aborted. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#pending);
    await this.#rule.close();
  }

  #next(): Task | undefined {
    const first = this.#ranges.peek();
    if (first === undefined) return undefined;
    if (isSurelyGone(this.#run, first)) return this.#gone(first);
    // One request shows whether all such days are gone, if the service sends a `Date`.
    if (this.#run.plan.likelyGaps.includes(first) && this.#pending.length > 0) return undefined;
    const { inclusive, maxWindowDays } = this.#run.known;
    const most = Math.min(this.#run.plan.windowDays, maxWindowDays ?? this.#run.plan.windowDays);
    return inclusive === undefined ? this.#nextUnproved(most) : this.#nextProved(most, inclusive);
  }

  #gone(day: Day): Task {
    this.#ranges.next(1);
    const message = 'it is older than the service exports, by the clock of the service';
    return async () => [withoutWindow({ first: day, last: day }, 'gone', message)];
  }

  /** While the end-day rule is not proved, windows are downloaded one by one: each may prove it for the following ones. */
  #nextUnproved(most: number): Task | undefined {
    if (this.#pending.length > 0) return undefined;
    const together = most > 1 && !this.#run.plan.proveFirst && this.#singles++ >= SINGLE_DAY_ATTEMPTS;
    const days = this.#ranges.next(together ? most : 1);
    if (days === undefined) return undefined;
    if (days.first === days.last) return () => this.#rule.fetchDay(days.first);
    // One day more than wanted, so that the range is complete whether or not `to_date` is included.
    return () => fetchRange(this.#run, days, false);
  }

  #nextProved(most: number, inclusive: boolean): Task | undefined {
    const first = this.#ranges.peek();
    if (first === undefined) return undefined;
    return this.#alreadyFetched(first) ?? this.#task(this.#ranges.next(most), inclusive);
  }

  #alreadyFetched(day: Day): Task | undefined {
    const download = this.#rule.takeAhead(day);
    if (download === undefined) return undefined;
    const days = this.#ranges.next(1);
    return days && (async () => [windowOf(days, download, days.last)]);
  }

  #task(days: DayRange | undefined, inclusive: boolean): Task | undefined {
    return days && (() => fetchRange(this.#run, days, inclusive));
  }
}
