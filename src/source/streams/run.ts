import { type ConfiguredCatalog, type ConfiguredStream, type StateInput, stateOf } from '../../airbyte/input.ts';
import { type StreamStatus, streamState, streamStatus, traceOf } from '../../airbyte/messages.ts';
import type { MessageWriter } from '../../airbyte/writer.ts';
import type { Clock } from '../../base/clock.ts';
import { addDays, type Day, laterOf } from '../../base/days.ts';
import { UserError } from '../../base/errors.ts';
import { isObject, type JsonObject } from '../../base/json.ts';
import type { Logger } from '../../base/log.ts';
import type { SourceConfig } from '../../config/source.ts';
import { Cursor, foundIn } from '../../extract/cursor.ts';
import type { Plan } from '../../extract/plan/plan.ts';
import type { Receipt, State, Window } from '../../extract/window.ts';
import type { StreamName } from '../../sinks/records/property-names.ts';
import type { RecordStream } from '../../sinks/records/record-plan.ts';
import { inStream, planStream, sinceOf, WAITING_UNTIL, withReading } from './plan.ts';

export interface Output {
  readonly writer: MessageWriter;
  readonly clock: Clock;
}

/** The messages about one stream: its status and its states. */
class StreamMessages {
  protected readonly output: Output;
  protected readonly stream: ConfiguredStream;

  constructor(stream: ConfiguredStream, output: Output) {
    this.stream = stream;
    this.output = output;
  }

  status(status: StreamStatus, quotaReset?: number): Promise<void> {
    const { writer, clock } = this.output;
    return writer.write(streamStatus(this.stream.descriptor, status, clock.now(), quotaReset));
  }

  state(state: object, records: number): Promise<void> {
    return this.output.writer.write(streamState(this.stream.descriptor, state, records));
  }
}

/** One stream while it is read. */
export class StreamRun extends StreamMessages {
  readonly name: StreamName;
  readonly plan: Plan;
  readonly records: RecordStream;
  /** False once its last status, COMPLETE or INCOMPLETE, was written. */
  isOpen = true;
  readonly #cursor: StreamCursor;

  constructor(stream: ConfiguredStream, name: StreamName, plan: Plan, output: Output) {
    super(stream, output);
    this.name = name;
    this.plan = plan;
    this.#cursor = new StreamCursor(plan, output.clock.now());
    this.records = { name, properties: propertiesOf(stream.jsonSchema), keys: keysOf(stream) };
  }

