import type { LogSink } from '../../base/log.ts';
import { OutputQueue } from '../../base/output-queue.ts';
import { logMessage, type Message } from './messages.ts';

/** Bytes queued before `write` makes its caller wait. */
const MAX_QUEUED_BYTES = 1024 * 1024;

/** The one writer of stdout. Records go through `queueAndDrain`, after which their buffer may be used again. */
export class MessageWriter extends OutputQueue {
  /** Queues one message; waits only if more than 1 MiB is queued. */
  write(message: Message): Promise<void> {
    return this.writeLine(JSON.stringify(message));
  }

  /** Queues one message that is already text, without its line end. */
  writeLine(text: string): Promise<void> {
    this.queue(`${text}\n`);
    return this.drain(MAX_QUEUED_BYTES);
  }

  /** Writes log events as LOG messages; never waits. */
  readonly writeLog: LogSink = (event) => this.queue(`${JSON.stringify(logMessage(event))}\n`);
}
