import type { Clock } from './clock.ts';
import type { Random } from './runtime.ts';

/**
 * Does `work`, and repeats it after each of the pauses (ms) while its value says so. Returns the last value. Throws what
 * `work` throws, and the signal's reason. `attempts`: how often it was done.
 */
export async function retry<T>(
  { pauses, clock, signal }: { pauses: Iterable<number>; clock: Clock; signal?: AbortSignal | undefined },
  work: () => T | Promise<T>,
  shouldRepeat: (value: T, attempts: number) => boolean,
): Promise<T> {
  let value = await work();
  let attempts = 1;
  for (const pause of pauses) {
    if (!shouldRepeat(value, attempts)) break;
    await clock.sleep(pause, signal);
    signal?.throwIfAborted();
    value = await work();
    attempts++;
  }
  return value;
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
