import type { Clock } from '../../../base/clock.ts';
import { addDays, type Day } from '../../../base/days.ts';
import { configError, transientError, UserError } from '../../../base/errors.ts';
import { isObject, type JsonObject } from '../../../base/json.ts';
import type { Logger } from '../../../base/log.ts';
import type { SourceConfig } from '../../../config/source.ts';
import { gapError } from '../../../extract/extract.ts';
import { lastDayOverFor, mayStillArrive } from '../../../extract/plan/calendar.ts';
import { nameDays } from '../../../extract/plan/name-days.ts';
import type { Plan } from '../../../extract/plan/plan.ts';
import { type ImplausibleDay, implausible } from '../../../extract/plausible.ts';
import type { DayDownload, ExportState, RunFacts, StoredReceiptFacts } from '../../../extract/receipt.ts';
import { stateAfter, unreadState } from '../../../extract/state.ts';
import type { StreamName } from '../../../targets/records/property-names.ts';
import type { RecordStream } from '../../../targets/records/record-plan.ts';
import { type ConfiguredCatalog, type ConfiguredStream, type StateInput, savedState } from '../../protocol/input.ts';
import { type StreamStatus, streamState, streamStatus, traceOf } from '../../protocol/messages.ts';
import type { MessageWriter } from '../../protocol/writer.ts';
import { planStream, REFRESHED_THROUGH, type StreamPlan, SYNC_ID, WAITING_UNTIL } from './plan.ts';

/** Number of days of which a state keeps the row counts: what is usual for a weekday follows from four weeks. */
const KEPT_DAYS = 35;

export interface StreamOutput {
  readonly writer: MessageWriter;
  readonly clock: Clock;
}

const messagesOf = ({ descriptor }: ConfiguredStream, { writer, clock }: StreamOutput) => ({
  status: (status: StreamStatus, quotaReset?: number) =>
    writer.write(streamStatus(descriptor, status, clock.now(), quotaReset)),
  state: (state: object, records = 0) => writer.write(streamState(descriptor, state, records)),
});

/** What the run knows of the service when a day is delivered. */
export interface KnownFacts extends Pick<RunFacts, 'now' | 'toDateInclusive' | 'finalNewline'> {
  /** True once the run has tried to find out whether an export includes its `to_date`. */
  readonly isEndDayAsked: boolean;
}

/** One stream while it is read, with a cursor of its own, which never goes backward. */
export class StreamRun {
  readonly name: StreamName;
  readonly plan: Plan;
  readonly records: RecordStream;
  /** False once its last status, COMPLETE or INCOMPLETE, was written. */
  isOpen = true;
  readonly #messages: ReturnType<typeof messagesOf>;
  readonly #days: ReadonlySet<Day>;
  readonly #receipts: Map<Day, StoredReceiptFacts>;
  /** Keys of a full refresh. */
  #refresh: { [SYNC_ID]?: number; [REFRESHED_THROUGH]?: Day } | undefined;
  #state: ExportState | undefined;
  #start: Day;
  /** Days that were found to be lost and not yet reported. */
  #lost: Day[] = [];
  #gaps: readonly Day[] = [];
  #isLoaded = false;
  #openError: UserError | undefined;

  constructor(stream: ConfiguredStream, name: StreamName, plan: Plan, output: StreamOutput) {
    const { syncId } = stream;
    this.name = name;
    this.plan = plan;
    this.records = { name, properties: propertiesOf(stream.jsonSchema), keys: keysOf(stream) };
    this.#messages = messagesOf(stream, output);
    this.#days = new Set(plan.days);
    this.#receipts = new Map(plan.receipts);
    this.#state = plan.state;
    this.#start = plan.start;
    if (stream.syncMode === 'full_refresh') this.#refresh = syncId === undefined ? {} : { [SYNC_ID]: syncId };
  }

  wants(day: Day): boolean {
    return this.isOpen && this.#days.has(day);
  }

  isLastDay(day: Day): boolean {
    return this.plan.days.at(-1) === day;
  }

  /** Writes STARTED, the state before the first record, and RUNNING. */
  async open(): Promise<void> {
    await this.#messages.status('STARTED');
    await this.repeat();
    await this.#messages.status('RUNNING');
  }

