// This folder: from a state to checked days, and to the next state. `plan/` decides which days to read, `download/`
// requests each until there is a checked answer, `spool.ts` is the folder on disk. This file delivers days in batches.
// `progress.ts` keeps what they come to; `state.ts` computes the cursor. `receipt.ts` and `session.ts` say what goes in
// and out. `sample.ts` is for `discover`.

import type { Day } from '../base/days.ts';
import { configError, EXIT, transientError, type UserError } from '../base/errors.ts';
import { groupBy } from '../base/group.ts';
import { plainCount } from '../base/quantities.ts';
import { BATCH_LIMITS, Batch, type BatchLimits, ONE_DAY } from './batch.ts';
import type { DayResult } from './download/day.ts';
import { DayDownloads } from './download/downloads.ts';
import type { ServiceFacts } from './download/service-facts.ts';
import { lastDayOver, mayStillArrive, nameDays } from './plan/calendar.ts';
import type { Plan } from './plan/which-days.ts';
import { Progress } from './progress.ts';
import type { DayDownload, RunFacts, StoredReceiptFacts } from './receipt.ts';
import type { ExtractDeps } from './session.ts';
import { sweepRunFolders } from './spool.ts';

/** Days that are committed together, in order; one day if it may share rows with its neighbours. */
export interface DayBatch {
  readonly days: readonly DayDownload[];
  readonly facts: RunFacts;
}

/** Days that are over and cannot be loaded, after which a run gives up: the service is probably down. */
const MAX_FAILED = 3;

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
  const downloads = await DayDownloads.open(plan, deps);
  try {
    yield* batches(plan, deps, downloads, limits);
  } finally {
    await downloads.close();
  }
}

/** As `extractDays`, one day at a time. */
export async function* extractEachDay(plan: Plan, deps: ExtractDeps): AsyncGenerator<DayDownload, void, undefined> {
  for await (const { days } of extractDays(plan, deps, ONE_DAY)) yield* days;
}

export function logPlan({ warnings, readAgain, receipts }: Plan, { logger }: Pick<ExtractDeps, 'logger'>): void {
  for (const { event, message } of warnings) logger.warn(event, message);
  for (const [why, days] of groupBy(readAgain, (day) => whyAgain(receipts.get(day))))
    logger.info('plan.read_again', `Read again, since ${why}: ${nameDays(days)}.`);
}

function whyAgain(stored: StoredReceiptFacts | undefined): string {
  if (stored === undefined) return 'their stored rows cannot be read';
  return stored.rows === 0 ? 'they had no rows, and the provider may be late' : 'they had far fewer rows than usual';
}

async function* batches(
  plan: Plan,
  deps: ExtractDeps,
  downloads: DayDownloads,
  limits: BatchLimits,
): AsyncGenerator<DayBatch> {
  const { facts } = downloads;
  const outcome = new Outcome(plan, deps, facts);
  const batch = new Batch(limits, deps.clock);
  const results = downloads.results();
  try {
    let next = results.next();
    for (;;) {
      if (!(await batch.mayWaitFor(next))) {
        yield* flush();
        continue;
      }
      const result = await next;
      if (result.done === true) break;
      next = results.next();
      next.catch(() => {});
      const download = outcome.add(result.value);
      if (download === undefined) continue;
      batch.add(download);
      if (batch.isFull || outcome.mustStop) yield* flush();
      if (outcome.mustStop) break;
    }
  } catch (error) {
    deps.signal.throwIfAborted();
    yield* flush();
    outcome.logFirstFailure(error);
    throw error;
  }
  yield* flush();
  outcome.finish();

  async function* flush() {
    const days = batch.drain();
    if (days.length === 0) return;
    yield { days, facts: outcome.factsAfter(days) };
    for (const day of days) await downloads.remove(day);
  }
}

/** What a run makes of the results of its days, and how it ends. */
class Outcome {
  /** True if nothing may be committed any more. */
  mustStop = false;
  readonly #plan: Plan;
  readonly #deps: ExtractDeps;
  readonly #facts: ServiceFacts;
  readonly #progress: Progress;
  readonly #unseen: Set<string> | undefined;
  /** Days that are gone and no gap. */
  readonly #shortened: Day[] = [];
  readonly #failures: UserError[] = [];
  #open: UserError | undefined;

  constructor(plan: Plan, deps: ExtractDeps, facts: ServiceFacts) {
    this.#plan = plan;
    this.#deps = deps;
    this.#facts = facts;
    this.#progress = new Progress(plan);
    const { edits } = deps;
    this.#unseen = edits && new Set([...edits.drop, ...edits.hash]);
  }

