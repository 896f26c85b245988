import { earlierOf } from '../../base/days.ts';
import { configError } from '../../base/errors.ts';
import type { Receipt } from '../../extract/checked-day.ts';
import type { DayResult } from '../../extract/download/day-download.ts';
import { type ExportState, stateAfter } from '../../extract/export-state.ts';
import type { ExtractDeps } from '../../extract/extract-deps.ts';
import { RunResults } from '../../extract/run-results.ts';
import { cursorOf } from '../../extract/which-days.ts';
import type { StreamStats } from '../records/record-encoder.ts';
import type { StreamOutput } from './stream-output.ts';
import type { StreamPlan } from './stream-plans.ts';

/** Least number of days whose receipts a state keeps. What is usual for a weekday follows from four weeks. */
const KEPT_DAYS = 35;

/** A stream of events while it is read: what its days come to, and its state after them. A failure ends it alone. */
export class StreamProgress {
  readonly plan: StreamPlan;
  readonly output: StreamOutput;
  readonly #service: ExtractDeps['service'];
  readonly #results: RunResults;
  #state: ExportState | undefined;

  constructor(output: StreamOutput, plan: StreamPlan, deps: ExtractDeps) {
    this.plan = plan;
    this.output = output;
    this.#service = deps.service;
    this.#results = new RunResults(plan, deps);
    this.#state = plan.state;
  }

  /** Writes the state before the first record, and RUNNING; without a day to read also COMPLETE. */
  async start(): Promise<void> {
    // Before its first day nothing was read under any filters.
    const state = this.#state ?? { version: 1, from_date: cursorOf(this.plan), days: {} };
    await this.#writeState(state, 0);
    await this.output.writeStatus('RUNNING');
    if (this.plan.days.length === 0) await this.complete();
  }

  /** Counts the result of a day. Returns true if its records are to be written. It may end the stream with a failure. */
  async accept(result: DayResult): Promise<boolean> {
    try {
      const mayHaveRows = result.kind === 'downloaded' || result.kind === 'empty_answer';
      if (mayHaveRows && this.plan.keepsDuplicates) this.#requireKnownEnd();
      const checkedDay = this.#results.add(result);
      // Lost days come first. The stream fails at the day behind them, so that the failure names all of them.
      const { failure } = this.#results;
      if (result.kind !== 'gone' && failure !== undefined) throw failure;
      return checkedDay !== undefined;
    } catch (error) {
      await this.failOrThrow(error);
      return false;
    }
  }

  /** Writes the state behind the records of a day: an `ExportState` with the receipts of days. */
  async finishDay(receipt: Receipt, stats: StreamStats): Promise<void> {
    this.output.logStats(receipt.day, stats);
    const state = stateAfter(this.#state, this.#results.receipts, this.#results.commitInfo());
    const receipts = [...this.#results.receipts].sort(([a], [b]) => (a < b ? -1 : 1));
    // From the cursor on only its receipt says that a day was read: without it the day would be read again.
    const firstKeptDay = earlierOf(state.from_date, receipts.slice(-KEPT_DAYS)[0][0]);
    const days = Object.fromEntries(receipts.filter(([day]) => day >= firstKeptDay));
    this.#state = { ...state, days };
    await this.#writeState(this.#state, stats.recordCount);
  }

  /**
   * Writes a state. That of a full refresh has the id of its job, by which a later attempt goes on. Until it is complete,
   * its states say so: what it sent may be lost.
   */
  #writeState(state: ExportState, recordCount: number, isFinished = false): Promise<void> {
    if (this.plan.mode !== 'refresh') return this.output.writeState(state, recordCount);
    const { syncId } = this.output.configuredStream;
    const unfinished = !isFinished && { unfinished_refresh: true };
    return this.output.writeState({ ...state, sync_id: syncId, ...unfinished }, recordCount);
  }

  /** Ends the stream: COMPLETE, or a failure if a day was lost, or if nothing could be read. */
  async complete(): Promise<void> {
    try {
      this.#results.finish();
    } catch (error) {
      return this.failOrThrow(error);
    }
    this.#results.logEnd();
    if (this.plan.mode === 'refresh' && this.#state !== undefined) await this.#writeState(this.#state, 0, true);
    await this.output.writeStatus('COMPLETE');
  }

  /** Logs what became of its days, and ends the stream. Throws as its output does. */
  failOrThrow(error: unknown): Promise<void> {
    this.#results.logEnd(error);
    return this.output.failOrThrow(error);
  }

  /** Two exports that share rows send them twice, and only a merge by key makes them one again. */
  #requireKnownEnd(): void {
    if (this.#service.includesToDate !== undefined) return;
    throw configError(
      `Whether an export includes its to_date is not known, and the destination of ${this.plan.name} keeps every record: rows ` +
        'would come twice or be missing. Set to_date_inclusive to true or false, as the provider says, or let the ' +
        'destination merge by key (append_dedup).',
    );
  }
}
