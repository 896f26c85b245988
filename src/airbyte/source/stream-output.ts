import type { Day } from '../../base/days.ts';
import { UserError } from '../../base/errors.ts';
import type { ConfiguredStream } from '../protocol/catalog-and-states.ts';
import type { VerbContext } from '../protocol/connector.ts';
import { errorTraceMessage, type StreamStatus, stateMessage, streamStatusMessage } from '../protocol/messages.ts';
import type { StreamStats } from '../records/record-encoder.ts';
import { RESCUED_PROPERTY, type StreamSchemas } from '../records/streams.ts';

/** What the platform is told of one configured stream: its statuses, its states, and why it failed. */
export class StreamOutput {
  readonly configuredStream: ConfiguredStream;
  readonly descriptor: ConfiguredStream['descriptor'];
  readonly schemas: StreamSchemas['schemas'];
  failure: UserError | undefined;
  readonly #context: VerbContext;
  #lastStatus: StreamStatus | undefined;
  #lastState: object | undefined;
  readonly #loggedColumns = new Set<string>();

  constructor(configuredStream: ConfiguredStream, context: VerbContext) {
    const { descriptor, primaryKey, properties } = configuredStream;
    this.configuredStream = configuredStream;
    this.descriptor = descriptor;
    this.schemas = new Map([...primaryKey.map((name): [string, unknown] => [name, undefined]), ...properties]);
    this.#context = context;
  }

  /** True from STARTED to COMPLETE or INCOMPLETE. */
  get isRunning(): boolean {
    return this.#lastStatus === 'STARTED' || this.#lastStatus === 'RUNNING';
  }

  /** `waitingUntil` (ms since 1970): the end of a wait for the quota of the service. */
  writeStatus(status: StreamStatus, waitingUntil?: number): Promise<void> {
    this.#lastStatus = status;
    const { writer, clock } = this.#context;
    return writer.write(streamStatusMessage(this.descriptor, status, clock.now(), waitingUntil));
  }

  /** `recordCount`: records since the state before. */
  writeState(state: object, recordCount: number): Promise<void> {
    this.#lastState = state;
    return this.#context.writer.write(stateMessage(this.descriptor, state, recordCount));
  }

  /** Gives the platform a sign of life: the status and the last state again. */
  async beat(waitingUntil: number | undefined): Promise<void> {
    await this.writeStatus('RUNNING', waitingUntil);
    // The reader may have been slow, and a later state may have been written meanwhile.
    if (this.#lastState !== undefined && this.isRunning) await this.writeState(this.#lastState, 0);
  }

  /** Logs the cells of a day that did not fit, and the columns that are not sent, once each. */
  logStats(day: Day, { rescuedCells, unsentColumns }: StreamStats): void {
    const { logger } = this.#context;
    if (rescuedCells.size > 0) {
      const counts = [...rescuedCells].map(([name, count]) => `${name} (${count})`).join(', ');
      const whereTextIs = this.schemas.has(RESCUED_PROPERTY)
        ? 'their text is in _rescued'
        : 'their text is not sent, as the catalog lacks _rescued';
      const message = `${this.descriptor.name}: ${day}: cells that do not fit the configured types are null, ${whereTextIs}: ${counts}.`;
      logger.warn('cells.rescued', message);
    }
    const newColumns = [...unsentColumns].filter((name) => !this.#loggedColumns.has(name));
    if (newColumns.length === 0) return;
    for (const name of newColumns) this.#loggedColumns.add(name);
    const message = `${this.descriptor.name}: not in the configured catalog and so not sent: ${newColumns.join(', ')}.`;
    logger.info('columns.unsent', message);
  }

  /** Ends the stream; its last state remains valid. Throws what is no failure: a stop, a closed stdout, a defect. */
  async failOrThrow(error: unknown): Promise<void> {
    const { writer, clock, redactor, signal } = this.#context;
    if (signal.aborted || !(error instanceof UserError)) throw error;
    this.failure = error;
    await writer.write(errorTraceMessage(error, clock.now(), redactor.mask, this.descriptor));
    await this.writeStatus('INCOMPLETE');
  }
}
