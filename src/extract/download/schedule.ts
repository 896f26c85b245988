import { addDays, type Day, daysOf } from '../../base/days.ts';
import { type DayRange, DayRanges, lastSettledDay, lengthOf } from '../plan/days.ts';
import { type DaysResult, noDownload, sentAtOf } from './download.ts';
import { EndRule, observeRange } from './end-rule.ts';
import { fetchRange } from './range.ts';
import { discard, earlierClock, isSurelyGone, type Run } from './run.ts';

/** Requests that are sent one by one to prove the end-day rule, before it is left open. */
const PROOF_ATTEMPTS = 3;
const UNSETTLED = 'it has not been over for settle_hours, by the earlier of this clock and the service’s';

type Task = () => Promise<DaysResult[]>;

/** Starts the downloads of a plan, a bounded number at once, and returns their results in the order of days. */
export class Scheduler {
  readonly #run: Run;
  readonly #ranges: DayRanges;
  readonly #rule: EndRule;
  readonly #pending: Promise<DaysResult[]>[] = [];
  #singles = 0;
  #rangeAttempts = 0;
  #failed = false;
  /** True once a day was left to a later run: then no later day may be handed on either, or it would come again. */
  #isHeldBack = false;

  constructor(run: Run) {
    this.#run = run;
    this.#ranges = new DayRanges(run.plan.days);
    this.#rule = new EndRule(run, this.#ranges);
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
  async shift(): Promise<DaysResult[] | undefined> {
    const head = this.#pending[0];
    if (head === undefined) return this.#unsettledRest();
    try {
      const results = await head;
      const { settleHours, appends } = this.#run.plan;
      if (settleHours === undefined && !appends) return results;
      const settled: DaysResult[] = [];
      for (const result of results) settled.push(...(await this.#settledPart(result)));
      return settled;
    } finally {
      this.#pending.shift();
    }
  }

  /** Waits for the downloads in progress; call it after the signal was aborted. */
  async close(): Promise<void> {
    await Promise.allSettled(this.#pending);
    await this.#rule.close();
  }

  /** The last day that is settled by the earlier of both clocks at `at` (S61); undefined: no day has to be. */
  #settledThrough(at: number): Day | undefined {
    const { settleHours } = this.#run.plan;
    return settleHours === undefined ? undefined : lastSettledDay(at, settleHours);
  }

  /** The days that were not requested, since they are not settled by the service's clock. */
  #unsettledRest(): DaysResult[] | undefined {
    const first = this.#ranges.peek();
    if (first === undefined || this.#failed) return undefined;
    let last = first;
    for (let days = this.#ranges.next(1); days !== undefined; days = this.#ranges.next(1)) last = days.last;
    return [noDownload({ first, last }, 'later', UNSETTLED)];
  }

  /** Without the days that were not settled when they were requested, and those behind a day that is left to a later run. */
  async #settledPart(result: DaysResult): Promise<DaysResult[]> {
    const { days } = result;
    if (result.kind === 'later') this.#isHeldBack = true;
    if (result.kind !== 'rows') return [result];
    const before = addDays(days.first, -1);
    const sentAt = Math.min(sentAtOf(result), earlierClock(this.#run));
    const through = this.#isHeldBack ? before : (this.#settledThrough(sentAt) ?? days.last);
    if (days.last <= through) return [result];
    await discard(this.#run, result);
    this.#isHeldBack = true;
    if (days.first > through) return [noDownload(days, 'later', UNSETTLED)];
    const rest = { first: addDays(through, 1), last: days.last };
    return [...(await this.#fetch({ first: days.first, last: through })), noDownload(rest, 'later', UNSETTLED)];
  }

  #next(): Task | undefined {
    const first = this.#ranges.peek();
    if (first === undefined || this.#isHeldBack) return undefined;
    const settled = this.#settledThrough(earlierClock(this.#run));
    if (settled !== undefined && first > settled) return undefined;
    if (isSurelyGone(this.#run, first)) return this.#gone(first);
    // One request shows whether all such days are gone, if the service sends a `Date`.
    if (this.#run.plan.likelyGaps.includes(first) && this.#pending.length > 0) return undefined;
    const { plan, known } = this.#run;
    const most = Math.min(plan.windowDays, known.maxWindowDays ?? plan.windowDays);
    const days = this.#ranges.peekRange(most, settled);
    return this.#alreadyFetched(first) ?? (days && this.#nextOf(days));
  }

  #gone(day: Day): Task {
    this.#ranges.next(1);
    const message = 'it is older than the service exports, by the clock of the service';
    return async () => [noDownload({ first: day, last: day }, 'gone', message)];
  }

  #alreadyFetched(day: Day): Task | undefined {
    const download = this.#rule.takeAhead(day);
    if (download === undefined) return undefined;
    const days = this.#ranges.next(1);
    return days && (async () => [{ ...download, days, contains: days.last }]);
  }

  /** The next request for these days, or for the first of them. What may prove the rule for later days goes alone. */
  #nextOf(days: DayRange): Task | undefined {
    const { proveFirst } = this.#run.plan;
    const { inclusive, rangesInclusive } = this.#run.known;
    const isAlone = this.#pending.length === 0;
    const isSingleUsable = inclusive === true || rangesInclusive === false || (inclusive === false && !proveFirst);
    if (lengthOf(days) > 1) {
      if (rangesInclusive !== undefined) return this.#take(days, () => this.#fetch(days));
      if (this.#mayRequestRange()) {
        const isProof = this.#rangeAttempts < PROOF_ATTEMPTS && inclusive !== false;
        if (isProof && !isAlone) return undefined;
        this.#rangeAttempts++;
        return this.#take(days, () => (proveFirst ? this.#proveRange(days) : this.#fetch(days)));
      }
    }
    const { first } = days;
    if (isSingleUsable) return this.#take({ first, last: first }, () => this.#fetch({ first, last: first }));
    if (!isAlone) return undefined;
    this.#singles++;
    return this.#take({ first, last: first }, () => this.#rule.fetchDay(first));
  }

  /** Whether several days may be requested together although it is not proved that they contain their end. */
  #mayRequestRange(): boolean {
    const { inclusive } = this.#run.known;
    if (this.#run.plan.proveFirst) return inclusive === true && this.#rangeAttempts === 0;
    return inclusive !== undefined || this.#singles >= PROOF_ATTEMPTS;
  }

  #take(days: DayRange, task: Task): Task {
    this.#ranges.next(lengthOf(days));
    return task;
  }

  /** Downloads days; what is not proved to contain its end asks for one day more, so that all of them are complete. */
  async #fetch(days: DayRange): Promise<DaysResult[]> {
    const results = await fetchRange(this.#run, days);
    for (const result of results) if (result.kind === 'rows') observeRange(this.#run, result);
    return results;
  }

  /** Several days in one request, if its rows prove that it contains its end; else each of them by itself. */
  async #proveRange(days: DayRange): Promise<DaysResult[]> {
    const results = await fetchRange(this.#run, days, true);
    const ranges = results.flatMap((result) => (result.kind === 'rows' && result.from < result.to ? [result] : []));
    if (ranges.length === 0 || ranges.some((download) => observeRange(this.#run, download))) return results;
    for (const result of results) await discard(this.#run, result);
    const singles: DaysResult[] = [];
    for (const day of daysOf(days.first, days.last)) {
      singles.push(...(await fetchRange(this.#run, { first: day, last: day })));
    }
    return singles;
  }
}
