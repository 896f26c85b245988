import type { Clock } from './clock.ts';
import type { Random } from './runtime.ts';

export interface Attempt {
  /** From 1. */
  readonly number: number;
  /** The pause (ms) before the next attempt; undefined for the last one. */
  readonly pause: number | undefined;
}

/**
 * Attempts `work` until it gives a value, else undefined. Between two attempts is one of the pauses (ms). Throws what
 * `work` throws, and the signal's reason.
 */
export async function retry<T>(
  { pauses, clock, signal }: { pauses: Iterable<number>; clock: Clock; signal?: AbortSignal | undefined },
  work: (attempt: Attempt) => T | undefined | Promise<T | undefined>,
): Promise<T | undefined> {
  const iterator = pauses[Symbol.iterator]();
  for (let number = 1; ; number++) {
    const next = iterator.next();
    const pause = next.done === true ? undefined : next.value;
    const value = await work({ number, pause });
    if (value !== undefined || pause === undefined) return value;
    await clock.sleep(pause, signal);
    signal?.throwIfAborted();
  }
}

export interface Backoff {
  /** Attempts in all, the first one included. */
  readonly attempts: number;
  /** Upper bound of the first pause (ms); it doubles with each further pause. */
  readonly firstPauseMs: number;
  readonly maxPauseMs: number;
}

/** Pauses between attempts: exponential with full jitter. */
export function* jitteredPauses({ attempts, firstPauseMs, maxPauseMs }: Backoff, random: Random): Generator<number> {
  for (let index = 0; index < attempts - 1; index++)
    yield Math.round(random() * Math.min(maxPauseMs, firstPauseMs * 2 ** index));
}

/** Pauses at their bounds, `waitMs` in all. Pauses are counted, not clocks compared: those may jump. */
export function* doublingPauses(
  waitMs: number,
  { firstPauseMs, maxPauseMs }: Omit<Backoff, 'attempts'>,
): Generator<number> {
  let nextPause = firstPauseMs;
  for (let remaining = waitMs; remaining > 0; ) {
    const pause = Math.min(nextPause, maxPauseMs, remaining);
    yield pause;
    remaining -= pause;
    nextPause *= 2;
  }
}
