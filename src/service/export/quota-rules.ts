// The rules of the quota, without a clock: what an answer changes.

import { HOUR_MS } from '../../base/clock.ts';
import type { ExportAnswer } from './export-service.ts';

/** The documented limit of exports in an hour; the rules go by what the answers say. */
export const EXPORTS_PER_HOUR = 100;
/** The pause after a refusal without `Retry-After`. It doubles with each refusal before it in a row. */
const PAUSE_MS = 60_000;
/** Added to an instant of the service, which may be given in seconds and rounded down. */
const MARGIN_MS = 1_000;

/** What a process knows about the quota. */
export interface QuotaState {
  /** No export is sent before this instant (ms since 1970), because the service said that the limit is reached. */
  readonly blockedUntil: number;
  /** Number of refusals for the quota in a row. */
  readonly refusals: number;
}

/** Before the first answer. */
export const UNKNOWN_QUOTA: QuotaState = { blockedUntil: 0, refusals: 0 };

/** What an answer says about the quota. `wait`: the limit is reached. */
export type QuotaAnswer = Pick<ExportAnswer, 'kind' | 'quotaReport'>;

/**
 * The state after an answer. After a refusal exports wait `Retry-After`, or else a minute, twice as long after each
 * further one. They wait no longer than to the reset that it names. Its Remaining does not count: the limit of exports
 * at once may have been reached, with many exports left. After another answer without any left they wait to the reset.
 */
export function afterAnswer({ blockedUntil, refusals }: QuotaState, answer: QuotaAnswer, now: number): QuotaState {
  const { remaining, retryAt, resetAt } = answer.quotaReport;
  if (answer.kind !== 'wait') {
    const usedUpUntil = remaining === 0 && resetAt !== undefined ? trustedInstant(resetAt, now) : 0;
    return { blockedUntil: Math.max(blockedUntil, usedUpUntil), refusals: 0 };
  }
  // Exports that ran at once and are refused together count as one refusal.
  const isFirst = blockedUntil <= now;
  const ownPauseEnd = isFirst ? now + PAUSE_MS * 2 ** refusals : blockedUntil;
  const pauseEnd = retryAt === undefined ? ownPauseEnd : trustedInstant(retryAt, now);
  return {
    blockedUntil: Math.max(blockedUntil, Math.min(pauseEnd, trustedInstant(resetAt ?? Number.POSITIVE_INFINITY, now))),
    refusals: refusals + (isFirst ? 1 : 0),
  };
}

/** An instant of the service: the quota resets every hour, so that a later one is wrong. */
const trustedInstant = (at: number, now: number): number => Math.min(at, now + HOUR_MS) + MARGIN_MS;
