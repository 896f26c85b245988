// The rules of the quota, pure functions: whether an export may be sent now, and what an answer changes.

import { HOUR_MS } from '../../base/clock.ts';
import type { QuotaReport } from '../quota-report.ts';
import type { ExportAnswer } from './export-service.ts';

/** The documented limit of exports in an hour; the rules go by what the answers say. */
export const EXPORTS_PER_HOUR = 100;
/** The pause after a refusal without `Retry-After`. It doubles with each refusal before it in a row. */
const PAUSE_MS = 60_000;
/** Added to an instant of the service, which may be given in seconds and rounded down. */
const MARGIN_MS = 1_000;

/** What a process knows about the quota. Instants in ms since 1970. */
export interface QuotaState {
  /** Exports left until `resetAt`: as the service reported, less those sent since. Undefined if it reported none. */
  readonly remaining?: number | undefined;
  readonly resetAt?: number | undefined;
  /** No export is sent before this instant, because the service said that the limit is reached. */
  readonly refusedUntil: number;
  /** Number of such answers in a row. */
  readonly refusals: number;
}

/** What an answer says about the quota. `wait`: the limit is reached. */
export type QuotaAnswer = Pick<ExportAnswer, 'kind' | 'quotaReport'>;

/** Undefined if an export may be sent at `now`; else the instant from which one may be. */
export function nextAllowedAt(state: QuotaState, now: number): number | undefined {
  const { refusedUntil, remaining = 1, resetAt = 0 } = state;
  if (refusedUntil > now) return refusedUntil;
  // A report whose reset is over says nothing any more.
  return remaining <= 0 && resetAt > now ? resetAt : undefined;
}

export function afterSending(state: QuotaState): QuotaState {
  return state.remaining === undefined ? state : { ...state, remaining: state.remaining - 1 };
}

/**
 * The state after an answer. After a refusal exports wait `Retry-After`, or else a minute, twice as long after each
 * further one. They wait no longer than to the reset that it names. Its Remaining does not count: the limit of exports
 * at once may have been reached, with many exports left.
 */
export function afterAnswer(state: QuotaState, { kind, quotaReport }: QuotaAnswer, now: number): QuotaState {
  if (kind !== 'wait') return { ...withReport(state, quotaReport, now), refusals: 0 };
  const { retryAt, resetAt = Number.POSITIVE_INFINITY } = quotaReport;
  // Exports that ran at once and are refused together count as one refusal.
  const isFirst = state.refusedUntil <= now;
  const ownPauseEnd = isFirst ? now + PAUSE_MS * 2 ** state.refusals : state.refusedUntil;
  const pauseEnd = retryAt === undefined ? ownPauseEnd : trustedInstant(retryAt, now);
  return {
    ...state,
    refusals: state.refusals + (isFirst ? 1 : 0),
    refusedUntil: Math.max(state.refusedUntil, Math.min(pauseEnd, trustedInstant(resetAt, now))),
  };
}

/** An instant of the service: the quota resets every hour, so that a later one is wrong. */
const trustedInstant = (at: number, now: number): number => Math.min(at, now + HOUR_MS) + MARGIN_MS;

/** Within one span of the quota the lowest report holds: answers may arrive in another order than requests. */
function withReport(state: QuotaState, { remaining, resetAt }: QuotaReport, now: number): QuotaState {
  if (remaining === undefined || resetAt === undefined) return state;
  const spanEnd = trustedInstant(resetAt, now);
  const lowestRemaining = spanEnd === state.resetAt ? Math.min(remaining, state.remaining ?? remaining) : remaining;
  return { ...state, remaining: lowestRemaining, resetAt: spanEnd };
}
