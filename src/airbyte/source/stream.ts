import type { Clock } from '../../base/clock.ts';
import type { Day } from '../../base/days.ts';
import { configError, transientError, type UserError } from '../../base/errors.ts';
import { isObject } from '../../base/json.ts';
import type { Logger } from '../../base/log.ts';
import type { DayResult } from '../../extract/download/day.ts';
import { stateAfter, unreadState } from '../../extract/export-state.ts';
import { gapError } from '../../extract/extract.ts';
import { lastDayOverFor, nameDays } from '../../extract/plan/calendar.ts';
import type { Plan } from '../../extract/plan/which-days.ts';
import type { ImplausibleDay } from '../../extract/plausible.ts';
import { Progress } from '../../extract/progress.ts';
import type { ExportState, Receipt, RunFacts } from '../../extract/receipt.ts';
import type { ConfiguredStream } from '../protocol/input.ts';
import { type StreamDescriptor, type StreamStatus, streamState, streamStatus } from '../protocol/messages.ts';
import type { MessageWriter } from '../protocol/writer.ts';
import type { StreamName } from '../records/property-names.ts';
import type { RecordStream } from '../records/record-plan.ts';
import { REFRESHED_THROUGH, type StreamPlan, SYNC_ID, WAITING_UNTIL } from './stream-plans.ts';

/** Number of days of which a state keeps the row counts: what is usual for a weekday follows from four weeks. */
const KEPT_DAYS = 35;

export interface StreamOutput {
  readonly writer: MessageWriter;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Writes a status of a stream. `quotaReset` (ms since 1970): it waits for the limit of the service. */
export const writeStatus = (
  { writer, clock }: StreamOutput,
  stream: StreamDescriptor,
  status: StreamStatus,
  quotaReset?: number,
): Promise<void> => writer.write(streamStatus(stream, status, clock.now(), quotaReset));

/** What the run knows of the service when a day is there. */
export interface KnownFacts extends Pick<RunFacts, 'now' | 'toDateInclusive' | 'finalNewline'> {
  /** True once the run has tried to find out whether an export includes its `to_date`. */
  readonly isEndDayAsked: boolean;
}

/** One stream while it is read, with a cursor of its own, which never goes backward. */
export class Stream {
  readonly name: StreamName;
  readonly plan: Plan;
  readonly records: RecordStream;
  /** False once its last status, COMPLETE or INCOMPLETE, was written. */
  isOpen = true;
  readonly #descriptor: StreamDescriptor;
  readonly #output: StreamOutput;
  readonly #days: ReadonlySet<Day>;
  readonly #progress: Progress;
  /** Keys of a full refresh. */
  #refresh: { [SYNC_ID]?: number; [REFRESHED_THROUGH]?: Day } | undefined;
  #state: ExportState | undefined;
  /** Number of lost days that were recorded as gaps. */
  #settled = 0;
  /** Why a day that is not over was not read. */
  #openError: UserError | undefined;

  constructor(configured: ConfiguredStream, { name, plan }: StreamPlan, output: StreamOutput) {
    const { descriptor, jsonSchema, primaryKey, syncMode, syncId } = configured;
    this.name = name;
    this.plan = plan;
    this.records = {
      name,
      properties: isObject(jsonSchema.properties) ? jsonSchema.properties : {},
      // Records have the fields of the first level.
      keys: primaryKey.flatMap((path) => (path.length === 1 ? path : [])),
    };
    this.#descriptor = descriptor;
    this.#output = output;
    this.#days = new Set(plan.days);
    this.#progress = new Progress(plan);
    this.#state = plan.state;
    if (syncMode === 'full_refresh') this.#refresh = syncId === undefined ? {} : { [SYNC_ID]: syncId };
  }

  /** Writes STARTED, the state before the first record, and RUNNING. */
  async open(): Promise<void> {
    await this.#status('STARTED');
    await this.#writeState(0);
    await this.#status('RUNNING');
  }

  wants(day: Day): boolean {
    return this.isOpen && this.#days.has(day);
  }