  /** STARTED, the state before the first record, RUNNING (S26). */
  async open(): Promise<void> {
    await this.status('STARTED');
    await this.state(this.#cursor.state, 0);
    await this.status('RUNNING');
  }

  /** The state that goes with the records of a window just written. */
  async advance(window: Window, primary: Plan, records: number): Promise<void> {
    this.#cursor.take(window, primary, this.output.clock.now());
    await this.state(this.#cursor.state, records);
  }

  /** Reports that the service's limit is exhausted, and repeats the last state as a heartbeat for the platform. */
  async limited(until: number): Promise<void> {
    await this.status('RUNNING', until);
    await this.state({ ...this.#cursor.state, [WAITING_UNTIL]: new Date(until).toISOString() }, 0);
  }

  /** The last state again. */
  async repeat(): Promise<void> {
    await this.state(this.#cursor.state, 0);
  }

  async close(status: 'COMPLETE' | 'INCOMPLETE'): Promise<void> {
    if (!this.isOpen) return;
    this.isOpen = false;
    if (status === 'COMPLETE') await this.#finish();
    await this.status(status);
  }

  /** A state that still says that the read goes on is not the last one. */
  async #finish(): Promise<void> {
    const before = this.#cursor.state;
    this.#cursor.finish();
    if (sinceOf(before) !== undefined) await this.state(this.#cursor.state, 0);
  }
}

const propertiesOf = (schema: JsonObject): JsonObject => (isObject(schema.properties) ? schema.properties : {});

/** Of the configured key the fields that records have: those of the first level. */
const keysOf = (stream: ConfiguredStream): string[] =>
  stream.primaryKey.flatMap((path) => (path.length === 1 ? path : []));

/** The cursor of one stream: its own days, its own state, never backward. */
class StreamCursor {
  state: State;
  readonly #plan: Plan;
  readonly #cursor: Cursor;
  readonly #since: string | undefined;

  /** `now`: when the read begins, ms since 1970. */
  constructor(plan: Plan, now: number) {
    this.#plan = plan;
    this.#cursor = new Cursor(plan);
    // A full refresh has a mark of its own, and a settled day is read once anyway.
    const looksBack = !plan.fullRefresh && plan.delivery === 'fresh' && plan.lookbackDays > 0;
    this.#since = looksBack ? (sinceOf(plan.state) ?? new Date(now).toISOString()) : undefined;
    this.state = plan.state;
  }

  /** Adds a window whose records were written to this stream; `primary` is the plan that it was extracted for. */
  take(window: Window, primary: Plan, now: number): void {
    const { receipt, state: found } = window;
    for (const day of found.gaps ?? []) this.#cursor.lose(day);
    if (primary.start === this.#plan.start && found.start_date !== undefined) this.#cursor.moveStart(found.start_date);
    const refreshed = this.#plan.fullRefresh && { refreshed_through: this.#refreshedThrough(window) };
    const state: State = { ...this.#cursor.take(receipt, foundIn(found), now), ...refreshed };
    this.state = withReading(state, this.#isWithin(state, receipt) ? this.#since : undefined);
  }

  /** Marks the read as complete: the next one reads the lookback days again. */
  finish(): void {
    this.state = withReading(this.state, undefined);
  }

  /** True while days are left to read, once the ones before the cursor have all been read. */
  #isWithin(state: State, { to, covers_to }: Receipt): boolean {
    const { lastDay, state: first } = this.#plan;
    const isLast = lastDay === undefined || (covers_to ?? to) >= lastDay;
    return !isLast && (sinceOf(first) !== undefined || state.from_date > first.from_date);
  }

  /** The last day that a full refresh has handed on; it may not be over yet, and is not read again within the same job. */
  #refreshedThrough({ receipt: { from, to }, state }: Window): Day {
    const isEndIncluded = from === to || state.ranges_inclusive === true;
    return laterOf(this.state.refreshed_through ?? from, isEndIncluded ? to : addDays(to, -1));
  }
}

export interface StreamSetDeps extends Output {
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

  /** Writes STARTED for every configured stream, and the final status of those that have nothing to read or cannot be read. */
  async open(catalog: ConfiguredCatalog, saved: StateInput, config: SourceConfig): Promise<void> {
    this.#count = catalog.streams.length;
    const now = this.#deps.clock.now();
    const warned = new Set<string>();
    for (const stream of catalog.streams) {
      const planned = planStream(stream, stateOf(saved, stream.descriptor), config, now);
      if (planned.kind === 'refused') await this.#refuse(stream, planned.failure);
      else if (planned.kind === 'skip') await this.#skip(stream, planned.state, planned.warning);
      else {
        if (planned.warning !== undefined) this.#deps.logger.warn('state.fresh_start', planned.warning);
        for (const { event, message } of planned.plan.warnings) {
          if (!warned.has(message)) this.#deps.logger.warn(event, message);
          warned.add(message);
        }
        this.runs.push(new StreamRun(stream, planned.name, planned.plan, this.#deps));
      }
    }
    for (const run of this.runs) await run.open();
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
    const { kind, message, internal, exitCode } = first.error;
    const streams = this.#failures.map((failure) => failure.stream).join(', ');
    const text = `${this.#failures.length} of ${this.#count} streams could not be read to the end (${streams}): ${message}`;
    throw new UserError(kind, text, { internal, exitCode, cause: first.error });
  }

  async #refuse(stream: ConfiguredStream, failure: UserError): Promise<void> {
    const messages = new StreamMessages(stream, this.#deps);
    await messages.status('STARTED');
    await this.#trace(stream.name, failure);
    await messages.status('INCOMPLETE');
  }

  async #skip(stream: ConfiguredStream, state: object, warning: string): Promise<void> {
    const messages = new StreamMessages(stream, this.#deps);
    this.#deps.logger.warn('state.future', warning);
    await messages.status('STARTED');
    await messages.state(state, 0);
    await messages.status('RUNNING');
    await messages.status('COMPLETE');
  }

  async #trace(stream: string, error: unknown): Promise<void> {
    this.#failures.push({ stream, error });
    const { writer, clock, mask } = this.#deps;
    const failure = error instanceof UserError ? inStream(error, stream) : error;
    await writer.write(traceOf(failure, clock.now(), mask));
  }
}
