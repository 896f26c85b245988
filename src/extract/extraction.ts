// This folder: from a state to checked days, and to the next state. In the order of reading:
//
//   extract-deps.ts, checked-day.ts        what goes in; what comes out
//   export-settings.ts, which-days.ts      what is requested; which days are read
//   calendar.ts, plausibility.ts           which days are over and still exported; which have too few rows
//   download/, spool.ts                    exports days until the answer to each is final; their files on disk
//   observed-service.ts, extraction.ts     the service, with what its answers have shown; delivers days in batches
//   run-results.ts, run-failures.ts        what the days come to; why the run fails, although some are loaded
//   export-state.ts                        the cursor after them
//   profile-snapshot.ts, day-from-file.ts  user profiles; a day that comes from a file
//   discover-columns.ts                    the columns of the history, with their types

import { type CheckedDay, mayShareRows } from './checked-day.ts';
import { DownloadQueue } from './download/download-queue.ts';
import type { CommitInfo } from './export-state.ts';
import type { ExtractDeps } from './extract-deps.ts';
import { RunResults } from './run-results.ts';
import { removeFiles } from './spool.ts';
import { logNotes, type RunPlan } from './which-days.ts';

/** A batch ends with the day that reaches one of these numbers. It waits so long from its first day at most. */
const BATCH_LIMITS = { rows: 500_000, bytes: 256 * 1024 * 1024, waitMs: 10_000 };

/** A day, with what its commit stores beside it: `results` may know later days by then. */
interface DayToCommit {
  readonly checkedDay: CheckedDay;
  readonly commitInfo: CommitInfo;
}

/** A plan that is executed. */
export class Extraction {
  readonly results: RunResults;
  readonly #plan: RunPlan;
  readonly #deps: ExtractDeps;

  constructor(plan: RunPlan, deps: ExtractDeps) {
    this.results = new RunResults(plan, deps);
    this.#plan = plan;
    this.#deps = deps;
  }

  /**
   * Yields batches of checked days, which are committed together, in the order of days. To request the next batch means
   * that the last one is committed: its files are removed then. A day that cannot be loaded does not stop the others;
   * at the end its UserError is thrown. A failure that ends the run is thrown behind the days before it.
   */
  async *batches(limits = BATCH_LIMITS) {
    logNotes(this.#plan, this.#deps.logger);
    let failure: unknown;
    try {
      const downloads = await DownloadQueue.open([this.#plan], this.#deps);
      try {
        for await (const batch of inBatches(this.#daysToCommit(downloads), limits, this.#deps)) {
          const { commitInfo } = batch[batch.length - 1];
          yield { checkedDays: batch.map(({ checkedDay }) => checkedDay), commitInfo };
          for (const { checkedDay } of batch) await removeFiles(checkedDay.files);
        }
      } finally {
        await downloads.close();
      }
      this.results.finish();
    } catch (error) {
      failure = error;
      throw error;
    } finally {
      // Also where the caller ends the run, since it could not store a batch.
      this.results.logEnd(failure);
    }
  }

  async *#daysToCommit(downloads: DownloadQueue): AsyncGenerator<DayToCommit, void, undefined> {
    for await (const dayResult of downloads.dayResults()) {
      const checkedDay = this.results.add(dayResult);
      if (checkedDay !== undefined) yield { checkedDay, commitInfo: this.results.commitInfo() };
    }
  }

  /** The days of all batches. */
  async *checkedDays(): AsyncIterable<CheckedDay> {
    for await (const { checkedDays } of this.batches()) yield* checkedDays;
  }
}

/** Collects days, in order, into batches. Delivers the days before a failure, and then throws it. */
async function* inBatches(
  days: AsyncGenerator<DayToCommit, void, undefined>,
  limits: typeof BATCH_LIMITS,
  { clock, signal }: Pick<ExtractDeps, 'clock' | 'signal'>,
): AsyncGenerator<readonly DayToCommit[], void, undefined> {
  let batch: DayToCommit[] = [];
  /** Resolves once the first day of the batch has waited long enough. */
  let expiry: Promise<undefined> | undefined;
  let nextDay = days.next();
  try {
    for (;;) {
      const arrival = await (expiry === undefined ? nextDay : Promise.race([nextDay, expiry]));
      if (arrival?.done === true) break;
      if (arrival !== undefined) {
        batch.push(arrival.value);
        nextDay = days.next();
        // Its failure is thrown when its turn comes.
        nextDay.catch(() => {});
        expiry ??= new Promise((resolve) => void clock.after(limits.waitMs, () => resolve(undefined)));
        if (!isFull(batch, limits)) continue;
      }
      yield batch;
      batch = [];
      expiry = undefined;
    }
  } catch (error) {
    // A run that was stopped commits nothing more.
    signal.throwIfAborted();
    if (batch.length > 0) yield batch;
    throw error;
  }
  if (batch.length > 0) yield batch;
}

/** A day that may share rows is a batch of its own. All days of a run may, or none: the end day is proved before. */
function isFull(batch: readonly DayToCommit[], limits: typeof BATCH_LIMITS): boolean {
  const total = (of: 'rows' | 'bytes') => batch.reduce((sum, { checkedDay }) => sum + checkedDay.receipt[of], 0);
  const mayShare = batch.some(({ checkedDay }) => mayShareRows(checkedDay.receipt));
  return mayShare || total('rows') >= limits.rows || total('bytes') >= limits.bytes;
}