  /** Takes the result of the next day; returns what is to be delivered. */
  add(result: DayResult): DayDownload | undefined {
    switch (result.kind) {
      case 'day':
        this.#loaded(result.download);
        return result.download;
      case 'gone':
        if (this.#progress.addGone(result.day)) this.#deps.counts.gaps.push(result.day);
        else this.#shortened.push(result.day);
        return undefined;
      case 'open': {
        const message = `${result.day} is not over and was not loaded, the next run reads it: ${result.error.message}`;
        this.#deps.logger.warn('day.open', message, { day: result.day });
        this.#open ??= result.error;
        return undefined;
      }
      case 'failed':
        this.#failures.push(result.error);
        if (this.#failures.length > 1) this.#logFailure(result.error);
        if (this.#failures.length >= MAX_FAILED) throw this.#failures[0];
        return undefined;
    }
  }

  #loaded({ receipt, files }: DayDownload): void {
    const { day } = receipt;
    const { counts, logger } = this.#deps;
    for (const { listed } of files) for (const name of listed ?? []) this.#unseen?.delete(name);
    if (this.#plan.isNamed && !receipt.is_over) counts.openDays.push(day);
    const found = this.#progress.addLoaded(receipt);
    if (found === undefined) return;
    counts.implausibleDays.push(found);
    const message = `${day} has ${plainCount(found.rows, 'row')}; its weekday has ${Math.round(found.usual)} as a rule.`;
    logger.warn('day.implausible', message, { day, rows: found.rows, usual: found.usual });
    if (this.#plan.onImplausible === 'warn' || !mayStillArrive(day, this.#facts.earlierTime())) return;
    this.mustStop = true;
    this.#failures.push(
      transientError(`${message} Nothing after it is committed (on_implausible: fail). Run again later.`),
    );
  }

  /** The facts to store with these days, the last that are delivered so far. */
  factsAfter(days: readonly DayDownload[]): RunFacts {
    const plan = this.#plan;
    const now = this.#facts.earlierTime();
    const lastOver = plan.days.findLast((day) => day <= lastDayOver(now));
    const isRefreshed = lastOver === undefined || days.some(({ receipt }) => receipt.day >= lastOver);
    const isMixed = plan.isMixed && !(isRefreshed && this.#failures.length === 0);
    const { toDateInclusive } = this.#deps.counts;
    return this.#progress.facts({ now, toDateInclusive, finalNewline: this.#facts.finalNewline }, isMixed);
  }

  /** Logs the first failed day, unless it is the error with which the run ends: the caller reports that one. */
  logFirstFailure(end?: unknown): void {
    const [first] = this.#failures;
    if (first !== undefined && first !== end) this.#logFailure(first);
  }

  #logFailure({ message, where }: UserError): void {
    this.#deps.logger.error('day.failed', message, { ...where });
  }

  /** Reports what was not loaded. Throws the worst of it. */
  finish(): void {
    const { logger } = this.#deps;
    const unseen = [...(this.#unseen ?? [])].join(', ');
    if (unseen !== '' && this.#progress.isLoaded) {
      const message = `columns_drop and columns_hash name what no export of this run had: ${unseen}. Names count letter by letter.`;
      logger.warn('columns.unseen', message, { columns: unseen });
    }
    if (this.#shortened.length > 0) {
      logger.warn(
        'plan.shortened',
        `The service no longer exports ${nameDays(this.#shortened)}: reading goes on after that.`,
      );
    }
    const { lost, failsAtGap } = this.#progress;
    if (lost.length > 0) {
      if (failsAtGap) {
        this.logFirstFailure();
        throw gapError(lost, this.#plan.isNamed);
      }
      logger.warn('day.gap', `The service no longer exports ${nameDays(lost)}: recorded as a gap.`);
    }
    const [failure] = this.#failures;
    if (failure !== undefined) throw failure;
    if (!this.#progress.isLoaded && this.#open !== undefined) throw this.#open;
  }
}

/** The failure for lost days (exit 4). */
export function gapError(days: readonly Day[], isNamed: boolean): UserError {
  const what = `${plainCount(days.length, 'day')} can no longer be exported`;
  const message = isNamed
    ? `${what}: ${nameDays(days)}. Name later days with --from and --to.`
    : `${what} and would be lost: ${nameDays(days)}. Set on_gap to warn to record the gap and go on.`;
  return configError(message, { exitCode: EXIT.lost });
}
