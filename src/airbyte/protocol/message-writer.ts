import type { Writable } from 'node:stream';
import type { LogSink } from '../../base/log.ts';
import { OutputQueue } from '../../base/output-queue.ts';
import { logMessage, type Message } from './messages.ts';

/** Bytes queued before `write` makes its caller wait. */
const MAX_QUEUED_BYTES = 1024 * 1024;

/** The one writer of stdout, in the order of the calls. Once the pipe has failed, every call rejects. */
export class MessageWriter {
  readonly #output: OutputQueue;

  /** Calls back once, when the pipe has failed. */
  constructor(out: Writable, onClosed: (error: Error) => void = () => {}) {
    this.#output = new OutputQueue(out, onClosed);
  }

  /** Queues one message; waits only if more than 1 MiB is queued. */
  write(message: Message): Promise<void> {
    return this.writeLine(JSON.stringify(message));
  }

  /** Queues one message that is already text, without its line end. */
  writeLine(text: string): Promise<void> {
    this.#output.queue(`${text}\n`);
    return this.#output.drain(MAX_QUEUED_BYTES);
  }

  /** Writes whole lines. Resolves when the system has taken them, so that the buffer may be used again. */
  writeBytes(lines: Uint8Array): Promise<void> {
    return this.#output.queueAndDrain(lines);
  }

  /** Writes log events as LOG messages; never waits. */
  readonly writeLog: LogSink = (event) => {
    this.#output.queue(`${JSON.stringify(logMessage(event))}\n`);
  };

  /** Resolves when everything written so far has been taken by the system. */
  drain(): Promise<void> {
    return this.#output.drain();
  }
}