  /** Takes the result of a day; returns true if its records are to be written. Throws a UserError that ends the stream. */
  take(result: DayResult, known: KnownFacts): boolean {
    if (result.kind === 'gone') {
      this.#progress.addGone(result.day);
      return false;
    }
    this.#recordLost();
    switch (result.kind) {
      case 'failed':
        throw result.error;
      case 'open':
        this.#openError ??= result.error;
        return false;
      case 'day':
        return !this.plan.appends || this.#mayAppend(result.day, known);
    }
  }

  /** Writes the state that goes with the records of a day just written. Returns the day if it is implausible. */
  async advance(receipt: Receipt, facts: KnownFacts, records: number): Promise<ImplausibleDay | undefined> {
    const { receipts } = this.#progress;
    const found = this.#progress.addLoaded(receipt);
    for (const old of [...receipts.keys()].sort().slice(0, -KEPT_DAYS)) receipts.delete(old);
    if (this.#refresh !== undefined) this.#refresh = { ...this.#refresh, [REFRESHED_THROUGH]: receipt.day };
    const state = stateAfter(this.#state, receipts, this.#progress.facts(facts));
    const days = Object.fromEntries([...receipts].sort(([a], [b]) => (a < b ? -1 : 1)));
    this.#state = { ...state, days, ...this.#refresh };
    await this.#writeState(records);
    return found;
  }

  /** True if this was the last day of the stream. Throws if a day was lost, or if nothing could be read. */
  endsWith(day: Day): boolean {
    if (this.plan.days.at(-1) !== day) return false;
    this.#recordLost();
    if (!this.#progress.isLoaded && this.#openError !== undefined) throw this.#openError;
    return true;
  }

  async close(status: 'COMPLETE' | 'INCOMPLETE'): Promise<void> {
    if (!this.isOpen) return;
    this.isOpen = false;
    await this.#status(status);
  }

  /** Gives the platform a sign of life while a day is waited for. `until` (ms since 1970): the limit is exhausted. */
  async signal(until: number | undefined): Promise<void> {
    await this.#status('RUNNING', until);
    await this.#writeState(0, until === undefined ? {} : { [WAITING_UNTIL]: new Date(until).toISOString() });
  }

  /** Plain append needs days that are over for `settle_hours`, and to know the end of an export. */
  #mayAppend(day: Day, { now, toDateInclusive, isEndDayAsked }: KnownFacts): boolean {
    const { settleHours = 0, toDateInclusive: configured } = this.plan;
    const isUnknown = configured === undefined && toDateInclusive === undefined;
    if (isUnknown && isEndDayAsked) {
      throw configError(
        `Whether an export includes its to_date is not known, and the destination of ${this.name} appends every record: rows ` +
          'would come twice or be missing. Set to_date_inclusive to true or false, as the provider says, or let the ' +
          'destination merge by key (append_dedup).',
      );
    }
    if (isUnknown) {
      this.#openError ??= transientError('Whether an export includes its to_date could not be found out yet.');
      return false;
    }
    if (day <= lastDayOverFor(now, settleHours)) return true;
    const message = `${day} has not been over for ${settleHours} hours by the clock of the service.`;
    this.#openError ??= transientError(message);
    return false;
  }

  /** Records the lost days as gaps. Throws under `on_gap: fail`. */
  #recordLost(): void {
    const lost = this.#progress.lost.slice(this.#settled);
    if (lost.length === 0) return;
    this.#settled += lost.length;
    if (this.#progress.failsAtGap) throw gapError(lost, this.plan.isNamed);
    const message = `${this.name}: the service no longer exports ${nameDays(lost)}: recorded as a gap.`;
    this.#output.logger.warn('day.gap', message);
  }

  #status(status: StreamStatus, quotaReset?: number): Promise<void> {
    return writeStatus(this.#output, this.#descriptor, status, quotaReset);
  }

  /** Before the first day of a first run the state has the cursor alone: nothing was read under any filters. */
  #writeState(records: number, more: object = {}): Promise<void> {
    const state = this.#state ?? { ...unreadState(this.plan.cursor), ...this.#refresh };
    return this.#output.writer.write(streamState(this.#descriptor, { ...state, ...more }, records));
  }
}
