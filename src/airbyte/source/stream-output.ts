import { UserError } from '../../base/errors.ts';
import type { SourceConfig } from '../../config/source.ts';
import type { ExtractDeps } from '../../extract/extract-deps.ts';
import type { ConfiguredStream } from '../protocol/catalog-and-states.ts';
import type { VerbContext } from '../protocol/connector.ts';
import { errorTrace, type StreamStatus, stateMessage, statusMessage } from '../protocol/messages.ts';
import type { MessageWriter } from '../protocol/writer.ts';
import type { Heartbeat } from './heartbeat.ts';

/** What the streams of one read share. */
export interface ReadDeps extends ExtractDeps {
  readonly config: SourceConfig;
  readonly writer: MessageWriter;
  readonly heartbeat: Heartbeat;
}

/** Key of a state that is repeated while waiting for the quota; ignored when the state is read. */
export const WAITING_UNTIL = 'waiting_until';

/** What the platform is told of one configured stream: its statuses, its states, and why it failed. */
export class StreamOutput {
  readonly configured: ConfiguredStream;
  /** True from STARTED to COMPLETE or INCOMPLETE. */
  isRunning = false;
  failure: UserError | undefined;
  readonly #context: VerbContext;
  #lastState: object | undefined;

  constructor(configured: ConfiguredStream, context: VerbContext) {
    this.configured = configured;
    this.#context = context;
  }

  /** `waitingUntil` (ms since 1970): the end of a wait for the quota of the service. */
  status(status: StreamStatus, waitingUntil?: number): Promise<void> {
    this.isRunning = status === 'STARTED' || status === 'RUNNING';
    const { writer, clock } = this.#context;
    return writer.write(statusMessage(this.configured.descriptor, status, clock.now(), waitingUntil));
  }

  /** `records` counts those since the state before. */
  state(state: object, records: number): Promise<void> {
    this.#lastState = state;
    return this.#context.writer.write(stateMessage(this.configured.descriptor, state, records));
  }

  /** Gives the platform a sign of life: the status and the last state again. */
  async beat(waitingUntil: number | undefined): Promise<void> {
    await this.status('RUNNING', waitingUntil);
    // The reader may have been slow, and a later state may have been written meanwhile.
    const state = this.#lastState;
    if (state === undefined || !this.isRunning) return;
    const waiting = waitingUntil === undefined ? {} : { [WAITING_UNTIL]: new Date(waitingUntil).toISOString() };
    await this.#context.writer.write(stateMessage(this.configured.descriptor, { ...state, ...waiting }, 0));
  }

  /**
   * Ends the stream with a failure; its last state remains valid. Throws what is none: a stop, a closed stdout, a
   * defect.
   */
  async fail(error: unknown): Promise<void> {
    const { writer, clock, redactor, signal } = this.#context;
    if (signal.aborted || !(error instanceof UserError)) throw error;
    this.failure = error;
    const failure = error.with({ where: { stream: this.configured.descriptor.name } });
    await writer.write(errorTrace(failure, clock.now(), redactor.mask));
    await this.status('INCOMPLETE');
  }
}
