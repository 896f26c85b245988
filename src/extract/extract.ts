// This folder: from a state to checked days, and to the next state. `which-days.ts` decides which days to read.
// `download/` exports one day until there is a checked answer. This file runs several days at once, and delivers them in
// batches. `days-outcome.ts` keeps what they come to; `export-state.ts` computes the cursor. `extract-deps.ts` says what
// goes in, `checked-day.ts` and `receipt.ts` what comes out; `export-request.ts` says what is requested. `spool.ts` has
// the files on disk. `profile-snapshot.ts` loads user profiles. `file-day.ts` checks a day that comes from a file.
// `discover.ts` finds the types of columns.

import type { Clock } from '../base/clock.ts';
import { type Day, nameDays } from '../base/days.ts';
import { configError } from '../base/errors.ts';
import { groupBy } from '../base/group.ts';
import { sweepRunFolders } from '../fs/run-folder.ts';
import { NOT_FOUND } from '../service/export/outcomes.ts';
import { lastDayOver } from './calendar.ts';
import type { DayBatch, DayDownload } from './checked-day.ts';
import { DaysOutcome } from './days-outcome.ts';
import { type DayResult, type DownloadDeps, downloadDay, ServiceBehaviour } from './download/day.ts';
import type { RequestFingerprints } from './export-request.ts';
import type { ExtractDeps } from './extract-deps.ts';
import { hasOtherFilters, type PriorReceipt } from './receipt.ts';
import { removeFiles, Spool } from './spool.ts';
import type { DownloadPlan, Plan } from './which-days.ts';

/** A batch ends with the day that reaches one of these numbers. It waits so long from its first day at most. */
const BATCH_LIMITS = { rows: 500_000, bytes: 256 * 1024 * 1024, waitMs: 10_000 };
type BatchLimits = Readonly<typeof BATCH_LIMITS>;
const ONE_DAY: BatchLimits = { ...BATCH_LIMITS, rows: 0 };

/**
 * Executes a plan; yields batches of checked days in the order of days. To request the next batch means that the last
 * one is committed: its files are removed then. A day that cannot be loaded does not stop the others; at the end its
 * UserError is thrown. A failure that ends the run is thrown after the days before it were delivered.
 */
export async function* extractDays(
  plan: Plan,
  deps: ExtractDeps,
  limits: BatchLimits = BATCH_LIMITS,
): AsyncGenerator<DayBatch, void, undefined> {
  logPlan(plan, deps);
  if (plan.days.length === 0) {
    await sweepRunFolders(deps.spoolDir, deps.clock.now());
    return;
  }
  const outcome = new DaysOutcome(plan, deps, deps.report);
  const downloads = await Downloads.open(plan, deps);
  const { behaviour } = downloads;
  try {
    for await (const days of batchesOf(downloads, outcome, deps, limits)) {
      if (days.length > 0) yield { days, progress: outcome.progress(behaviour, deps.clock.now()) };
      for (const { files } of days) await removeFiles(files);
    }
  } finally {
    deps.report.includesEnd = behaviour.includesEnd;
    await downloads.close();
  }
}

/** As `extractDays`, one day at a time. */
export async function* extractEachDay(plan: Plan, deps: ExtractDeps): AsyncGenerator<DayDownload, void, undefined> {
  for await (const { days } of extractDays(plan, deps, ONE_DAY)) yield* days;
}

export function logPlan(
  { warnings, readAgain, receipts, fingerprints }: Plan,
  { logger }: Pick<ExtractDeps, 'logger'>,
): void {
  for (const { event, message } of warnings) logger.warn(event, message);
  for (const [why, days] of groupBy(readAgain, (day) => whyAgain(receipts.get(day), fingerprints)))
    logger.info('plan.read_again', `Read again, since ${why}: ${nameDays(days)}.`);
}

function whyAgain(stored: PriorReceipt | undefined, fingerprints: RequestFingerprints): string {
  if (hasOtherFilters(stored, fingerprints)) return 'they were loaded with other filters or columns';
  return stored?.rows === 0 ? 'they had no rows, and the provider may be late' : 'they had far fewer rows than usual';
}

/** The newest days that a first run asks for before all others, until one comes as CSV. */
const MAX_PROOFS = 7;

/** Downloads the days of a plan, several at once, and delivers them in order. */
export class Downloads {
  readonly behaviour: ServiceBehaviour;
  readonly #deps: DownloadDeps;
  readonly #end: AbortController;
  /** The days that were started and not delivered. */
  readonly #started = new Map<Day, Promise<DayResult>>();

  private constructor(deps: DownloadDeps, end: AbortController) {
    this.behaviour = deps.behaviour;
    this.#deps = deps;
    this.#end = end;
  }

  static async open(plan: DownloadPlan, deps: ExtractDeps): Promise<Downloads> {
    const spool = await Spool.open(deps.spoolDir, deps.clock);
    const end = new AbortController();
    const signal = AbortSignal.any([deps.signal, end.signal]);
    return new Downloads({ ...deps, signal, plan, spool, behaviour: new ServiceBehaviour(plan) }, end);
  }

