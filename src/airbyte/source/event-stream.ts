import type { Day } from '../../base/days.ts';
import { configError } from '../../base/errors.ts';
import { DaysOutcome } from '../../extract/days-outcome.ts';
import type { DayResult, ServiceBehaviour } from '../../extract/download/day.ts';
import { type ExportState, stateAfter } from '../../extract/export-state.ts';
import type { Receipt } from '../../extract/receipt.ts';
import type { Plan } from '../../extract/which-days.ts';
import { type RecordStream, recordStream } from '../records/record-plan.ts';
import type { WrittenRecords } from '../records/record-writer.ts';
import type { StreamName } from '../records/streams.ts';
import type { ReadDeps, StreamOutput } from './stream-output.ts';
import { keepsEveryRecord, REFRESHED_THROUGH, type StreamPlan, SYNC_ID } from './stream-plans.ts';

/** Number of days of which a state keeps the row counts. What is usual for a weekday follows from four weeks. */
const KEPT_DAYS = 35;

/** One stream of events while it is read, with a cursor of its own, which never goes backward. */
export class EventStream {
  readonly name: StreamName;
  readonly plan: Plan;
  readonly output: StreamOutput;
  readonly records: RecordStream;
  readonly #deps: ReadDeps;
  readonly #days: ReadonlySet<Day>;
  readonly #outcome: DaysOutcome;
  /** Columns that were named as missing from the catalog. */
  readonly #loggedColumns = new Set<string>();
  /** Keys of a full refresh. */
  #refresh: { [SYNC_ID]?: number; [REFRESHED_THROUGH]?: Day } | undefined;
  #state: ExportState | undefined;

  constructor(output: StreamOutput, { name, plan }: StreamPlan, deps: ReadDeps) {
    const { syncMode, syncId } = output.configured;
    this.name = name;
    this.plan = plan;
    this.output = output;
    this.records = recordStream(name, output.configured);
    this.#deps = deps;
    this.#days = new Set(plan.days);
    this.#outcome = new DaysOutcome(plan, deps);
    this.#state = plan.state;
    if (syncMode === 'full_refresh') this.#refresh = syncId === undefined ? {} : { [SYNC_ID]: syncId };
  }

  /** Writes STARTED, the state before the first record, and RUNNING; without a day to read also COMPLETE. */
  async start(): Promise<void> {
    await this.output.status('STARTED');
    // Before the first day of a first run the state has the cursor alone: nothing was read under any filters.
    await this.output.state(this.#state ?? { version: 1, from_date: this.plan.cursor, days: {}, ...this.#refresh }, 0);
    await this.output.status('RUNNING');
    if (this.plan.days.length === 0) await this.output.status('COMPLETE');
  }

  wants(day: Day): boolean {
    return this.output.isRunning && this.#days.has(day);
  }

  /** Takes the result of a day; true if its records are to be written. It may end the stream with a failure. */
  async take(result: DayResult, behaviour: ServiceBehaviour): Promise<boolean> {
    try {
      const isRead = result.kind === 'downloaded' || result.kind === 'empty';
      if (isRead && keepsEveryRecord(this.output.configured)) this.#requireEndDay(behaviour);
      const download = this.#outcome.add(result, behaviour);
      // A lost day fails the stream once a day after it is there: then all that are lost are known.
      const { failure } = this.#outcome;
      if (result.kind !== 'gone' && failure !== undefined) throw failure;
      return download !== undefined;
    } catch (error) {
      await this.output.fail(error);
      return false;
    }
  }

  /** Writes the state that goes with the records of a day just written. */
  async advance(
    receipt: Receipt,
    behaviour: ServiceBehaviour,
    { recordCounts, unsentColumns }: WrittenRecords,
  ): Promise<void> {
    this.#logUnsent(unsentColumns.get(this.name) ?? []);
    const receipts = new Map([...this.#outcome.receipts].sort(([a], [b]) => (a < b ? -1 : 1)).slice(-KEPT_DAYS));
    if (this.#refresh !== undefined) this.#refresh = { ...this.#refresh, [REFRESHED_THROUGH]: receipt.day };
    const state = stateAfter(this.#state, receipts, this.#outcome.progress(behaviour, this.#deps.clock.now()));
    this.#state = { ...state, days: Object.fromEntries(receipts), ...this.#refresh };
    await this.output.state(this.#state, recordCounts.get(this.name) ?? 0);
  }

  /** Writes COMPLETE behind the last day; a failure if a day was lost, or if nothing could be read. */
  async completeAfter(day: Day): Promise<void> {
    if (this.plan.days.at(-1) !== day) return;
    try {
      this.#outcome.finish();
      await this.output.status('COMPLETE');
    } catch (error) {
      await this.output.fail(error);
    }
  }

  /** Logs the columns that are not sent, once each. */
  #logUnsent(columns: readonly string[]): void {
    const newColumns = columns.filter((name) => !this.#loggedColumns.has(name));
    if (newColumns.length === 0) return;
    for (const name of newColumns) this.#loggedColumns.add(name);
    const message = `${this.name}: not in the configured catalog and so not sent: ${newColumns.join(', ')}.`;
    this.#deps.logger.info('columns.unsent', message);
  }

  /** Two exports that share rows send them twice, and only a merge by key makes them one again. */
  #requireEndDay({ includesEnd }: ServiceBehaviour): void {
    if (includesEnd !== undefined) return;
    throw configError(
      `Whether an export includes its to_date is not known, and the destination of ${this.name} keeps every record: rows ` +
        'would come twice or be missing. Set to_date_inclusive to true or false, as the provider says, or let the ' +
        'destination merge by key (append_dedup or overwrite_dedup).',
    );
  }
}
