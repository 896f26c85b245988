import type { Random } from '../../base/random.ts';

/** How often and how patiently an export is asked for again. Milliseconds. */
export interface RetryPolicy {
  /** Times an export is asked for in all before the run gives up. */
  readonly attempts: number;
  /** After so many answers that may mean "too big" the question is made smaller. */
  readonly splitAfter: number;
  /** After so many bodies broken at the same place in the same way the body is kept for inspection. */
  readonly malformedAfter: number;
  /** Refusals for quota in a row; the quota does the waiting before each request. */
  readonly waits: number;
  readonly baseMs: number;
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
