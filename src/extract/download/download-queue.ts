import { type Day, formatDays, laterOf } from '../../base/days.ts';
import { configError } from '../../base/errors.ts';
import { RunFolder } from '../../fs/run-folder.ts';
import { NOT_FOUND_CODE } from '../../service/export/outcomes.ts';
import { lastDayOver, oldestExportedDay } from '../calendar.ts';
import { checkedDayOf, type ReceiptsByDay } from '../checked-day.ts';
import type { ExtractDeps } from '../extract-deps.ts';
import type { RunPlan } from '../which-days.ts';
import { DayDownloader, type DayResult, type DownloadDeps } from './day-download.ts';

/** The newest days that a first run asks for before all others, until one comes as CSV. */
const MAX_PROOF_DAYS = 7;

/** Downloads the days of one or several plans, each once, several at a time, and delivers them in order. */
export class DownloadQueue {
  readonly #days: readonly Day[];
  /** Those that are over: the newest of them show what the service does. */
  readonly #overDays: readonly Day[];
  readonly #deps: DownloadDeps;
  readonly #stop: AbortController;
  /** Each until its result is delivered. */
  readonly #resultsByDay = new Map<Day, Promise<DayResult>>();
  /** The newest day that is known to be gone: the service exports no day before it. */
  #newestGoneDay: Day | undefined;

  private constructor(plans: readonly RunPlan[], deps: ExtractDeps, spool: RunFolder) {
    const [{ settings, fingerprints }] = plans;
    this.#days = [...new Set(plans.flatMap(({ days }) => days))].sort();
    this.#stop = new AbortController();
    const signal = AbortSignal.any([deps.signal, this.#stop.signal]);
    const lastOver = lastDayOver(deps.clock.now());
    this.#overDays = this.#days.filter((day) => day <= lastOver);
    const endProofDay = deps.service.includesToDate === undefined ? this.#overDays.at(-1) : undefined;
    this.#deps = { ...deps, signal, settings, fingerprints, receipts: latestReceipts(plans), spool, endProofDay };
  }

  /** Plans of the same settings. */
  static async open(plans: readonly RunPlan[], deps: ExtractDeps): Promise<DownloadQueue> {
    for (const plan of plans) deps.service.learnFromPlan(plan);
    return new DownloadQueue(plans, deps, await RunFolder.open(deps.spoolDir, deps.clock));
  }

  /**
   * The results in the order of days. Beside the deciding days at most `maxConcurrentExports` are downloaded ahead.
   * Throws a failure that ends the run when the turn of its day comes, that of a deciding day at once.
   */
  async *dayResults(): AsyncGenerator<DayResult, void, undefined> {
    const { signal } = this.#deps;
    await this.#downloadDecidingDays();
    this.#downloadAhead(0);
    for (const [i, day] of this.#days.entries()) {
      const dayResult = await this.#downloadOnce(day);
      signal.throwIfAborted();
      this.#resultsByDay.delete(day);
      this.#downloadAhead(i + 1);
      yield this.#acceptedIfEmpty(dayResult);
    }
  }

  /**
   * Sends, one after the other, the requests on which others depend. First the day that shows whether an export
   * includes its end. Then, in a first run, the newest days that are over, until one proves that the service exports
   * days. Then the newest day that is probably gone: all days before a gone one are gone, too.
   */
  async #downloadDecidingDays(): Promise<void> {
    const { endProofDay, settings, clock } = this.#deps;
    if (endProofDay !== undefined) await this.#downloadDecidingDay(endProofDay);
    await this.#proveExports();
    const oldestDay = oldestExportedDay(clock.now(), settings.historyDays);
    const possiblyGoneDay = this.#days.findLast((day) => day < oldestDay);
    if (possiblyGoneDay !== undefined) await this.#downloadDecidingDay(possiblyGoneDay);
  }

  /** Throws a configuration failure if all of these days are answered with 404: the address knows no export. */
  async #proveExports(): Promise<void> {
    const days = this.#overDays.slice(-MAX_PROOF_DAYS);
    const codes = new Set<string>();
    for (const day of days.toReversed()) {
      if (this.#deps.service.hasExportedDay) return;
      const dayResult = await this.#downloadDecidingDay(day);
      if (dayResult.kind !== 'empty_answer') return;
      codes.add(dayResult.emptyAnswer.code);
    }
    if (codes.size === 1 && codes.has(NOT_FOUND_CODE))
      throw configError(`The service knows no export under base_url (404) for ${formatDays(days)}: is base_url right?`);
  }

  /** Downloads a day before others. Throws its failure if the service has given no answer at all. */
  async #downloadDecidingDay(day: Day): Promise<DayResult> {
    const dayResult = await this.#downloadOnce(day);
    if (dayResult.kind === 'failed' && this.#deps.service.answeredExports === 0) throw dayResult.error;
    return dayResult;
  }

  /** A day with two empty answers has no rows, if the service has exported another day by its turn. */
  #acceptedIfEmpty(dayResult: DayResult): DayResult {
    const { service, logger } = this.#deps;
    if (dayResult.kind !== 'empty_answer' || !service.hasExportedDay) return dayResult;
    const { day, emptyAnswer, request } = dayResult;
    logger.warn('day.empty_answer', `${day}: ${emptyAnswer.clause}, twice. It counts as a day without rows.`, { day });
    return { kind: 'downloaded', day, checkedDay: checkedDayOf([], request) };
  }

  #downloadAhead(firstIndex: number): void {
    const { maxConcurrentExports } = this.#deps.settings;
    for (const day of this.#days.slice(firstIndex, firstIndex + maxConcurrentExports)) this.#downloadOnce(day);
  }

  /** Downloads a day; a download that has begun is not begun again. */
  #downloadOnce(day: Day): Promise<DayResult> {
    const result = this.#resultsByDay.get(day) ?? this.#download(day);
    this.#resultsByDay.set(day, result);
    // A failure is thrown when it is the turn of its day.
    result.catch(() => {});
    return result;
  }

  async #download(day: Day): Promise<DayResult> {
    if (this.#newestGoneDay !== undefined && day <= this.#newestGoneDay) return { kind: 'gone', day };
    const dayResult = await new DayDownloader(day, this.#deps).run();
    if (dayResult.kind === 'gone') this.#newestGoneDay = laterOf(day, this.#newestGoneDay ?? day);
    return dayResult;
  }

  /** Ends all downloads and removes their files. */
  async close(): Promise<void> {
    this.#stop.abort(new Error('the run has ended'));
    await Promise.allSettled(this.#resultsByDay.values());
    await this.#deps.spool.remove();
  }
}

/** The receipts of all plans; the latest of a day that several have. */
function latestReceipts(plans: readonly RunPlan[]): ReceiptsByDay {
  const receipts = plans.flatMap((plan) => [...plan.receipts]);
  return new Map(receipts.sort(([, a], [, b]) => (a.requested_at < b.requested_at ? -1 : 1)));
}
