import type { Writable } from 'node:stream';

/** Characters gathered before they are handed to the stream in one call. */
const CHUNK_LENGTH = 64 * 1024;

/**
 * The output of a process on one stream, in the order of the calls, without blocking it. After a failure of the stream
 * every promise rejects with it, and `queue` does nothing.
 */
export class OutputQueue {
  readonly #out: Writable;
  readonly #onFailed: (error: Error) => void;
  /** Lines that are handed to the stream together. */
  #gathered = '';
  /** Number of bytes that the system has not taken yet. */
  #pendingBytes = 0;
  /** Resolves when the system has taken, or refused, what the stream got last, and so everything before it. */
  #lastWrite: Promise<void> = Promise.resolve();
  #failure: Error | undefined;

  /** Calls back once, when nothing more can be written. */
  constructor(out: Writable, onFailed: (error: Error) => void = () => {}) {
    this.#out = out;
    this.#onFailed = onFailed;
    out.on('error', (error) => this.#fail(error));
    out.on('close', () => this.#fail(new Error('closed')));
  }

  /** Queues whole lines. */
  queue(lines: string): void {
    if (this.#failure) return;
    if (this.#gathered === '') setImmediate(() => this.#flush());
    this.#gathered += lines;
    this.#pendingBytes += Buffer.byteLength(lines);
    if (this.#gathered.length >= CHUNK_LENGTH) this.#flush();
  }

  /** Queues whole lines; resolves when the system has taken them all. */
  queueAndDrain(lines: string | Uint8Array): Promise<void> {
    this.#flush();
    this.#pendingBytes += Buffer.byteLength(lines);
    this.#send(lines);
    return this.drain();
  }

  /** Resolves when the system has taken everything so far; at once if it has yet to take `allowedBytes` at most. */
  async drain(allowedBytes = 0): Promise<void> {
    if (this.#pendingBytes > allowedBytes) {
      this.#flush();
      await this.#lastWrite;
    }
    if (this.#failure) throw this.#failure;
  }

  #flush(): void {
    if (this.#gathered !== '') this.#send(this.#gathered);
    this.#gathered = '';
  }

  #send(lines: string | Uint8Array): void {
    // A stream that has failed and is still open never answers to another write.
    if (this.#failure) return;
    this.#lastWrite = new Promise((resolve) => {
      this.#out.write(lines, (error) => {
        if (error) this.#fail(error);
        else this.#pendingBytes -= Buffer.byteLength(lines);
        resolve();
      });
    });
  }

  #fail(error: Error): void {
    if (this.#failure) return;
    this.#failure = error;
    this.#onFailed(error);
  }
}
