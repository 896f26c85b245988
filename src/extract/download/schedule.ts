import { addDays, type Day, daysOf } from '../../base/days.ts';
import type { Batch } from '../batch.ts';
import type { Concurrency } from '../deps.ts';
import { requestKey } from '../export-request.ts';
import { type DayRange, DayRanges, lastSettledDay, lengthOf, only, toDateFor } from '../plan/days.ts';
import { type DaysResult, type Download, noDownload, rowCount, sentAtOf } from './download.ts';
import { EndRule, observeRange } from './end-rule.ts';
import { discard, type Extraction } from './extraction.ts';
import { fetchRange } from './range.ts';

/** Maximum number of requests that are sent one by one to prove the end-day rule; after them it stays unproved. */
const PROOF_ATTEMPTS = 3;
/** Maximum number of days that one step takes for gone. */
const GONE_AT_ONCE = 1_000;
const GONE = 'it is older than the service exports, by the clock of the service';
const UNSETTLED = 'it has not been over for settle_hours, by the earlier of this clock and the service’s';

/** What is done with the next days. */
interface DayStep {
  readonly days: DayRange;
  /** True if it is taken only while no download is in progress, since its result decides on later days. */
  readonly isAlone: boolean;
  take(extraction: Extraction): Promise<DaysResult[]>;
}

/** Days whose downloads are in progress, or finished and not yet shifted. */
interface Pending {
  readonly days: DayRange;
  readonly results: Promise<DaysResult[]>;
  /** Ends the downloads, and removes all that they have stored. */
  cancel(): Promise<void>;
  hasFailed: boolean;
}

/** Starts the downloads of a plan, a bounded number at once, and returns their results in the order of days. */
export class Scheduler {
  readonly #extraction: Extraction;
  readonly #ranges: DayRanges;
  readonly #rule: EndRule;
  readonly #batch: Batch;
  readonly #pending: Pending[] = [];
  /** The results that `shift` returns next. */
  #head: Promise<DaysResult[]> | undefined;
  readonly #concurrency: Concurrency;
  #makingRoom: Promise<boolean> | undefined;
  #cancelling = Promise.resolve();
  #singles = 0;
  #rangeAttempts = 0;
  /** True once a day was left to a later run: then no later day may be delivered either, or it would come again. */
  #isHeldBack = false;

  constructor(extraction: Extraction, batch: Batch) {
    this.#extraction = { ...extraction, makeRoom: () => this.#makeRoom() };
    this.#batch = batch;
    this.#concurrency = extraction.deps.sharing?.concurrency ?? { max: Number.POSITIVE_INFINITY };
    this.#ranges = new DayRanges(extraction.plan.days);
    this.#rule = new EndRule(this.#extraction, this.#ranges);
  }

  /** Starts downloads until `most` are in progress or finished and not yet shifted. */
  fill(most: number): void {
    // A failure is thrown by `shift`; until then nothing new is started.
    while (!this.#hasFailed && this.#pending.length < Math.min(most, this.#concurrency.max)) {
      const next = this.#start();
      if (next === undefined) return;
      this.#pending.push(next);
    }
  }

