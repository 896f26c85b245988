// This folder: from a state to checked days, and to the next state. `which-days.ts` decides which days to read.
// `download/` exports days until there is a checked answer to each. This file delivers them in batches.
// `days-outcome.ts` keeps what they come to; `export-state.ts` computes the cursor. `observed-service.ts` is the
// service with what its answers have shown. `extract-deps.ts` says what goes in, `checked-day.ts` what comes out;
// `export-settings.ts` says what is requested. `spool.ts` has the files on disk. `profile-snapshot.ts` loads user
// profiles. `calendar.ts` says which days are over and still exported, `plausibility.ts` which have too few rows.
// `day-from-file.ts` checks a day that comes from a file. `discover-columns.ts` finds the types of columns.

import type { Clock } from '../base/clock.ts';
import { type CheckedDay, mayShareRows } from './checked-day.ts';
import { DaysOutcome } from './days-outcome.ts';
import { DownloadQueue } from './download/download-queue.ts';
import type { CommitInfo } from './export-state.ts';
import type { ExtractDeps } from './extract-deps.ts';
import { removeFiles } from './spool.ts';
import { logNotes, type Plan } from './which-days.ts';

/** A batch ends with the day that reaches one of these numbers. It waits so long from its first day at most. */
const BATCH_LIMITS = { rows: 500_000, bytes: 256 * 1024 * 1024, waitMs: 10_000 };
type BatchLimits = Readonly<typeof BATCH_LIMITS>;
const ONE_DAY: BatchLimits = { ...BATCH_LIMITS, rows: 0 };

/** Days that are committed together, in order: one day, if those of the run may share rows with their neighbours. */
export interface DayBatch {
  readonly days: readonly CheckedDay[];
  readonly commitInfo: CommitInfo;
}

/** A plan that is executed. */
export class Extraction {
  readonly outcome: DaysOutcome;
  readonly #plan: Plan;
  readonly #deps: ExtractDeps;

  constructor(plan: Plan, deps: ExtractDeps) {
    this.outcome = new DaysOutcome(plan, deps);
    this.#plan = plan;
    this.#deps = deps;
  }

  /**
   * Yields batches of checked days in the order of days. To request the next batch means that the last one is
   * committed: its files are removed then. A day that cannot be loaded does not stop the others; at the end its
   * UserError is thrown. A failure that ends the run is thrown after the days before it were delivered.
   */
  async *batches(limits = BATCH_LIMITS): AsyncGenerator<DayBatch, void, undefined> {
    const { clock, logger, signal } = this.#deps;
    const { outcome } = this;
    logNotes(this.#plan, logger);
    const downloads = await DownloadQueue.open([this.#plan], this.#deps);
    const batch = new Batch(limits, clock);
    async function* deliver(): AsyncGenerator<DayBatch, void, undefined> {
      const days = batch.drain();
      if (days.length > 0) yield { days, commitInfo: outcome.commitInfo() };
      for (const { files } of days) await removeFiles(files);
    }
    try {
      const results = downloads.results();
      let nextResult = results.next();
      for (;;) {
        const iteration = await batch.beforeExpiry(nextResult);
        if (iteration?.done === true) break;
        if (iteration !== undefined) {
          nextResult = results.next();
          // Its failure is thrown when its turn comes.
          nextResult.catch(() => {});
          const checkedDay = outcome.add(iteration.value);
          if (checkedDay !== undefined) batch.add(checkedDay);
        }
        if (iteration === undefined || batch.isFull) yield* deliver();
      }
      yield* deliver();
    } catch (error) {
      outcome.logFailures(error);
      signal.throwIfAborted();
      yield* deliver();
      throw error;
    } finally {
      await downloads.close();
    }
    outcome.finish();
  }

  /** As `batches`, one day at a time. */
  async *days(): AsyncIterable<CheckedDay> {
    for await (const { days } of this.batches(ONE_DAY)) yield* days;
  }
}

/** Collects days, in order, until they are delivered together. A day that may share rows is a batch of its own. */
class Batch {
  readonly #limits: BatchLimits;
  readonly #clock: Clock;
  #days: CheckedDay[] = [];
  #expiry: Promise<undefined> | undefined;
  #cancelExpiry = () => {};

  constructor(limits: BatchLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  add(day: CheckedDay): void {
    this.#days.push(day);
    if (this.#days.length > 1 || this.isFull) return;
    this.#expiry = new Promise((resolve) => {
      this.#cancelExpiry = this.#clock.after(this.#limits.waitMs, () => resolve(undefined));
    });
  }

  get isFull(): boolean {
    const total = (of: 'rows' | 'bytes') => this.#days.reduce((sum, { receipt }) => sum + receipt[of], 0);
    // All days of a run may share rows, or none: the end day is proved before they are exported.
    const isAlone = this.#days.some(({ receipt }) => mayShareRows(receipt));
    return isAlone || total('rows') >= this.#limits.rows || total('bytes') >= this.#limits.bytes;
  }

  /** Settles as `work` does; gives undefined once the collected days have waited long enough. */
  beforeExpiry<T>(work: Promise<T>): Promise<T | undefined> {
    return this.#expiry === undefined ? work : Promise.race([work, this.#expiry]);
  }

  drain(): readonly CheckedDay[] {
    const days = this.#days;
    this.#days = [];
    this.#expiry = undefined;
    this.#cancelExpiry();
    return days;
  }
}
