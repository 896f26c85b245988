import { UserError } from '../../base/errors.ts';
import type { ConfiguredStream } from '../protocol/catalog-and-states.ts';
import type { VerbContext } from '../protocol/connector.ts';
import { errorTrace, type StreamStatus, stateMessage, statusMessage } from '../protocol/messages.ts';

/** What the platform is told of one configured stream: its statuses, its states, and why it failed. */
export class StreamOutput {
  readonly configured: ConfiguredStream;
  /** True from STARTED to COMPLETE or INCOMPLETE. */
  isRunning = false;
  failure: UserError | undefined;
  readonly #context: VerbContext;
  #lastState: object | undefined;
  readonly #loggedColumns = new Set<string>();

  constructor(configured: ConfiguredStream, context: VerbContext) {
    this.configured = configured;
    this.#context = context;
  }

  get name(): string {
    return this.configured.descriptor.name;
  }

  /** Sets `isRunning`, too. `waitingUntil` (ms since 1970): the end of a wait for the quota of the service. */
  writeStatus(status: StreamStatus, waitingUntil?: number): Promise<void> {
    this.isRunning = status === 'STARTED' || status === 'RUNNING';
    const { writer, clock } = this.#context;
    return writer.write(statusMessage(this.configured.descriptor, status, clock.now(), waitingUntil));
  }

  /** `recordCount`: records since the state before. */
  writeState(state: object, recordCount: number): Promise<void> {
    this.#lastState = state;
    return this.#context.writer.write(stateMessage(this.configured.descriptor, state, recordCount));
  }

  /** Gives the platform a sign of life: the status and the last state again. */
  async beat(waitingUntil: number | undefined): Promise<void> {
    await this.writeStatus('RUNNING', waitingUntil);
    // The reader may have been slow, and a later state may have been written meanwhile.
    const state = this.#lastState;
    if (state === undefined || !this.isRunning) return;
    const repeated =
      waitingUntil === undefined ? state : { ...state, waiting_until: new Date(waitingUntil).toISOString() };
    await this.#context.writer.write(stateMessage(this.configured.descriptor, repeated, 0));
  }

  /** Logs the columns that are not sent, once each. */
  logUnsent(columns: ReadonlySet<string>): void {
    const newColumns = [...columns].filter((name) => !this.#loggedColumns.has(name));
    if (newColumns.length === 0) return;
    for (const name of newColumns) this.#loggedColumns.add(name);
    const message = `${this.name}: not in the configured catalog and so not sent: ${newColumns.join(', ')}.`;
    this.#context.logger.info('columns.unsent', message);
  }

  /**
   * Ends the stream with a failure; its last state remains valid. Throws what is none: a stop, a closed stdout, a
   * defect.
   */
  async fail(error: unknown): Promise<void> {
    const { writer, clock, redactor, signal } = this.#context;
    if (signal.aborted || !(error instanceof UserError)) throw error;
    this.failure = error;
    await writer.write(errorTrace(error, clock.now(), redactor.mask, this.configured.descriptor));
    await this.writeStatus('INCOMPLETE');
  }
}