  get #hasFailed(): boolean {
    return this.#pending.some(({ hasFailed }) => hasFailed);
  }

  /** Resolves when `shift` need not wait. */
  async ready(): Promise<void> {
    const [first] = this.#pending;
    if (first === undefined) return;
    this.#head ??= this.#settled(first.results);
    await Promise.allSettled([this.#head]);
  }

  /** Returns the results for the next days; undefined when all are done. */
  async shift(): Promise<DaysResult[] | undefined> {
    await this.ready();
    const head = this.#head;
    if (head === undefined) return this.#unsettledRest();
    this.#head = undefined;
    this.#pending.shift();
    return head;
  }

  /** Waits for the downloads in progress; call it after the signal was aborted. */
  async close(): Promise<void> {
    await Promise.allSettled([...this.#pending.map(({ results }) => results), this.#head, this.#cancelling]);
    await this.#rule.close();
  }

  /** Calls `#removeSomething` once for all downloads that lack room at the same time. */
  #makeRoom(): Promise<boolean> {
    this.#makingRoom ??= this.#removeSomething().finally(() => {
      this.#makingRoom = undefined;
    });
    return this.#makingRoom;
  }

  /**
   * Frees space on the disk of the spool for the first days. It commits the windows that wait; if none waits, it
   * removes a file that an ended run left; if there is none, it gives up the last download. False if there is nothing
   * to free.
   */
  async #removeSomething(): Promise<boolean> {
    const flushed = this.#batch.flush();
    if (flushed !== undefined) {
      await flushed;
      return true;
    }
    const { spool, deps } = this.#extraction;
    if (await spool.discardLastUnused()) return true;
    const last = this.#pending.length > 1 ? this.#pending.pop() : undefined;
    if (last === undefined) return false;
    // Each time one download fewer is allowed, so that this ends. If the files stay for further targets, their room
    // does not come back: then one download at a time.
    const max = deps.sharing?.keep === true ? 1 : this.#pending.length;
    this.#concurrency.max = max;
    this.#ranges.putBack(last.days);
    const { first } = last.days;
    const message =
      `The disk of the spool folder ${spool.folder} lacks room for so many downloads: ${max} at once in the rest of ` +
      `this run. That of ${first} is given up and requested again later.`;
    deps.logger.warn('spool.concurrency', message, { window: first, at_once: max });
    this.#cancelling = last.cancel();
    await this.#cancelling;
    return true;
  }

  /** The last day that has been over for the settle hours at `at`; undefined if days need not be settled. */
  #settledThrough(at: number): Day | undefined {
    const { settleHours } = this.#extraction.plan;
    return settleHours === undefined ? undefined : lastSettledDay(at, settleHours);
  }

  /** The days that were not requested, since they are not settled by the service's clock. */
  #unsettledRest(): DaysResult[] | undefined {
    const first = this.#ranges.peek();
    if (first === undefined) return undefined;
    let last = first;
    for (let days = this.#ranges.next(1); days !== undefined; days = this.#ranges.next(1)) last = days.last;
    return [noDownload({ first, last }, 'later', UNSETTLED)];
  }

  /** The results without days that are left to a later run. */
  async #settled(pending: Promise<DaysResult[]>): Promise<DaysResult[]> {
    const results = await pending;
    const { settleHours, appends } = this.#extraction.plan;
    if (settleHours === undefined && !appends) return results;
    const settled: DaysResult[] = [];
    for (const result of results) settled.push(...(await this.#settledPart(result)));
    return settled;
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
    const settled = await this.#fetch(this.#extraction, { first: days.first, last: through });
    return [...settled, noDownload(rest, 'later', UNSETTLED)];
  }

  /** Starts the next step; undefined if there is none, or if it has to wait for the downloads in progress. */
  #start(): Pending | undefined {
    const step = this.#next();
    if (step === undefined || (step.isAlone && this.#pending.length > 0)) return undefined;
    const { days } = step;
    this.#ranges.next(lengthOf(days));
    const { spool, signal } = this.#extraction;
    const controller = new AbortController();
    const paths: Extraction['paths'] = [];
    const extraction = { ...this.#extraction, signal: AbortSignal.any([signal, controller.signal]), paths };
    const results = step.take(extraction).then((taken) => this.#withoutGone(taken));
    const cancel = async () => {
      controller.abort(new Error('an earlier download needs the room'));
      await Promise.allSettled([results]);
      for (const path of paths) await spool.discard({ path });
    };
    const pending: Pending = { days, results, cancel, hasFailed: false };
    results.catch(() => {
      pending.hasFailed = true;
    });
    return pending;
  }

  /**
   * The results, in which days that the service has lost are marked as gone. A service may answer a day that is
   * too old with what it still has, instead of a refusal. So an answer without rows is no empty day if the day is too
   * old by both clocks. The file of such an answer is discarded for further targets, too: each target judges an answer
   * of its own, by its time.
   */
  async #withoutGone(results: readonly DaysResult[]): Promise<DaysResult[]> {
    const { plan, facts, spool } = this.#extraction;
    const judged: DaysResult[] = [];
    for (const result of results) {
      const { first } = result.days;
      const answer = result.kind === 'rows' && result.files.some((file) => file.exports > 0) ? result : undefined;
      const hasRows = answer !== undefined && rowCount(answer) > 0;
      if (hasRows) facts.recordExported(first);
      const isGone = answer !== undefined && !hasRows && plan.likelyGaps.has(first) && facts.isSurelyGone(first);
      if (isGone) for (const file of answer.files) await spool.discard(file);
      judged.push(isGone ? noDownload(result.days, 'gone', GONE) : result);
    }
    return judged;
  }

  /**
   * Number of days of an export that begins with the day, and that an ended run left: it needs no request; 0 if none.
   */
  #reusableDays(day: Day): number {
    const { plan, spool, facts } = this.#extraction;
    const { singleDaysInclusive, rangesInclusive = plan.proveFirst } = facts.known;
    const isLeft = (days: DayRange) => {
      const isRange = days.first !== days.last;
      // A single day whose rule is not proved is requested in both ways.
      const rules = isRange ? [rangesInclusive] : [singleDaysInclusive ?? true, singleDaysInclusive ?? false];
      const ends = rules.map((inclusive) => toDateFor(days, inclusive));
      return ends.some((to) => spool.hasReusable(requestKey({ ...plan.filters, from: day, to })));
    };
    const ranges = daysOf(day, addDays(day, plan.windowDays - 1)).map((last) => ({ first: day, last }));
    return ranges.findLastIndex(isLeft) + 1;
  }

  /**
   * The days, from the next one on, that are surely gone and need no request. After an early start there may be
   * hundreds of thousands.
   */
  #goneDays(first: Day): Day[] {
    const isGone = (day: Day) => this.#extraction.facts.isSurelyGone(day) && this.#reusableDays(day) === 0;
    if (!isGone(first)) return [];
    const days = daysOf(first, this.#ranges.peekRange(GONE_AT_ONCE)?.last ?? first);
    const end = days.findIndex((day) => !isGone(day));
    return end < 0 ? days : days.slice(0, end);
  }

  /**
   * Decides what to do with the next days, and changes nothing; undefined if no more days are to be requested now. D is
   * the next day. The first line that holds:
   *
   *   no day is left, D is not settled, or a day was left to a later run  undefined
   *   D is surely gone                                                    D and gone days after it are reported
   *   [D,D] was requested ahead, and single days are proved whole         its download is the one of D
   *   several days, and it is known whether an export has its end         one request for all of them
   *   several days, and they may be requested before that is known        one request for all of them, to find it out
   *   it is known with which `to_date` D is requested                     one request for D
   *   any other                                                           the end rule requests D, to find it out
   */
  #next(): DayStep | undefined {
    const { plan, facts } = this.#extraction;
    const { singleDaysInclusive, rangesInclusive } = facts.known;
    const first = this.#ranges.peek();
    const settled = this.#settledThrough(facts.earlierTime());
    if (first === undefined || this.#isHeldBack || (settled !== undefined && first > settled)) return undefined;
    const day = only(first);
    const gone = this.#goneDays(first);
    if (gone.length > 0) {
      const take = async () => gone.map((lost) => noDownload(only(lost), 'gone', GONE));
      return { days: { first, last: gone[gone.length - 1] }, isAlone: false, take };
    }
    // If the service sends a `Date`, one request for one day shows whether all such days are gone.
    const isAlone = plan.likelyGaps.has(first);
    const download = this.#rule.ahead(first);
    if (download !== undefined)
      return { days: day, isAlone, take: ({ paths }) => this.#takeAhead(download, day, paths) };
    const isDoubtful = isAlone && facts.known.oldestExported === undefined;
    const most = isDoubtful
      ? Math.max(1, this.#reusableDays(first))
      : Math.min(plan.windowDays, facts.known.maxWindowDays ?? plan.windowDays);
    const days = this.#ranges.peekRange(most, settled);
    if (days !== undefined && days.first !== days.last) {
      if (rangesInclusive !== undefined) return { days, isAlone, take: (extraction) => this.#fetch(extraction, days) };
      if (this.#mayRequestRange()) {
        const isProof = this.#rangeAttempts < PROOF_ATTEMPTS && singleDaysInclusive !== false;
        return { days, isAlone: isAlone || isProof, take: (extraction) => this.#tryRange(extraction, days) };
      }
    }
    const isUsable =
      singleDaysInclusive === true || rangesInclusive === false || (singleDaysInclusive === false && !plan.proveFirst);
    if (isUsable) return { days: day, isAlone, take: (extraction) => this.#fetch(extraction, day) };
    return { days: day, isAlone: true, take: () => this.#proveDay(first) };
  }

  async #takeAhead(download: Download, day: DayRange, paths: Extraction['paths']): Promise<DaysResult[]> {
    this.#rule.releaseAhead();
    paths.push(...download.files.map(({ path }) => path));
    return [{ ...download, days: day, contains: day.first }];
  }

  #tryRange(extraction: Extraction, days: DayRange): Promise<DaysResult[]> {
    this.#rangeAttempts++;
    return extraction.plan.proveFirst ? this.#proveRange(extraction, days) : this.#fetch(extraction, days);
  }

  #proveDay(day: Day): Promise<DaysResult[]> {
    this.#singles++;
    return this.#rule.fetchDay(day);
  }

  /** True if several days may be requested together although it is not proved that such a request contains its end. */
  #mayRequestRange(): boolean {
    const { singleDaysInclusive } = this.#extraction.facts.known;
    if (this.#extraction.plan.proveFirst) return singleDaysInclusive === true && this.#rangeAttempts === 0;
    return singleDaysInclusive !== undefined || this.#singles >= PROOF_ATTEMPTS;
  }

  /** Downloads days. While a request may not contain its end, it asks for one day more. */
  async #fetch(extraction: Extraction, days: DayRange): Promise<DaysResult[]> {
    const results = await fetchRange(extraction, days);
    for (const result of results) if (result.kind === 'rows') observeRange(extraction, result);
    return results;
  }

  /** Downloads several days in one request if its rows prove that it contains its end; else each day by itself. */
  async #proveRange(extraction: Extraction, days: DayRange): Promise<DaysResult[]> {
    const results = await fetchRange(extraction, days, { assumesEnd: true });
    const ranges = results.flatMap((result) => (result.kind === 'rows' && result.from < result.to ? [result] : []));
    if (ranges.length === 0 || ranges.some((download) => observeRange(extraction, download))) return results;
    for (const result of results) await discard(extraction, result);
    const singles: DaysResult[] = [];
    for (const day of daysOf(days.first, days.last)) singles.push(...(await fetchRange(extraction, only(day))));
    return singles;
  }
}
