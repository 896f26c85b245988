import { addDays, type Day, daysOf } from '../../base/days.ts';
import { type DayRange, DayRanges, lastSettledDay, lengthOf, only } from '../plan/days.ts';
import { type DaysResult, type Download, noDownload, sentAtOf } from './download.ts';
import { EndRule, observeRange } from './end-rule.ts';
import { discard, type Extraction } from './extraction.ts';
import { fetchRange } from './range.ts';

/** Maximum number of requests that are sent one by one to prove the end-day rule; after them it stays unproved. */
const PROOF_ATTEMPTS = 3;
const GONE = 'it is older than the service exports, by the clock of the service';
const UNSETTLED = 'it has not been over for settle_hours, by the earlier of this clock and the service’s';

/** What is done with the next days. */
interface DayStep {
  readonly days: DayRange;
  /** True if it is taken only while no download is in progress, since its result decides on later days. */
  readonly isAlone: boolean;
  take(): Promise<DaysResult[]>;
}

/** Starts the downloads of a plan, a bounded number at once, and returns their results in the order of days. */
export class Scheduler {
  readonly #extraction: Extraction;
  readonly #ranges: DayRanges;
  readonly #rule: EndRule;
  readonly #pending: Promise<DaysResult[]>[] = [];
  #singles = 0;
  #rangeAttempts = 0;
  #failed = false;
  /** True once a day was left to a later run: then no later day may be delivered either, or it would come again. */
  #isHeldBack = false;

  constructor(extraction: Extraction) {
    this.#extraction = extraction;
    this.#ranges = new DayRanges(extraction.plan.days);
    this.#rule = new EndRule(extraction, this.#ranges);
  }

  /** Starts downloads until `most` are in progress or finished and not yet shifted. */
  fill(most: number): void {
    while (!this.#failed && this.#pending.length < most) {
      const next = this.#start();
      if (next === undefined) return;
      // The failure is thrown by `shift`; until then nothing new is started.
      next.catch(() => {
        this.#failed = true;
      });
      this.#pending.push(next);
    }
  }

  /** Resolves when `shift` need not wait. */
  ready(): Promise<void> {
    return Promise.allSettled(this.#pending.slice(0, 1)).then(() => {});
  }

  /** Returns the results for the next days; undefined when all are done. */
  async shift(): Promise<DaysResult[] | undefined> {
    const head = this.#pending[0];
    if (head === undefined) return this.#unsettledRest();
    try {
      const results = await head;
      const { settleHours, appends } = this.#extraction.plan;
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

  /** The last day that has been over for the settle hours at `at` (S61); undefined if days need not be settled. */
  #settledThrough(at: number): Day | undefined {
    const { settleHours } = this.#extraction.plan;
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

  /** The result without days that were not settled when requested, or follow a day that is left to a later run. */
  async #settledPart(result: DaysResult): Promise<DaysResult[]> {
    const { days } = result;
    if (result.kind === 'later') this.#isHeldBack = true;
    if (result.kind !== 'rows') return [result];
    const before = addDays(days.first, -1);
    const sentAt = Math.min(sentAtOf(result), this.#extraction.facts.earlierTime());
    const through = this.#isHeldBack ? before : (this.#settledThrough(sentAt) ?? days.last);
    if (days.last <= through) return [result];
    await discard(this.#extraction, result);
    this.#isHeldBack = true;
    if (days.first > through) return [noDownload(days, 'later', UNSETTLED)];
    const rest = { first: addDays(through, 1), last: days.last };
    return [...(await this.#fetch({ first: days.first, last: through })), noDownload(rest, 'later', UNSETTLED)];
  }

  /** Starts the next step; undefined if there is none, or if it has to wait for the downloads in progress. */
  #start(): Promise<DaysResult[]> | undefined {
    const step = this.#next();
    if (step === undefined || (step.isAlone && this.#pending.length > 0)) return undefined;
    this.#ranges.next(lengthOf(step.days));
    return step.take();
  }

  /** Decides what to do with the next days, and changes nothing; undefined if no more days are to be requested now. */
  #next(): DayStep | undefined {
    const { plan, facts } = this.#extraction;
    const { inclusive, rangesInclusive } = facts.known;
    const first = this.#ranges.peek();
    const settled = this.#settledThrough(facts.earlierTime());
    if (first === undefined || this.#isHeldBack || (settled !== undefined && first > settled)) return undefined;
    const day = only(first);
    if (facts.isSurelyGone(first)) {
      return { days: day, isAlone: false, take: async () => [noDownload(day, 'gone', GONE)] };
    }
    // One request shows whether all such days are gone, if the service sends a `Date`.
    const isAlone = plan.likelyGaps.includes(first);
    const download = this.#rule.ahead(first);
    if (download !== undefined) return { days: day, isAlone, take: () => this.#takeAhead(download, day) };
    const most = Math.min(plan.windowDays, facts.known.maxWindowDays ?? plan.windowDays);
    const days = this.#ranges.peekRange(most, settled);
    if (days !== undefined && days.first !== days.last) {
      if (rangesInclusive !== undefined) return { days, isAlone, take: () => this.#fetch(days) };
      if (this.#mayRequestRange()) {
        const isProof = this.#rangeAttempts < PROOF_ATTEMPTS && inclusive !== false;
        return { days, isAlone: isAlone || isProof, take: () => this.#tryRange(days) };
      }
    }
    const isUsable = inclusive === true || rangesInclusive === false || (inclusive === false && !plan.proveFirst);
    if (isUsable) return { days: day, isAlone, take: () => this.#fetch(day) };
    return { days: day, isAlone: true, take: () => this.#proveDay(first) };
  }

  async #takeAhead(download: Download, day: DayRange): Promise<DaysResult[]> {
    this.#rule.releaseAhead();
    return [{ ...download, days: day, contains: day.first }];
  }

  #tryRange(days: DayRange): Promise<DaysResult[]> {
    this.#rangeAttempts++;
    return this.#extraction.plan.proveFirst ? this.#proveRange(days) : this.#fetch(days);
  }

  #proveDay(day: Day): Promise<DaysResult[]> {
    this.#singles++;
    return this.#rule.fetchDay(day);
  }

  /** True if several days may be requested together although it is not proved that such a request contains its end. */
  #mayRequestRange(): boolean {
    const { inclusive } = this.#extraction.facts.known;
    if (this.#extraction.plan.proveFirst) return inclusive === true && this.#rangeAttempts === 0;
    return inclusive !== undefined || this.#singles >= PROOF_ATTEMPTS;
  }

  /** Downloads days. While a request may not contain its end, it asks for one day more. */
  async #fetch(days: DayRange): Promise<DaysResult[]> {
    const results = await fetchRange(this.#extraction, days);
    for (const result of results) if (result.kind === 'rows') observeRange(this.#extraction, result);
    return results;
  }

  /** Downloads several days in one request if its rows prove that it contains its end; else each day by itself. */
  async #proveRange(days: DayRange): Promise<DaysResult[]> {
    const results = await fetchRange(this.#extraction, days, { assumesEnd: true });
    const ranges = results.flatMap((result) => (result.kind === 'rows' && result.from < result.to ? [result] : []));
    if (ranges.length === 0 || ranges.some((download) => observeRange(this.#extraction, download))) return results;
    for (const result of results) await discard(this.#extraction, result);
    const singles: DaysResult[] = [];
    for (const day of daysOf(days.first, days.last)) singles.push(...(await fetchRange(this.#extraction, only(day))));
    return singles;
  }
}
