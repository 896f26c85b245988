import type { Random } from './random.ts';

/** How often something is attempted, and the pauses between (ms). */
export interface RetryPolicy {
  /** In all, the first included. */
  readonly attempts: number;
  /** Upper bound of the first pause; it doubles with each further one. */
  readonly baseMs: number;
  /** Upper bound of any pause. */
  readonly capMs: number;
}

/** The pause after the given attempt (from 1): exponential with full jitter. */
export function pauseAfter(attempt: number, { baseMs, capMs }: RetryPolicy, random: Random): number {
  return Math.round(random() * Math.min(capMs, baseMs * 2 ** (attempt - 1)));
}

/** Runs `work` until it succeeds, so many times at most and without a pause, while `isPassing` holds for its error. */
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
