import type { Writable } from 'node:stream';

/** Characters gathered before they are handed to the stream in one call. */
const CHUNK_LENGTH = 64 * 1024;

interface Waiter {
  /** Number of bytes that the system must have taken. */
  readonly position: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/**
 * The output of a process on one stream, in the order of the calls, without blocking it. After a failure of the stream
 * every promise rejects with it, and `add` does nothing.
 */
export class OutputQueue {
  readonly #out: Writable;
  readonly #onFailed: (error: Error) => void;
  /** Lines that are handed to the stream together. */
  #pendingLines = '';
  /** Bytes of all calls, and those of them that the system has taken. */
  #total = 0;
  #taken = 0;
  #isScheduled = false;
  #failure: Error | undefined;
  #waiting: Waiter[] = [];

  /** Calls back once, when nothing more can be written. */
  constructor(out: Writable, onFailed: (error: Error) => void = () => {}) {
    this.#out = out;
    this.#onFailed = onFailed;
    out.on('error', (error) => this.#fail(error));
    out.on('close', () => this.#fail(new Error('closed')));
  }

  /** True if nothing waits for the system any more, since that has taken everything or the stream has failed. */
  get isSettled(): boolean {
    return this.#taken === this.#total || this.#failure !== undefined;
  }

  /** Queues whole lines. */
  add(lines: string): void {
    if (this.#failure) return;
    this.#pendingLines += lines;
    this.#total += Buffer.byteLength(lines);
    if (this.#pendingLines.length >= CHUNK_LENGTH) this.#flush();
    if (this.#isScheduled || this.#pendingLines === '') return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#flush();
    });
  }

  /** Queues whole lines; resolves when the system has taken them all. */
  write(lines: string | Uint8Array): Promise<void> {
    this.#flush();
    if (this.#failure === undefined) {
      this.#total += Buffer.byteLength(lines);
      this.#send(lines);
    }
    return this.untilPendingAtMost(0);
  }

  /** Resolves when at most so many bytes of the calls so far wait for the system. */
  untilPendingAtMost(bytes: number): Promise<void> {
    const position = this.#total - bytes;
    if (this.#failure) return Promise.reject(this.#failure);
    if (this.#taken >= position) return Promise.resolve();
    return new Promise((resolve, reject) => this.#waiting.push({ position, resolve, reject }));
  }

  /** Resolves when everything so far has been taken by the system. */
  drain(): Promise<void> {
    this.#flush();
    return this.untilPendingAtMost(0);
  }

  #flush(): void {
    const lines = this.#pendingLines;
    this.#pendingLines = '';
    if (lines !== '' && this.#failure === undefined) this.#send(lines);
  }

  #send(lines: string | Uint8Array): void {
    this.#out.write(lines, (error) => {
      if (error) return this.#fail(error);
      this.#taken += Buffer.byteLength(lines);
      const waiting = this.#waiting;
      this.#waiting = waiting.filter(({ position }) => position > this.#taken);
      for (const { position, resolve } of waiting) if (position <= this.#taken) resolve();
    });
  }

  #fail(error: Error): void {
    if (this.#failure) return;
    this.#failure = error;
    for (const { reject } of this.#waiting.splice(0)) reject(error);
    this.#onFailed(error);
  }
}
