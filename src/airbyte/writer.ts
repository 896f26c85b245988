import { close, constants, fstatSync, open } from 'node:fs';
import { Socket } from 'node:net';
import type { Writable } from 'node:stream';
import type { Clock } from '../base/clock.ts';
import { codeOf, Failure } from '../base/errors.ts';
import type { LogEvent, LogSink } from '../base/log.ts';
import { type Level, log, type Message } from './messages.ts';

/** Bytes gathered before they are handed to the system in one call. */
const BATCH_BYTES = 64 * 1024;
/** Bytes queued before `write` makes its caller wait. */
const MOST_QUEUED_BYTES = 1024 * 1024;
/** How often a pipe is asked for its reader. */
const READER_MS = 2_000;

const LEVELS = { debug: 'DEBUG', info: 'INFO', warn: 'WARN', error: 'ERROR' } as const satisfies Record<string, Level>;

/** The other side closed the pipe: nothing can be told any more, the run ends. */
export class ClosedPipe extends Failure {
  override readonly name = 'ClosedPipe';

  constructor(cause: unknown) {
    super('transient', 'The reader of our output has closed it; nothing more can be said.', { cause });
  }
}

/**
 * The one writer of stdout. Everything goes out in the order of the calls. A failed pipe makes every later call reject
 * with a ClosedPipe and is told to `onClosed` once.
 */
export class MessageWriter {
  readonly #out: Writable;
  #onClosed: ((error: ClosedPipe) => void) | undefined;
  #batch: (string | Uint8Array)[] = [];
  #batchBytes = 0;
  #queuedBytes = 0;
  #isScheduled = false;
  #failed: ClosedPipe | undefined;
  #waiting: { readonly most: number; readonly resolve: () => void; readonly reject: (error: Error) => void }[] = [];

  constructor(out: Writable) {
    this.#out = out;
    out.on('error', (error) => this.#fail(error));
    out.on('close', () => this.#fail(new Error('closed')));
  }

  onClosed(listener: (error: ClosedPipe) => void): void {
    this.#onClosed = listener;
  }

  /** Queues one message; waits only while more than 1 MiB is queued. */
  write(message: Message): Promise<void> {
    return this.writeLine(JSON.stringify(message));
  }

  /** Queues one message that is text already, without its line end. */
  writeLine(text: string): Promise<void> {
    if (this.#failed) return Promise.reject(this.#failed);
    this.#add(`${text}\n`, Buffer.byteLength(text) + 1);
    return this.#below(MOST_QUEUED_BYTES);
  }

  /** Writes whole lines that are bytes already. Resolves when the system has taken them: the buffer may be used again. */
  writeBytes(lines: Uint8Array): Promise<void> {
    if (this.#failed) return Promise.reject(this.#failed);
    this.#send();
    return new Promise((resolve, reject) => {
      this.#queuedBytes += lines.length;
      this.#out.write(lines, (error) => {
        this.#taken(lines.length);
        if (error) reject(this.#fail(error));
        else resolve();
      });
    });
  }

  /** Log events as LOG messages; they never make anybody wait. */
  readonly sink: LogSink = (event: LogEvent) => {
    const { level, message, event: name, fields } = event;
    this.write(log(LEVELS[level], message, { event: name, ...(fields && { fields }) })).catch(() => {});
  };

  /** Resolves when everything written so far has been taken by the system; rejects when the pipe is closed. */
  async drain(): Promise<void> {
    if (this.#failed) throw this.#failed;
    this.#send();
    await this.#below(0);
  }

  #add(text: string, bytes: number): void {
    this.#batch.push(text);
    this.#batchBytes += bytes;
    this.#queuedBytes += bytes;
    if (this.#batchBytes >= BATCH_BYTES) this.#send();
    if (this.#batchBytes === 0 || this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#send();
    });
  }

  #send(): void {
    if (this.#batchBytes === 0) return;
    const [text, bytes] = [this.#batch.join(''), this.#batchBytes];
    this.#batch = [];
    this.#batchBytes = 0;
    if (this.#failed) return;
    this.#out.write(text, (error) => {
      this.#taken(bytes);
      if (error) this.#fail(error);
    });
  }

  #taken(bytes: number): void {
    this.#queuedBytes -= bytes;
    this.#waiting = this.#waiting.filter((one) => {
      if (this.#queuedBytes > one.most) return true;
      one.resolve();
      return false;
    });
  }

  #below(most: number): Promise<void> {
    if (this.#queuedBytes <= most) return Promise.resolve();
    return new Promise((resolve, reject) => this.#waiting.push({ most, resolve, reject }));
  }

  #fail(error: unknown): ClosedPipe {
    if (this.#failed) return this.#failed;
    this.#failed = new ClosedPipe(error);
    for (const one of this.#waiting.splice(0)) one.reject(this.#failed);
    this.#onClosed?.(this.#failed);
    return this.#failed;
  }
}

/** True for what a reader that went away looks like. */
export const isClosedPipe = (error: unknown): boolean => error instanceof ClosedPipe || codeOf(error) === 'EPIPE';

/**
 * The process's stdout. A pipe is opened anew as a socket: Node writes to piped stdout synchronously, so that a reader
 * that is slow would stop timers and signals too.
 */
export function openStdout(clock: Clock, fd = 1): Writable {
  try {
    const found = fstatSync(fd);
    if (!found.isFIFO() && !found.isSocket()) return process.stdout;
    const out = new Socket({ fd, readable: false, writable: true });
    if (found.isFIFO()) watchReader(fd, out, clock);
    return out;
  } catch {
    // Not something that can be opened as a socket.
    return process.stdout;
  }
}

/**
 * Closes `out` when nobody reads the pipe any more: a run with little to say would otherwise work on for whoever is gone.
 * Linux refuses to open a named pipe, which a platform gives us, for writing without a reader; with a pipe that has no
 * name, and elsewhere, only the next write shows it.
 */
function watchReader(fd: number, out: Socket, clock: Clock): void {
  const ask = () =>
    open(`/proc/self/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK, (error, probe) => {
      if (error?.code === 'ENXIO') out.destroy(error);
      if (error) return;
      close(probe, () => {});
      clock.after(READER_MS, ask);
    });
  clock.after(READER_MS, ask);
}
