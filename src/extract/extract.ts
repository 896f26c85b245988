// This folder: from a state to checked days, and to the next state. `plan/` decides which days to read, `download/`
// requests each until there is a checked answer, `spool.ts` is the folder on disk. This file delivers days in batches.
// `run-outcome.ts` keeps what they come to; `export-state.ts` computes the cursor. `receipt.ts` and `session.ts` say what
// goes in and out. `sample.ts` is for `discover`.

import { nameDays } from '../base/days.ts';
import { groupBy } from '../base/group.ts';
import { BATCH_LIMITS, Batch, type BatchLimits, ONE_DAY } from './batch.ts';
import { DayDownloads } from './download/downloads.ts';
import type { RequestHashes } from './export-request.ts';
import type { Plan } from './plan/which-days.ts';
import { type DayDownload, hasOtherFilters, type PriorReceipt, type RunProgress } from './receipt.ts';
import { RunOutcome } from './run-outcome.ts';
import type { ExtractDeps } from './session.ts';
import { sweepRunFolders } from './spool.ts';

/** Days that are committed together, in order; one day if it may share rows with its neighbours. */
export interface DayBatch {
  readonly days: readonly DayDownload[];
  readonly facts: RunProgress;
}

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

export function logPlan(
  { warnings, readAgain, receipts, hashes }: Plan,
  { logger }: Pick<ExtractDeps, 'logger'>,
): void {
  for (const { event, message } of warnings) logger.warn(event, message);
  for (const [why, days] of groupBy(readAgain, (day) => whyAgain(receipts.get(day), hashes)))
    logger.info('plan.read_again', `Read again, since ${why}: ${nameDays(days)}.`);
}

function whyAgain(stored: PriorReceipt | undefined, hashes: RequestHashes): string {
  if (stored !== undefined && hasOtherFilters(stored, hashes)) return 'they were loaded with other filters or columns';
  return stored?.rows === 0 ? 'they had no rows, and the provider may be late' : 'they had far fewer rows than usual';
}

async function* batches(
  plan: Plan,
  deps: ExtractDeps,
  downloads: DayDownloads,
  limits: BatchLimits,
): AsyncGenerator<DayBatch> {
  const { run } = downloads;
  const outcome = new RunOutcome(plan, deps);
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
      const download = outcome.add(result.value, run);
      if (download !== undefined) batch.add(download);
      if (batch.isFull) yield* flush();
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
    yield { days, facts: outcome.progress(run, deps.clock.now()) };
    for (const day of days) await downloads.remove(day);
  }
}
