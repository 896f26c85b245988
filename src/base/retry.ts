import { type Clock, nextTurn } from './clock.ts';
import type { Random } from './runtime.ts';

export interface RetryPolicy {
  /** Attempts in all, the first one included. */
  readonly attempts: number;
  /** Upper bound of the first pause (ms); it doubles with each further pause. */
  readonly baseMs: number;
  /** Upper bound of any pause (ms). */
  readonly capMs: number;
}

/** The pause after the given attempt (from 1): exponential with full jitter. */
export function pauseAfter(attempt: number, { baseMs, capMs }: RetryPolicy, random: Random): number {
  return Math.round(random() * Math.min(capMs, baseMs * 2 ** (attempt - 1)));
}

/** Runs `work` up to `attempts` times, without pauses, while it throws errors for which `isPassing` is true. */
export async function attempted<T>(
  attempts: number,
  isPassing: (error: unknown) => boolean,
  work: () => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (attempt >= attempts || !isPassing(error)) throw error;
    }
  }
}

/** How long something that others use is waited for (ms). */
export interface WaitPolicy {
  /** The sum of all pauses. */
  readonly waitMs: number;
  /** The first pause; each further one is twice as long, up to `maxPauseMs`. */
  readonly pauseMs: number;
  readonly maxPauseMs: number;
}

/**
 * Attempts `work` until it gives a value; undefined when the pauses between have come to `waitMs`. Pauses are counted,
 * not clocks compared: those may jump. Throws the signal's reason.
 */
export async function waitedFor<T>(
  { waitMs, pauseMs, maxPauseMs }: WaitPolicy,
  { clock, signal }: { readonly clock: Clock; readonly signal?: AbortSignal | undefined },
  work: () => T | undefined | Promise<T | undefined>,
): Promise<T | undefined> {
  let found = await work();
  let pause = pauseMs;
  for (let waited = 0; found === undefined && waited < waitMs; waited += pause, pause *= 2) {
    pause = Math.min(pause, maxPauseMs, waitMs - waited);
    await clock.sleep(pause, signal);
    // A clock that never really sleeps must not keep others from their turn.
    await nextTurn();
    signal?.throwIfAborted();
    found = await work();
  }
  return found;
}
