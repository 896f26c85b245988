import type { Clock } from '../../../base/clock.ts';
import { laterOf } from '../../../base/days.ts';
import { UserError } from '../../../base/errors.ts';
import { isObject, type JsonObject } from '../../../base/json.ts';
import type { Logger } from '../../../base/log.ts';
import type { SourceConfig } from '../../../config/source.ts';
import { Cursor } from '../../../extract/cursor.ts';
import { factsIn } from '../../../extract/download/service-facts.ts';
import { lastContained } from '../../../extract/plan/days.ts';
import type { Plan } from '../../../extract/plan/plan.ts';
import type { ExportState, Receipt, Window } from '../../../extract/window.ts';
import type { StreamName } from '../../../targets/records/property-names.ts';
import type { RecordStream } from '../../../targets/records/record-plan.ts';
import { type ConfiguredCatalog, type ConfiguredStream, type StateInput, savedState } from '../../protocol/input.ts';
import { type StreamStatus, streamState, streamStatus, traceOf } from '../../protocol/messages.ts';
import type { MessageWriter } from '../../protocol/writer.ts';
import { planStream, type StreamPlan, sinceOf, WAITING_UNTIL, withReading } from './plan.ts';

export interface StreamOutput {
  readonly writer: MessageWriter;
  readonly clock: Clock;
}

const messagesOf = ({ descriptor }: ConfiguredStream, { writer, clock }: StreamOutput) => ({
  status: (status: StreamStatus, quotaReset?: number) =>
    writer.write(streamStatus(descriptor, status, clock.now(), quotaReset)),
  state: (state: object, records = 0) => writer.write(streamState(descriptor, state, records)),
});

/** One stream while it is read, with a cursor of its own, which never goes backward. */
export class StreamRun {
  readonly name: StreamName;
  readonly plan: Plan;
  readonly records: RecordStream;
  /** False once its last status, COMPLETE or INCOMPLETE, was written. */
  isOpen = true;
  readonly #messages: ReturnType<typeof messagesOf>;
  readonly #clock: Clock;
  readonly #cursor: Cursor;
  readonly #since: string | undefined;
  #state: ExportState;

  constructor(stream: ConfiguredStream, name: StreamName, plan: Plan, output: StreamOutput) {
    this.name = name;
    this.plan = plan;
    this.records = { name, properties: propertiesOf(stream.jsonSchema), keys: keysOf(stream) };
    this.#messages = messagesOf(stream, output);
    this.#clock = output.clock;
    this.#cursor = new Cursor(plan);
    // A full refresh keeps a position of its own, and a settled day is read only once.
    const looksBack = !plan.fullRefresh && plan.delivery === 'fresh' && plan.lookbackDays > 0;
    this.#since = looksBack ? (sinceOf(plan.state) ?? new Date(output.clock.now()).toISOString()) : undefined;
    this.#state = plan.state;
  }

  /** Writes STARTED, the state before the first record, and RUNNING. */
  async open(): Promise<void> {
    await this.#messages.status('STARTED');
    await this.repeat();
    await this.#messages.status('RUNNING');
  }

  /**
   * Writes the state that goes with the records of a window just written; `primary` is the plan that it was extracted
   * for.
   */
  async advance({ receipt, state: found }: Window, primary: Plan, records: number): Promise<void> {
    for (const day of found.gaps ?? []) this.#cursor.recordLost(day);
    if (primary.start === this.plan.start && found.start_date !== undefined) this.#cursor.moveStart(found.start_date);
    // While the end rule is unknown, `to` counts as missing: it is read again.
    const last = lastContained(receipt, found.ranges_inclusive !== true);
    // The last day that a full refresh has delivered; it may not be over yet, but is not read again within the same
    // job.
    const refreshed = { refreshed_through: laterOf(this.#state.refreshed_through ?? receipt.from, last) };
    const recorded = this.#cursor.record(receipt, factsIn(found), this.#clock.now());
    const state: ExportState = { ...recorded, ...(this.plan.fullRefresh && refreshed) };
    this.#state = withReading(state, this.#isWithin(state, receipt) ? this.#since : undefined);
    await this.repeat(records);
  }

  /** True while days are left to read, once the ones before the cursor have all been read. */
  #isWithin(state: ExportState, { to, covers_to }: Receipt): boolean {
    const { days, state: first } = this.plan;
    const lastDay = days.at(-1);
    const isLast = lastDay === undefined || (covers_to ?? to) >= lastDay;
    return !isLast && (sinceOf(first) !== undefined || state.from_date > first.from_date);
  }

  /** Reports that the service's limit is exhausted, and repeats the last state as a heartbeat for the platform. */
  async limited(until: number): Promise<void> {
    await this.#messages.status('RUNNING', until);
    await this.#messages.state({ ...this.#state, [WAITING_UNTIL]: new Date(until).toISOString() });
  }

  async resumed(): Promise<void> {
    await this.#messages.status('RUNNING');
  }

  async repeat(records = 0): Promise<void> {
    await this.#messages.state(this.#state, records);
  }

  async close(status: 'COMPLETE' | 'INCOMPLETE'): Promise<void> {
    if (!this.isOpen) return;
    this.isOpen = false;
    if (status === 'COMPLETE' && sinceOf(this.#state) !== undefined) {
      // A state that still says that the read goes on is not the last one: the next read reads the lookback days again.
      this.#state = withReading(this.#state, undefined);
      await this.repeat();
    }
    await this.#messages.status(status);
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
    const warned = new Set<string>();
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
      for (const { event, message } of planned.plan.warnings) {
        if (!warned.has(message)) this.#deps.logger.warn(event, message);
        warned.add(message);
      }
      this.runs.push(new StreamRun(stream, planned.name, planned.plan, this.#deps));
    }
    for (const run of this.runs) await run.open();
  }

  /** Gives a sign of life in every stream that is still being read; these writes are not waited for. */
  inEachOpen(sign: (run: Pick<StreamRun, 'limited' | 'resumed' | 'repeat'>) => Promise<void>): void {
    for (const run of this.runs) if (run.isOpen) sign(run).catch(() => {});
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
