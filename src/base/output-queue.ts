import type { Writable } from 'node:stream';

/** Bytes gathered before they are handed to the stream in one call. */
const CHUNK_BYTES = 64 * 1024;
/** Maximum number of bytes in the stream that the system has not taken. */
const MAX_IN_FLIGHT_BYTES = 256 * 1024;

interface Entry {
  readonly data: string | Uint8Array;
  readonly bytes: number;
  readonly done?: (() => void) | undefined;
}

interface Waiter {
  readonly limit: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/**
 * The output of a process on one stream, in the order of the calls, without blocking it. After a failure of the stream
 * every call rejects with it.
 */
export class OutputQueue {
  readonly #out: Writable;
  readonly #onFailed: ((error: Error) => void)[] = [];
  #entries: Entry[] = [];
  #queuedBytes = 0;
  #inFlightBytes = 0;
  #isScheduled = false;
  #failed: Error | undefined;
  #waiting: Waiter[] = [];

  constructor(out: Writable) {
    this.#out = out;
    out.on('error', (error) => this.#fail(error));
    out.on('close', () => this.#fail(new Error('closed')));
  }

  get isEmpty(): boolean {
    return this.#queuedBytes === 0 || this.#failed !== undefined;
  }

  /** Calls back once, when nothing more can be written. */
  onFailed(listener: (error: Error) => void): void {
    this.#onFailed.push(listener);
  }

  /** Queues whole lines. */
  add(data: string | Uint8Array, done?: () => void): void {
    if (this.#failed) return;
    const bytes = typeof data === 'string' ? Buffer.byteLength(data) : data.length;
    this.#entries.push({ data, bytes, done });
    this.#queuedBytes += bytes;
    this.#schedule();
  }

  /** Queues whole lines; resolves when the system has taken them all. */
  write(data: string | Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#failed) return reject(this.#failed);
      const waiter: Waiter = { limit: Number.NEGATIVE_INFINITY, resolve, reject };
      this.#waiting.push(waiter);
      this.add(data, () => {
        this.#waiting = this.#waiting.filter((other) => other !== waiter);
        resolve();
      });
      this.#send();
    });
  }

  /** Resolves when no more than so many bytes wait to be taken by the system. */
  below(limit: number): Promise<void> {
    if (this.#failed) return Promise.reject(this.#failed);
    if (this.#queuedBytes <= limit) return Promise.resolve();
    return new Promise((resolve, reject) => this.#waiting.push({ limit, resolve, reject }));
  }

  /** Resolves when everything so far has been taken by the system. */
  drain(): Promise<void> {
    this.#send();
    return this.below(0);
  }

  #schedule(): void {
    if (this.#queuedBytes - this.#inFlightBytes >= CHUNK_BYTES) this.#send();
    if (this.#isScheduled || this.#entries.length === 0) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#send();
    });
  }

  #send(): void {
    while (this.#failed === undefined && this.#entries.length > 0 && this.#inFlightBytes < MAX_IN_FLIGHT_BYTES) {
      const chunk = this.#nextChunk();
      const bytes = chunk.reduce((sum, entry) => sum + entry.bytes, 0);
      this.#inFlightBytes += bytes;
      const [{ data }] = chunk;
      this.#out.write(chunk.length === 1 ? data : chunk.map((entry) => entry.data).join(''), (error) => {
        if (error) this.#fail(error);
        else this.#taken(chunk, bytes);
      });
    }
  }

  /** Removes the oldest entries from the queue: texts up to the size of a chunk, or one entry of bytes. */
  #nextChunk(): Entry[] {
    let [count, bytes] = [0, 0];
    while (count < this.#entries.length && bytes < CHUNK_BYTES && typeof this.#entries[count]?.data === 'string') {
      bytes += this.#entries[count]?.bytes ?? 0;
      count++;
    }
    return this.#entries.splice(0, Math.max(1, count));
  }

  #taken(chunk: readonly Entry[], bytes: number): void {
    this.#inFlightBytes -= bytes;
    this.#queuedBytes -= bytes;
    for (const { done } of chunk) done?.();
    const over = this.#waiting.filter(({ limit }) => this.#queuedBytes <= limit);
    this.#waiting = this.#waiting.filter(({ limit }) => this.#queuedBytes > limit);
    for (const { resolve } of over) resolve();
    this.#send();
  }

  #fail(error: Error): void {
    if (this.#failed) return;
    this.#failed = error;
    this.#entries = [];
    for (const { reject } of this.#waiting.splice(0)) reject(error);
    for (const listener of this.#onFailed) listener(error);
  }
}
