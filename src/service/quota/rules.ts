// The rules of the quota, pure functions of its state: whether an export may be sent now (`decide`), and what an answer
// changes (`afterAnswer`). Two limits count: how many exports are left of the hour (`budgetOf`), and how many run at
// once (`concurrencyOf`).

import { HOUR_MS } from '../../base/durations.ts';
import type { Random } from '../../base/random.ts';
import { allowedFrom, type LimitHeaders } from '../http/headers.ts';
import type { QuotaState, Report, Slot } from './state.ts';

/** The measures after a 429, by its possible reasons. */
export const REFUSAL_POLICY = {
  /** The refusal of one export at which the run fails. */
  failAt: 50,
  /** Other exports of this user run: fewer run at once from now on, and the next is sent after this pause or later. */
  besideOthersMs: 1_000,
  /**
   * The export ran alone and the service says that some are left: one runs at once from now on. This is assumed for at
   * most `times` refusals in a row; the pause doubles each time, and is up to twice as long by chance.
   */
  alone: { times: 3, baseMs: 2_000 },
  /**
   * The hourly limit is reached and no reset was named: pauses by refusals in a row, up to a quarter longer by chance.
   */
  hourlyMs: [60_000, 120_000, 240_000, 480_000, 900_000],
  /** After a reduction one more may run at once every `afterMs`; with each further reduction that time doubles. */
  raise: { afterMs: 900_000, maxDoublings: 5 },
} as const;

/** Added to a reset, which may be given in seconds and rounded down. */
const RESET_MARGIN_MS = 1_000;

export interface ExportLimits {
  readonly maxConcurrentExports: number;
  readonly exportsPerHour: number;
}

/** Send now, wait until an answer or the end of one of `slots` changes the state, or wait for an instant. */
export type QuotaDecision =
  | { readonly kind: 'go' }
  | { readonly kind: 'change'; readonly slots: readonly Slot[] }
  | { readonly kind: 'until'; readonly at: number };

/** Decides whether an export may be sent at `now`; the state is pruned. */
export function decide(state: QuotaState, limits: ExportLimits, now: number): QuotaDecision {
  if (state.blocked !== undefined && now < state.blocked.until) return { kind: 'until', at: state.blocked.until };
  const unanswered = state.slots.filter(({ answered }) => !answered);
  const budget = budgetOf(state, limits, now);
  if (budget.left <= 0 && unanswered.length === 0) return { kind: 'until', at: budget.nextAt };
  // Others may have used the quota: until the service has reported how many are left, one export is sent at a time.
  if (unanswered.length > 0 && (budget.left <= 0 || !budget.known)) return { kind: 'change', slots: unanswered };
  if (state.slots.length >= concurrencyOf(state, limits, now)) return { kind: 'change', slots: state.slots };
  return { kind: 'go' };
}

interface Budget {
  readonly left: number;
  /** Instant at which the next may be sent if none is left (ms). */
  readonly nextAt: number;
  /** False if no current report of the service is known. */
  readonly known: boolean;
}

/**
 * The exports left in this hour: as the service reported, while the report is current, else by this machine's count.
 */
export function budgetOf(state: QuotaState, { exportsPerHour }: ExportLimits, now: number): Budget {
  const { report, sent } = state;
  if (report !== undefined && isCurrent(report, now)) {
    const since = sent.filter(({ n }) => n > report.lastSent).length;
    const nextAt = report.resetAt === undefined ? report.at + HOUR_MS : report.resetAt + RESET_MARGIN_MS;
    return { left: report.remaining - report.unanswered - since, nextAt, known: true };
  }
  const left = exportsPerHour - sent.length;
  // After this instant fewer than the limit lie within an hour.
  const oldest = sent[Math.max(0, sent.length - exportsPerHour)];
  const nextAt = oldest === undefined ? now + HOUR_MS : oldest.at + HOUR_MS + 1;
  // The reported end of the service's count is over: one export may be sent to learn the new one.
  const resetAt = report?.resetAt;
  const renewed = resetAt !== undefined && !report?.isResetAssumed && !sent.some(({ at }) => at >= resetAt);
  if (renewed) return { left: Math.max(left, 1), nextAt, known: false };
  return { left, nextAt, known: state.unreportedAt !== undefined && now < state.unreportedAt + HOUR_MS };
}

const isCurrent = (report: Report, now: number): boolean =>
  report.resetAt === undefined ? now < report.at + HOUR_MS : now < report.resetAt + RESET_MARGIN_MS;

/**
 * How many exports may run at once: as configured, or fewer after refusals, and one more after each time without one.
 */
export function concurrencyOf({ reduced }: QuotaState, limits: ExportLimits, now: number): number {
  if (reduced === undefined) return limits.maxConcurrentExports;
  const { afterMs, maxDoublings } = REFUSAL_POLICY.raise;
  const step = afterMs * 2 ** Math.min(reduced.times - 1, maxDoublings);
  const raised = Math.floor(Math.max(0, now - reduced.at) / step);
  return Math.min(limits.maxConcurrentExports, reduced.limit + raised);
}

/** When the last of `count` exports may be sent at the earliest, and how many now; the state is pruned. */
export function forecastOf(state: QuotaState, limits: ExportLimits, count: number, now: number) {
  const { left, nextAt } = budgetOf(state, limits, now);
  const blocked = state.blocked?.until ?? now;
  const open = blocked > now ? 0 : Math.max(0, left);
  const free = Math.max(0, concurrencyOf(state, limits, now) - state.slots.length);
  const startableNow = Math.min(count, open, free);
  const later = Math.max(0, count - Math.max(0, left));
  if (later === 0) return { startableNow, left: open, earliestEnd: blocked };
  const rounds = Math.ceil(later / Math.max(1, limits.exportsPerHour)) - 1;
  return { startableNow, left: open, earliestEnd: Math.max(blocked, nextAt) + rounds * HOUR_MS };
}