  /** Throws if this stream must not get the day: plain append needs days that are over for `settle_hours`, and to know the end of an export. */
  checkDay(day: Day, { now, toDateInclusive, isEndDayAsked }: KnownFacts): void {
    const { appends, settleHours, toDateInclusive: configured } = this.plan;
    if (!appends) return;
    const isUnknown = configured === undefined && toDateInclusive === undefined;
    if (isUnknown && !isEndDayAsked)
      throw transientError(`Whether an export includes its to_date could not be found out yet.`);
    if (isUnknown) {
      throw configError(
        `Whether an export includes its to_date is not known, and the destination of ${this.name} appends every record: rows ` +
          'would come twice or be missing. Set to_date_inclusive to true or false, as the provider says, or let the ' +
          'destination merge by key (append_dedup).',
      );
    }
    if (settleHours !== undefined && day > lastDayOverFor(now, settleHours)) {
      throw transientError(`${day} has not been over for ${settleHours} hours by the clock of the service.`);
    }
  }

  /** Writes the state that goes with the records of a day just written. Returns the day if it is implausible. */
  async advance({ receipt }: DayDownload, known: KnownFacts, records: number): Promise<ImplausibleDay | undefined> {
    const { day, rows, to_date, is_over, requested_at } = receipt;
    this.#isLoaded = true;
    this.#receipts.set(day, { rows, to_date, is_over, requested_at });
    for (const old of [...this.#receipts.keys()].sort().slice(0, -KEPT_DAYS)) this.#receipts.delete(old);
    if (this.#refresh !== undefined) this.#refresh = { ...this.#refresh, [REFRESHED_THROUGH]: day };
    const { hashes, hashing, appends } = this.plan;
    const { now, toDateInclusive, finalNewline } = known;
    const found = { now, toDateInclusive, finalNewline };
    const facts = { ...found, start: this.#start, hashes, hashing, isMixed: false, gaps: this.#gaps, appends };
    const days = Object.fromEntries([...this.#receipts].sort(([a], [b]) => (a < b ? -1 : 1)));
    this.#state = { ...stateAfter(this.#state, this.#receipts, facts), days, ...this.#refresh };
    await this.repeat(records);
    return implausible(day, this.#receipts);
  }

  /** Takes a day that the service no longer exports. */
  addGone(day: Day): void {
    const { gapFrom, state } = this.plan;
    if (gapFrom !== undefined && day >= gapFrom && this.#receipts.get(day)?.is_over !== true) this.#lost.push(day);
    else if (state?.start_date === undefined && day >= this.#start) this.#start = addDays(day, 1);
  }

  /** Takes a day that is not over and was not loaded. */
  addOpen(error: UserError): void {
    this.#openError ??= error;
  }

  /** Records the lost days as gaps, and returns them. Throws under `on_gap: fail`. */
  takeGaps(): readonly Day[] {
    const lost = this.#lost;
    this.#lost = [];
    if (lost.length > 0 && this.plan.onGap === 'fail') throw gapError(lost);
    this.#gaps = [...this.#gaps, ...lost];
    return lost;
  }

  /** Why the stream is not complete although all of its days were taken; undefined if it is. */
  get incomplete(): UserError | undefined {
    return this.#isLoaded ? undefined : this.#openError;
  }

  /** Reports that the service's limit is exhausted, and repeats the last state as a heartbeat for the platform. */
  async limited(until: number): Promise<void> {
    await this.#messages.status('RUNNING', until);
    await this.#messages.state({ ...this.#shownState(), [WAITING_UNTIL]: new Date(until).toISOString() });
  }

  async resumed(): Promise<void> {
    await this.#messages.status('RUNNING');
  }

  async repeat(records = 0): Promise<void> {
    await this.#messages.state(this.#shownState(), records);
  }

  async close(status: 'COMPLETE' | 'INCOMPLETE'): Promise<void> {
    if (!this.isOpen) return;
    this.isOpen = false;
    await this.#messages.status(status);
  }

  /** Before the first day of a first run the state has the cursor alone: nothing was read under any filters. */
  #shownState(): object {
    return this.#state ?? { ...unreadState(this.plan.cursor), ...this.#refresh };
  }
}

const propertiesOf = (schema: JsonObject): JsonObject => (isObject(schema.properties) ? schema.properties : {});

/** The fields of the configured key that records have: those of the first level. */
const keysOf = (stream: ConfiguredStream): string[] =>
  stream.primaryKey.flatMap((path) => (path.length === 1 ? path : []));

export interface StreamSetDeps extends StreamOutput {
  readonly logger: Logger;
  readonly mask: (text: string) => string;
}

/** All streams of one read, and what failed among them. */
export class StreamSet {
  readonly runs: StreamRun[] = [];
  readonly #deps: StreamSetDeps;
  readonly #failures: { readonly stream: string; readonly error: unknown }[] = [];
  readonly #warned = new Set<Day>();
  #count = 0;

  constructor(deps: StreamSetDeps) {
    this.#deps = deps;
  }

  /**
   * Writes STARTED for every configured stream, and the final status of those that have nothing to read or cannot be
   * read.
   */
  async open(catalog: ConfiguredCatalog, saved: StateInput, config: SourceConfig): Promise<void> {
    this.#count = catalog.streams.length;
    const now = this.#deps.clock.now();
    for (const stream of catalog.streams) {
      const messages = messagesOf(stream, this.#deps);
      let planned: StreamPlan;
      try {
        planned = planStream(stream, savedState(saved, stream.descriptor), config, now);
      } catch (error) {
        if (!(error instanceof UserError)) throw error;
        await messages.status('STARTED');
        await this.#trace(stream.name, error);
        await messages.status('INCOMPLETE');
        continue;
      }
      if ('state' in planned) {
        this.#deps.logger.warn('state.future', planned.warning);
        await messages.status('STARTED');
        await messages.state(planned.state);
        await messages.status('RUNNING');
        await messages.status('COMPLETE');
        continue;
      }
      if (planned.warning !== undefined) this.#deps.logger.warn('state.fresh_start', planned.warning);
      this.runs.push(new StreamRun(stream, planned.name, planned.plan, this.#deps));
    }
    for (const run of this.runs) await run.open();
    for (const run of this.runs) if (run.plan.days.length === 0) await run.close('COMPLETE');
  }

  /** The open streams that want a day. */
  wanting(day: Day): StreamRun[] {
    return this.runs.filter((run) => run.wants(day));
  }

  /** Gives a sign of life in every stream that is still being read; these writes are not waited for. */
  inEachOpen(sign: (run: Pick<StreamRun, 'limited' | 'resumed' | 'repeat'>) => Promise<void>): void {
    for (const run of this.runs) if (run.isOpen) sign(run).catch(() => {});
  }

  /** Settles the lost days that came before another day, or before the end of the run. */
  async passGaps(): Promise<void> {
    for (const run of this.runs.filter(({ isOpen }) => isOpen)) {
      try {
        const lost = run.takeGaps();
        const text = `${run.name}: the service no longer exports ${nameDays(lost)}: recorded as a gap.`;
        if (lost.length > 0) this.#deps.logger.warn('day.gap', text);
      } catch (error) {
        await this.fail([run], error);
      }
    }
  }

  /** Warns of an implausible day, once for all streams; ends the stream under `on_implausible: fail`. */
  async addImplausible(run: StreamRun, { day, rows, usual }: ImplausibleDay, now: number): Promise<void> {
    const text = `${day} has ${rows} rows; its weekday has ${Math.round(usual)} as a rule.`;
    if (!this.#warned.has(day)) this.#deps.logger.warn('day.implausible', text, { day, rows, usual });
    this.#warned.add(day);
    if (run.plan.onImplausible === 'warn' || !mayStillArrive(day, now)) return;
    await this.fail([run], transientError(`${text} Nothing after it is read (on_implausible: fail). Run again later.`));
  }

  /** Ends the streams of which this was the last day. */
  async complete(day: Day): Promise<void> {
    for (const run of this.wanting(day)) {
      if (!run.isLastDay(day)) continue;
      await this.passGaps();
      const { incomplete } = run;
      if (incomplete !== undefined) await this.fail([run], incomplete);
      else await run.close('COMPLETE');
    }
  }

  /** Ends failed streams: writes the failure and INCOMPLETE. The last state of each remains valid. */
  async fail(runs: readonly StreamRun[], error: unknown): Promise<void> {
    for (const run of runs) {
      if (!run.isOpen) continue;
      await this.#trace(run.name, error);
      await run.close('INCOMPLETE');
    }
  }

  /** Throws when any stream failed: the exit code alone tells some readers. The first failure says what to do. */
  finish(): void {
    const [first] = this.#failures;
    if (first === undefined) return;
    if (!(first.error instanceof UserError)) throw first.error;
    const streams = this.#failures.map((failure) => failure.stream).join(', ');
    const text = `${this.#failures.length} of ${this.#count} streams could not be read to the end (${streams}): ${first.error.message}`;
    throw first.error.with({ message: text });
  }

  async #trace(stream: string, error: unknown): Promise<void> {
    this.#failures.push({ stream, error });
    const { writer, clock, mask } = this.#deps;
    const failure = error instanceof UserError ? error.with({ where: { stream } }) : error;
    await writer.write(traceOf(failure, clock.now(), mask));
  }
}
