import type { Random } from './random.ts';

/** How often something is tried, and the pauses between (ms). */
export interface RetryPolicy {
  /** Tries in all, the first included. */
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
