import type { Writable } from 'node:stream';

/** Which lines are dropped when a reader is too slow: `debug` first, then `log`, `kept` never. */
export type Importance = 'debug' | 'log' | 'kept';

/** Bytes gathered before they are handed to the stream in one call. */
const CHUNK_BYTES = 64 * 1024;
/** Bytes handed to the stream and not yet taken by the system: more would only wait where nothing can be left out. */
const MAX_IN_FLIGHT_BYTES = 256 * 1024;
/** Bytes of lines that wait and may be left out. */
const MAX_LOG_BYTES = 1024 * 1024;

interface Entry {
  readonly data: string | Uint8Array;
  readonly bytes: number;
  readonly importance: Importance;
  readonly done?: (() => void) | undefined;
}

interface Waiter {
  readonly most: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/**
 * The output of a process on one stream, in the order of the calls, without blocking it. Log lines wait within a bound:
 * beyond it the oldest debug lines are dropped, then the oldest others, and `leftOut` makes the line that says how many.
 * After a failure of the stream every call rejects with it.
 */
export class OutputQueue {
  readonly #out: Writable;
  readonly #leftOutLine: (count: number) => string;
  readonly #onFailed: ((error: Error) => void)[] = [];
  #entries: Entry[] = [];
  #queuedBytes = 0;
  #logBytes = 0;
  #inFlightBytes = 0;
  #leftOut = 0;
  #isScheduled = false;
  #failed: Error | undefined;
  #waiting: Waiter[] = [];

  constructor(out: Writable, leftOut: (count: number) => string) {
    this.#out = out;
    this.#leftOutLine = leftOut;
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
  add(data: string | Uint8Array, importance: Importance, done?: () => void): void {
    if (this.#failed) return;
    const bytes = typeof data === 'string' ? Buffer.byteLength(data) : data.length;
    this.#entries.push({ data, bytes, importance, done });
    this.#queuedBytes += bytes;
    if (importance !== 'kept') this.#logBytes += bytes;
    this.#leaveOut();
    this.#schedule();
  }

  /** Queues whole lines that are never left out; resolves when the system has taken them all. */
  write(data: string | Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#failed) return reject(this.#failed);
      this.#waiting.push({ most: Number.NEGATIVE_INFINITY, resolve, reject });
      const waiter = this.#waiting.at(-1);
      this.add(data, 'kept', () => {
        this.#waiting = this.#waiting.filter((one) => one !== waiter);
        resolve();
      });
      this.#send();
    });
  }

  /** Resolves when no more than so many bytes wait to be taken by the system. */
  below(most: number): Promise<void> {
    if (this.#failed) return Promise.reject(this.#failed);
    if (this.#queuedBytes <= most) return Promise.resolve();
    return new Promise((resolve, reject) => this.#waiting.push({ most, resolve, reject }));
  }

  /** Resolves when everything so far has been taken by the system. */
  drain(): Promise<void> {
    this.#send();
    return this.below(0);
  }

  #leaveOut(): void {
    while (this.#logBytes > MAX_LOG_BYTES) {
      const debug = this.#entries.findIndex(({ importance }) => importance === 'debug');
      const at = debug === -1 ? this.#entries.findIndex(({ importance }) => importance === 'log') : debug;
      if (at === -1) return;
      const [{ bytes }] = this.#entries.splice(at, 1);
      this.#queuedBytes -= bytes;
      this.#logBytes -= bytes;
      this.#leftOut++;
    }
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

  /** The oldest entries, as many texts as make a chunk, or bytes alone. */
  #nextChunk(): Entry[] {
    if (this.#leftOut > 0) this.#entries.unshift(this.#leftOutEntry());
    let [count, bytes] = [0, 0];
    while (count < this.#entries.length && bytes < CHUNK_BYTES && typeof this.#entries[count]?.data === 'string') {
      bytes += this.#entries[count]?.bytes ?? 0;
      count++;
    }
    const chunk = this.#entries.splice(0, Math.max(1, count));
    for (const { importance, bytes } of chunk) if (importance !== 'kept') this.#logBytes -= bytes;
    return chunk;
  }

  #leftOutEntry(): Entry {
    const data = this.#leftOutLine(this.#leftOut);
    const bytes = Buffer.byteLength(data);
    this.#leftOut = 0;
    this.#queuedBytes += bytes;
    return { data, bytes, importance: 'kept' };
  }

  #taken(chunk: readonly Entry[], bytes: number): void {
    this.#inFlightBytes -= bytes;
    this.#queuedBytes -= bytes;
    for (const { done } of chunk) done?.();
    const over = this.#waiting.filter(({ most }) => this.#queuedBytes <= most);
    this.#waiting = this.#waiting.filter(({ most }) => this.#queuedBytes > most);
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
