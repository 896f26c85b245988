import type { Day } from '../../base/days.ts';
import { configError } from '../../base/errors.ts';
import type { Receipt } from '../../extract/checked-day.ts';
import { DaysOutcome } from '../../extract/days-outcome.ts';
import type { DayResult, ServiceBehaviour } from '../../extract/download/day.ts';
import type { ExportState } from '../../extract/export-state.ts';
import type { ExtractDeps } from '../../extract/extract-deps.ts';
import { cursorOf } from '../../extract/which-days.ts';
import { type RecordStream, recordStream } from '../records/record-plan.ts';
import type { StreamOutput } from './stream-output.ts';
import type { StreamPlan } from './stream-plans.ts';
import { firstState, nextState, type RefreshKeys } from './stream-state.ts';

/** One stream of events while it is read, with a cursor of its own, which never goes backward. */
export class EventStream {
  readonly plan: StreamPlan;
  readonly output: StreamOutput;
  readonly recordStream: RecordStream;
  readonly #deps: ExtractDeps;
  readonly #outcome: DaysOutcome;
  /** Undefined for an incremental stream. */
  readonly #refresh: RefreshKeys | undefined;
  #state: ExportState | undefined;

  constructor(output: StreamOutput, plan: StreamPlan, deps: ExtractDeps) {
    const { syncMode, syncId } = output.configured;
    this.plan = plan;
    this.output = output;
    this.recordStream = recordStream(plan.name, output.configured);
    this.#deps = deps;
    this.#outcome = new DaysOutcome(plan, deps);
    this.#state = plan.state;
    if (syncMode === 'full_refresh') this.#refresh = { sync_id: syncId };
  }

  /** Writes STARTED, the state before the first record, and RUNNING; without a day to read also COMPLETE. */
  async start(): Promise<void> {
    await this.output.writeStatus('STARTED');
    await this.output.writeState(this.#state ?? firstState(cursorOf(this.plan), this.#refresh), 0);
    await this.output.writeStatus('RUNNING');
    if (this.plan.days.length === 0) await this.output.writeStatus('COMPLETE');
  }

  wants(day: Day): boolean {
    return this.output.isRunning && this.plan.days.includes(day);
  }

  /** Takes the result of a day; true if its records are to be written. It may end the stream with a failure. */
  async take(result: DayResult, behaviour: ServiceBehaviour): Promise<boolean> {
    try {
      const isRead = result.kind === 'downloaded' || result.kind === 'empty';
      if (isRead && this.plan.keepsRepetition) this.#requireEndDay(behaviour);
      const download = this.#outcome.add(result, behaviour);
      // Lost days come first. The stream fails at the day behind them, so that the failure names all of them.
      const { failure } = this.#outcome;
      if (result.kind !== 'gone' && failure !== undefined) throw failure;
      return download !== undefined;
    } catch (error) {
      await this.output.fail(error);
      return false;
    }
  }

  /** Writes the state that goes with the records of a day just written. */
  async advance(receipt: Receipt, behaviour: ServiceBehaviour, recordCount: number): Promise<void> {
    const { receipts } = this.#outcome;
    const progress = this.#outcome.progress(behaviour, this.#deps.clock.now());
    const refresh = this.#refresh && { ...this.#refresh, refreshed_through: receipt.day };
    this.#state = nextState(this.#state, receipts, progress, refresh);
    await this.output.writeState(this.#state, recordCount);
  }

  /** Writes COMPLETE behind the last day; a failure if a day was lost, or if nothing could be read. */
  async completeAfter(day: Day): Promise<void> {
    if (this.plan.days.at(-1) !== day) return;
    try {
      this.#outcome.finish();
      await this.output.writeStatus('COMPLETE');
    } catch (error) {
      await this.output.fail(error);
    }
  }

  /** Two exports that share rows send them twice, and only a merge by key makes them one again. */
  #requireEndDay({ includesEnd }: ServiceBehaviour): void {
    if (includesEnd !== undefined) return;
    throw configError(
      `Whether an export includes its to_date is not known, and the destination of ${this.plan.name} keeps every record: rows ` +
        'would come twice or be missing. Set to_date_inclusive to true or false, as the provider says, or let the ' +
        'destination merge by key (append_dedup or overwrite_dedup).',
    );
  }
}