/** The state after an export was sent; its number is `next` of the state before. */
export const afterSending = (state: QuotaState, slot: Omit<Slot, 'n' | 'answered'>, now: number): QuotaState => ({
  ...state,
  sent: [...state.sent, { n: state.next, at: now }],
  next: state.next + 1,
  slots: [...state.slots, { n: state.next, ...slot, answered: false }],
});

export interface AnswerHead {
  readonly status: number;
  /** True when the answer says that the limit is reached, under whatever status. */
  readonly limited: boolean;
  readonly limits: LimitHeaders;
}

interface AnswerContext {
  readonly limits: ExportLimits;
  readonly now: number;
  readonly random: Random;
}

/** The state after the head of an answer to export `n` came. */
export function afterAnswer(state: QuotaState, n: number, head: AnswerHead, context: AnswerContext): QuotaState {
  const { status, limited, limits: reported } = head;
  const slots = state.slots.map((slot) => (slot.n === n ? { ...slot, answered: true } : slot));
  if (limited) return afterRefusal({ ...state, slots }, n, reported, context);
  if (status !== 200) return withReport({ ...state, slots }, n, reported, context.now);
  const answered = { ...state, slots, hourlyRefusals: 0, aloneRefusals: 0 };
  if (reported.remaining === undefined) return { ...answered, unreportedAt: context.now };
  return withReport(answered, n, reported, context.now);
}

/**
 * The state after a refusal. First fewer exports run at once; only then is a refusal taken for the hourly limit.
 * Until then Reset and Retry-After are not waited for: a service that refuses for exports at once may name the end of
 * the hour all the same.
 */
function afterRefusal(state: QuotaState, n: number, reported: LimitHeaders, context: AnswerContext): QuotaState {
  const { limits, now, random } = context;
  const others = state.slots.filter((slot) => slot.n !== n && slot.freeAt === undefined).length;
  if (others > 0) {
    // A Remaining of 0 may concern exports at once and not the hour: it is believed only of an export that ran alone.
    const after = reported.remaining === 0 ? state : withReport(state, n, reported, now);
    // The next export is sent when one of the others ends.
    const limit = Math.max(1, Math.min(others, concurrencyOf(state, limits, now)));
    const until = Math.max(state.blocked?.until ?? 0, now + REFUSAL_POLICY.besideOthersMs);
    return withReduced(after, limit, until, now);
  }
  const { aloneRefusals, hourlyRefusals } = state;
  const { times, baseMs } = REFUSAL_POLICY.alone;
  if ((reported.remaining ?? 0) > 0 && aloneRefusals < times) {
    const pause = baseMs * 2 ** aloneRefusals * (1 + random());
    const after = withReport(state, n, reported, now);
    return { ...withReduced(after, 1, now + Math.round(pause), now), aloneRefusals: aloneRefusals + 1 };
  }
  const until = refusedUntil(reported, hourlyRefusals, now, random);
  // Where no reset is named, the pause after a refusal is the wait, and not the rest of an hour that would be assumed.
  const after = withReport(state, n, reported, now, until - RESET_MARGIN_MS);
  return { ...after, hourlyRefusals: hourlyRefusals + 1, blocked: { at: now, until } };
}

const withReduced = (state: QuotaState, limit: number, until: number, now: number): QuotaState => ({
  ...state,
  reduced: { limit, at: now, times: (state.reduced?.times ?? 0) + 1 },
  blocked: { at: now, until },
});

/**
 * Stores how many exports are left, unless the service reported fewer to one that was sent later or at the same time.
 * None is left and no reset is named: `assumed` is the reset then; unless given, the instant at which the oldest export
 * stops counting, an hour after it was sent.
 */
function withReport(
  state: QuotaState,
  n: number,
  { remaining, resetAt }: LimitHeaders,
  now: number,
  assumed = (state.sent[0]?.at ?? now) + HOUR_MS,
): QuotaState {
  if (remaining === undefined) return state;
  const { report } = state;
  if (report !== undefined && n <= report.lastSent && isCurrent(report, now) && report.remaining <= remaining) {
    // More were left when the service counted this export: the later report includes it.
    return { ...state, report: { ...report, unanswered: Math.max(0, report.unanswered - 1) } };
  }
  const unanswered = state.slots.filter((slot) => !slot.answered).length;
  const next = { remaining, at: now, lastSent: state.next - 1, unanswered };
  if (resetAt !== undefined) return { ...state, report: { ...next, resetAt } };
  if (remaining > 0) return { ...state, report: next };
  return { ...state, report: { ...next, resetAt: assumed, isResetAssumed: true } };
}

/** The end of a wait after a refusal for the hourly limit; `before` counts the refusals in a row before it. */
export function refusedUntil(limits: LimitHeaders, before: number, now: number, random: Random): number {
  const reported = allowedFrom(limits);
  if (reported !== undefined && reported > now) return reported + RESET_MARGIN_MS;
  const { hourlyMs } = REFUSAL_POLICY;
  return Math.round(now + hourlyMs[Math.min(before, hourlyMs.length - 1)] * (1 + random() / 4));
}
