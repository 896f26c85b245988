import type { ConfiguredStream } from '../../airbyte/configured-catalog.ts';
import { isObject, type JsonObject } from '../../airbyte/json.ts';
import { type StreamStatus, streamState, streamStatus } from '../../airbyte/messages.ts';
import type { MessageWriter } from '../../airbyte/writer.ts';
import type { Clock } from '../../base/clock.ts';
import type { Plan } from '../../extract/plan/plan.ts';
import type { Window } from '../../extract/window.ts';
import type { StreamName } from '../../sinks/records/property-names.ts';
import type { RecordStream } from '../../sinks/records/record-plan.ts';
import { StreamCursor } from '../cursor.ts';
import { sinceOf } from '../reading.ts';
import { WAITING_UNTIL } from './plan.ts';

export interface Output {
  readonly writer: MessageWriter;
  readonly clock: Clock;
}

/** The messages about one stream: its status and its states. */
export class StreamMessages {
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
  async advance(window: Window, lead: Plan, records: number): Promise<void> {
    this.#cursor.take(window, lead, this.output.clock.now());
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
