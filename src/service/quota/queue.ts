import type { Clock } from '../../base/clock.ts';
import { onAbort } from '../http/on-abort.ts';

/** Lets one in at a time, first come first served. */
export class Queue {
  #last: Promise<void> = Promise.resolve();

  /** Resolves with what lets the next one in; rejects with the signal's reason. */
  async turn(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    const before = this.#last;
    let done: () => void = () => {};
    this.#last = new Promise((resolve) => {
      done = resolve;
    });
    try {
      await unlessAborted(before, signal);
    } catch (error) {
      void before.then(done);
      throw error;
    }
    return done;
  }
}

/** Wakes everybody who waits when something happened. */
export class Bell {
  #ring: () => void = () => {};
  #next: Promise<void> = this.#fresh();

  /** Resolves at the next ring after this call. */
  next(): Promise<void> {
    return this.#next;
  }

  ring(): void {
    const ring = this.#ring;
    this.#next = this.#fresh();
    ring();
  }

  /** Waits for a ring heard of by `next()`, for so long at most. */
  async wait(rung: Promise<void>, mostMs: number | undefined, clock: Clock, signal: AbortSignal): Promise<void> {
    if (mostMs === undefined) return unlessAborted(rung, signal);
    const over = new AbortController();
    const sleep = clock.sleep(mostMs, over.signal).catch(() => {});
    try {
      await unlessAborted(Promise.race([rung, sleep]), signal);
    } finally {
      over.abort();
    }
  }

  #fresh(): Promise<void> {
    return new Promise((resolve) => {
      this.#ring = resolve;
    });
  }
}

/** The promise, or a rejection with the signal's reason. */
async function unlessAborted(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  let stop = () => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = onAbort(signal, () => reject(signal.reason));
  });
  try {
    await Promise.race([promise, aborted]);
  } finally {
    stop();
  }
}