  /**
   * The results in the order of days; at most `maxConcurrentExports` days are downloaded ahead. Throws a failure that
   * ends the run when the turn of its day comes.
   */
  async *results(): AsyncGenerator<DayResult, void, undefined> {
    const { plan, signal } = this.#deps;
    await this.#sendFirst();
    this.#startFrom(0);
    for (const [i, day] of plan.days.entries()) {
      const result = await this.#download(day);
      signal.throwIfAborted();
      this.#started.delete(day);
      this.#startFrom(i + 1);
      yield result;
    }
  }

  #startFrom(i: number): void {
    const { plan, maxConcurrentExports } = this.#deps;
    for (const day of plan.days.slice(i, i + maxConcurrentExports)) this.#download(day);
  }

  /** Ends all downloads and removes their files. */
  async close(): Promise<void> {
    this.#end.abort(new Error('the run has ended'));
    await Promise.allSettled(this.#started.values());
    await this.#deps.spool.remove();
  }

  /**
   * Sends, one after the other, the requests on which others depend. First the day that shows whether an export
   * includes its end. Then, in a first run, the newest days that are over, until one proves that the service exports
   * days. Then the newest day that is probably lost: all days before a lost one are lost, too.
   */
  async #sendFirst(): Promise<void> {
    const { plan, clock } = this.#deps;
    const over = plan.days.filter((day) => day <= lastDayOver(clock.now()));
    if (plan.findEndDayOn !== undefined) await this.#resultAlone(plan.findEndDayOn);
    await this.#proveExports(over.slice(-MAX_PROOFS));
    const lost = plan.days.findLast((day) => day < plan.oldest);
    if (lost !== undefined) await this.#resultAlone(lost);
  }

  /** Throws a configuration failure if all of these days are answered with 404: the address knows no export. */
  async #proveExports(days: readonly Day[]): Promise<void> {
    const codes = new Set<string>();
    for (const day of days.toReversed()) {
      if (this.behaviour.exportsDays) return;
      const result = await this.#resultAlone(day);
      if (result.kind !== 'empty') return;
      codes.add(result.answer.code);
    }
    if (codes.size === 1 && codes.has(NOT_FOUND))
      throw configError(`The service knows no export under base_url (404) for ${nameDays(days)}: is base_url right?`);
  }

  /** The result of a day on which others depend. Throws if the service has given no answer at all. */
  async #resultAlone(day: Day): Promise<DayResult> {
    const result = await this.#download(day);
    if (result.kind === 'failed' && this.#deps.counts.exports === 0) throw result.error;
    return result;
  }

  /** The result of a day, whose download begins unless it has. */
  #download(day: Day): Promise<DayResult> {
    const started = this.#started.get(day);
    if (started !== undefined) return started;
    const result = downloadDay(day, this.#deps);
    this.#started.set(day, result);
    // A failure is thrown when it is the turn of its day.
    result.catch(() => {});
    return result;
  }
}

/** The days of each batch; a failure comes behind the days before it. A batch may be empty. */
async function* batchesOf(
  downloads: Downloads,
  outcome: DaysOutcome,
  { clock, signal }: ExtractDeps,
  limits: BatchLimits,
): AsyncGenerator<readonly DayDownload[]> {
  const batch = new Batch(limits, clock);
  const results = downloads.results();
  try {
    let next = results.next();
    for (;;) {
      if (!(await batch.mayWaitFor(next))) {
        yield batch.drain();
        continue;
      }
      const result = await next;
      if (result.done === true) break;
      next = results.next();
      next.catch(() => {});
      const download = outcome.add(result.value, downloads.behaviour);
      if (download !== undefined) batch.add(download);
      if (batch.isFull) yield batch.drain();
    }
  } catch (error) {
    outcome.logFailures(error);
    signal.throwIfAborted();
    yield batch.drain();
    throw error;
  }
  yield batch.drain();
  outcome.finish();
}

/** Collects days, in order, until they are delivered together. A day that may share rows is a batch of its own. */
class Batch {
  readonly #limits: BatchLimits;
  readonly #clock: Clock;
  #days: DayDownload[] = [];
  #expired: Promise<void> | undefined;
  #cancel = () => {};

  constructor(limits: BatchLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  add(day: DayDownload): void {
    this.#days.push(day);
    if (this.#days.length > 1 || this.isFull) return;
    this.#expired = new Promise((resolve) => {
      this.#cancel = this.#clock.after(this.#limits.waitMs, resolve);
    });
  }

  get isFull(): boolean {
    const total = (of: 'rows' | 'bytes') => this.#days.reduce((sum, { receipt }) => sum + receipt[of], 0);
    const isAlone = this.#days.some(({ mayShareRows }) => mayShareRows);
    return isAlone || total('rows') >= this.#limits.rows || total('bytes') >= this.#limits.bytes;
  }

  /** Waits for `ready`, but no longer than the collected days may wait; false if that time is over. */
  async mayWaitFor(ready: Promise<unknown>): Promise<boolean> {
    const done = ready.then(
      () => true,
      () => true,
    );
    return this.#expired === undefined ? done : Promise.race([done, this.#expired.then(() => false)]);
  }

  drain(): readonly DayDownload[] {
    const drained = this.#days;
    this.#days = [];
    this.#expired = undefined;
    this.#cancel();
    return drained;
  }
}
