import type { Clock } from '../../base/clock.ts';
import type { Day } from '../../base/days.ts';
import { configError } from '../../base/errors.ts';
import type { DayResult } from '../../extract/download/day.ts';
import type { Run } from '../../extract/download/run.ts';
import { stateAfter, unreadState } from '../../extract/export-state.ts';
import type { Plan } from '../../extract/plan/which-days.ts';
import type { ExportState, Receipt } from '../../extract/receipt.ts';
import { type OutcomeDeps, RunOutcome } from '../../extract/run-outcome.ts';
import type { ConfiguredStream } from '../protocol/catalog-and-states.ts';
import { type StreamDescriptor, type StreamStatus, streamState, streamStatus } from '../protocol/messages.ts';
import type { MessageWriter } from '../protocol/writer.ts';
import type { StreamName } from '../records/property-names.ts';
import { type RecordStream, recordStream } from '../records/record-plan.ts';
import { keepsEveryRecord, REFRESHED_THROUGH, type StreamPlan, SYNC_ID, WAITING_UNTIL } from './stream-plans.ts';

/** Number of days of which a state keeps the row counts. What is usual for a weekday follows from four weeks. */
const KEPT_DAYS = 35;

/** Where streams write, and what they count. */
export interface StreamOutput extends OutcomeDeps {
  readonly writer: MessageWriter;
  readonly clock: Clock;
}

/** One stream while it is read, with a cursor of its own, which never goes backward. */
export class EventStream {
  readonly name: StreamName;
  readonly plan: Plan;
  readonly records: RecordStream;
  /** True once its last status, COMPLETE or INCOMPLETE, is written. */
  isFinished = false;
  readonly #descriptor: StreamDescriptor;
  readonly #output: StreamOutput;
  readonly #days: ReadonlySet<Day>;
  readonly #outcome: RunOutcome;
  readonly #keepsEveryRecord: boolean;
  /** Keys of a full refresh. */
  #refresh: { [SYNC_ID]?: number; [REFRESHED_THROUGH]?: Day } | undefined;
  #state: ExportState | undefined;

  constructor(configured: ConfiguredStream, { name, plan }: StreamPlan, output: StreamOutput) {
    const { descriptor, syncMode, syncId } = configured;
    this.name = name;
    this.plan = plan;
    this.records = recordStream(name, configured);
    this.#descriptor = descriptor;
    this.#output = output;
    this.#days = new Set(plan.days);
    this.#outcome = new RunOutcome(plan, output);
    this.#state = plan.state;
    this.#keepsEveryRecord = keepsEveryRecord(configured);
    if (syncMode === 'full_refresh') this.#refresh = syncId === undefined ? {} : { [SYNC_ID]: syncId };
  }

  /** Writes STARTED, the state before the first record, and RUNNING. */
  async start(): Promise<void> {
    await this.#status('STARTED');
    await this.#writeState(0);
    await this.#status('RUNNING');
  }

  wants(day: Day): boolean {
    return !this.isFinished && this.#days.has(day);
  }

  /** Takes the result of a day; true if its records are to be written. Throws a UserError that ends the stream. */
  take(result: DayResult, run: Run): boolean {
    const isRead = result.kind === 'loaded' || result.kind === 'empty';
    if (isRead && this.#keepsEveryRecord) this.#requireEndDay(run);
    const download = this.#outcome.add(result, run);
    // A lost day fails the stream once a day after it is there: then all that are lost are known.
    const { failure } = this.#outcome;
    if (result.kind !== 'gone' && failure !== undefined) throw failure;
    return download !== undefined;
  }

  /** Writes the state that goes with the records of a day just written. */
  async advance(receipt: Receipt, run: Run, records: number): Promise<void> {
    const receipts = new Map([...this.#outcome.receipts].sort(([a], [b]) => (a < b ? -1 : 1)).slice(-KEPT_DAYS));
    if (this.#refresh !== undefined) this.#refresh = { ...this.#refresh, [REFRESHED_THROUGH]: receipt.day };
    const state = stateAfter(this.#state, receipts, this.#outcome.progress(run, this.#output.clock.now()));
    this.#state = { ...state, days: Object.fromEntries(receipts), ...this.#refresh };
    await this.#writeState(records);
  }

  isLast(day: Day): boolean {
    return this.plan.days.at(-1) === day;
  }

  /** Writes COMPLETE behind the last day. Throws if a day was lost, or if nothing could be read. */
  async complete(): Promise<void> {
    this.#outcome.finish();
    await this.end('COMPLETE');
  }

  async end(status: 'COMPLETE' | 'INCOMPLETE'): Promise<void> {
    this.isFinished = true;
    await this.#status(status);
  }

  /** Gives the platform a sign of life while a day is waited for. `until` (ms since 1970): the limit is exhausted. */
  async beat(until: number | undefined): Promise<void> {
    await this.#status('RUNNING', until);
    await this.#writeState(0, until === undefined ? {} : { [WAITING_UNTIL]: new Date(until).toISOString() });
  }

  /** Two exports that share rows send them twice, and only a merge by key makes them one again. */
  #requireEndDay({ toDateInclusive }: Run): void {
    if (toDateInclusive !== undefined) return;
    throw configError(
      `Whether an export includes its to_date is not known, and the destination of ${this.name} keeps every record: rows ` +
        'would come twice or be missing. Set to_date_inclusive to true or false, as the provider says, or let the ' +
        'destination merge by key (append_dedup or overwrite_dedup).',
    );
  }

  #status(status: StreamStatus, quotaReset?: number): Promise<void> {
    const { writer, clock } = this.#output;
    return writer.write(streamStatus(this.#descriptor, status, clock.now(), quotaReset));
  }

  /** Before the first day of a first run the state has the cursor alone: nothing was read under any filters. */
  #writeState(records: number, more: object = {}): Promise<void> {
    const state = this.#state ?? { ...unreadState(this.plan.cursor), ...this.#refresh };
    return this.#output.writer.write(streamState(this.#descriptor, { ...state, ...more }, records));
  }
}
