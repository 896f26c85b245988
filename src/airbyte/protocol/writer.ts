import type { Writable } from 'node:stream';
import { UserError } from '../../base/errors.ts';
import type { LogEvent, LogSink } from '../../base/log.ts';
import { OutputQueue } from '../../base/output-queue.ts';
import type { Message } from './messages.ts';

/** Bytes queued before `write` makes its caller wait. */
const MAX_QUEUED_BYTES = 1024 * 1024;

const LEVELS = { debug: 'DEBUG', info: 'INFO', warn: 'WARN', error: 'ERROR' } as const;

/** The reader closed the pipe: the run ends. */
export class ClosedPipe extends UserError {
  override readonly name = 'ClosedPipe';

  constructor(cause: unknown) {
    super('transient', 'The reader of our output has closed it; nothing more can be written.', { cause });
  }
}

/**
 * The one writer of stdout, in the order of the calls. If the pipe fails, every later call rejects with a ClosedPipe.
 */
export class MessageWriter {
  readonly #queue: OutputQueue;
  #closed: ClosedPipe | undefined;

  /** Calls back once, when the pipe has failed. */
  constructor(out: Writable, onClosed: (error: ClosedPipe) => void = () => {}) {
    this.#queue = new OutputQueue(out, (error) => onClosed(this.#closedBy(error)));
  }

  /** Queues one message; waits only while more than 1 MiB is queued. */
  write(message: Message): Promise<void> {
    return this.writeLine(JSON.stringify(message));
  }

  /** Queues one message that is already text, without its line end. */
  writeLine(text: string): Promise<void> {
    this.#queue.add(`${text}\n`);
    return this.#orClosed(this.#queue.untilPendingAtMost(MAX_QUEUED_BYTES));
  }

  /** Writes whole lines. Resolves when the system has taken them, so that the buffer may be used again. */
  writeBytes(lines: Uint8Array): Promise<void> {
    return this.#orClosed(this.#queue.write(lines));
  }

  /** Writes log events as LOG messages; never waits. */
  readonly writeLog: LogSink = ({ level, message, event, fields }: LogEvent) => {
    const log: Message = { type: 'LOG', log: { level: LEVELS[level], message, event, ...(fields && { fields }) } };
    this.#queue.add(`${JSON.stringify(log)}\n`);
  };

  /** Resolves when everything written so far has been taken by the system; rejects when the pipe is closed. */
  drain(): Promise<void> {
    return this.#orClosed(this.#queue.drain());
  }

  async #orClosed(written: Promise<void>): Promise<void> {
    try {
      await written;
    } catch (error) {
      throw this.#closedBy(error);
    }
  }

  #closedBy(error: unknown): ClosedPipe {
    this.#closed ??= new ClosedPipe(error);
    return this.#closed;
  }
}
