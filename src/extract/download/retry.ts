import type { Random } from '../../base/random.ts';

/** How often an export is requested again, and after which pauses (ms). */
export interface RetryPolicy {
  /** Total number of requests for one export before the run fails. */
  readonly attempts: number;
  /** Answers that may mean "too big" before the request is split. */
  readonly splitAfter: number;
  /** Bodies malformed at the same place in the same way before the last is kept for inspection and the run fails. */
  readonly malformedAfter: number;
  /** Refusals for quota before the run fails; the quota itself waits before each request. */
  readonly waits: number;
  /** The longest first pause; each further one may be twice as long. */
  readonly baseMs: number;
  /** The longest of all. */
  readonly capMs: number;
}

export const RETRY: RetryPolicy = {
  attempts: 5,
  splitAfter: 3,
  malformedAfter: 3,
  waits: 50,
  baseMs: 1_000,
  capMs: 120_000,
};

/** The pause after the given attempt (from 1): exponential with full jitter. */
export function pauseAfter(attempt: number, policy: RetryPolicy, random: Random): number {
  return Math.round(random() * Math.min(policy.capMs, policy.baseMs * 2 ** (attempt - 1)));
}
