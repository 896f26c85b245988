import type { Random } from './random.ts';

/** How often something is attempted, and the pauses between (ms). */
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

/**
 * Runs `work` until it succeeds, at most `attempts` times and without pauses. Throws an error for which `isPassing` is
 * false, and that of the last attempt.
 */
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
