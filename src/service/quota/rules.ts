import type { Random } from '../../base/random.ts';
import type { LimitHeaders } from '../http/headers.ts';
import { HOUR_MS, type QuotaState, type Report, type Slot } from './state.ts';

/** The limits as configured. */
export interface ExportLimits {
  readonly maxConcurrentExports: number;
  readonly exportsPerHour: number;
}

/** What the quota learns from the head of an answer. */
export interface AnswerHead {
  readonly status: number;
  /** True when the answer says that the limit is reached, under whatever status. */
  readonly limited: boolean;
  readonly limits: LimitHeaders;
}

/** Send now; wait until an answer or an end of `slots` changes the state; or wait for an instant. */
export type Decision =
  | { readonly kind: 'go' }
  | { readonly kind: 'change'; readonly slots: readonly Slot[] }
  | { readonly kind: 'until'; readonly at: number; readonly why: 'refused' | 'hour' };

/** A reset may be given in seconds, rounded down. */
const RESET_MARGIN_MS = 1_000;
const GROWING_MS = [60_000, 120_000, 240_000, 480_000, 900_000] as const;
const CROWDED_PAUSE_MS = 1_000;
const ALONE_TRIES = 3;
const ALONE_PAUSE_MS = 2_000;
const RAISE_AFTER_MS = 900_000;
const MOST_RAISE_DOUBLINGS = 5;

/** Whether an export may be sent at `now`, over a pruned state. */
export function decide(state: QuotaState, limits: ExportLimits, now: number): Decision {
  if (state.blocked !== undefined && now < state.blocked.until) {
    return { kind: 'until', at: state.blocked.until, why: 'refused' };
  }
  const unanswered = state.slots.filter(({ answered, freeAt }) => !answered && freeAt === undefined);
  const budget = budgetOf(state, limits, now);
  if (budget.left <= 0) {
    return unanswered.length > 0
      ? { kind: 'change', slots: unanswered }
      : { kind: 'until', at: budget.nextAt, why: 'hour' };
  }
  // Others may have used the quota: until the service has said what is left, one export goes alone.
  if (!budget.known && unanswered.length > 0) return { kind: 'change', slots: unanswered };
  if (state.slots.length >= concurrencyOf(state, limits, now)) return { kind: 'change', slots: state.slots };
  return { kind: 'go' };
}

export interface Budget {
  readonly left: number;
  /** When the next may be sent if none is left. */
  readonly nextAt: number;
  /** False while nothing is known that is current. */
  readonly known: boolean;
}

/** What is left of the hour: what the service said, while that is current; else our own count. */
export function budgetOf(state: QuotaState, { exportsPerHour }: ExportLimits, now: number): Budget {
  const { report, sent } = state;
  if (report !== undefined && isCurrent(report, now)) {
    const since = sent.filter(({ n }) => n > report.upTo).length;
    const nextAt = report.resetAt === undefined ? report.at + HOUR_MS : report.resetAt + RESET_MARGIN_MS;
    return { left: report.remaining - report.unanswered - since, nextAt, known: true };
  }
  const left = exportsPerHour - sent.length;
  const nextAt = ownNext(state, exportsPerHour, now);
  // The service said when its count starts again, and that is over: whatever we counted, one may ask how things stand.
  const resetAt = report?.resetAt;
  const renewed = resetAt !== undefined && !report?.isResetAssumed && !sent.some(({ at }) => at >= resetAt);
  if (renewed) return { left: Math.max(left, 1), nextAt, known: false };
  return { left, nextAt, known: state.unreportedAt !== undefined && now < state.unreportedAt + HOUR_MS };
}

const isCurrent = (report: Report, now: number): boolean =>
  report.resetAt === undefined ? now < report.at + HOUR_MS : now < report.resetAt + RESET_MARGIN_MS;

/** When fewer than `most` of those sent lie within an hour. */
function ownNext({ sent }: QuotaState, most: number, now: number): number {
  const oldest = sent[Math.max(0, sent.length - most)];
  return oldest === undefined ? now + HOUR_MS : oldest.at + HOUR_MS + 1;
}

/** How many may run at once: as configured, or fewer for a while after refusals, one more each time it goes well. */
export function concurrencyOf({ lowered }: QuotaState, limits: ExportLimits, now: number): number {
  if (lowered === undefined) return limits.maxConcurrentExports;
  const step = RAISE_AFTER_MS * 2 ** Math.min(lowered.times - 1, MOST_RAISE_DOUBLINGS);
  const raised = Math.floor(Math.max(0, now - lowered.at) / step);
  return Math.min(limits.maxConcurrentExports, lowered.to + raised);
}

/** The state after the head of an answer to export `n` came. */
export function afterHead(
  state: QuotaState,
  n: number,
  head: AnswerHead,
  { limits, now, random }: { readonly limits: ExportLimits; readonly now: number; readonly random: Random },
): QuotaState {
  const slots = state.slots.map((slot) => (slot.n === n ? { ...slot, answered: true } : slot));
  const answered: QuotaState = { ...state, slots };
  if (!head.limited) return afterSuccess(answered, n, head, now);
  const others = slots.filter((slot) => slot.n !== n && slot.freeAt === undefined).length;
  if (others > 0) return refusedBesideOthers(answered, n, head, others, limits, now);
  const reported = afterReport(answered, n, head.limits, now);
  if ((head.limits.remaining ?? 0) > 0 && reported.aloneRefusals < ALONE_TRIES) {
    const pause = ALONE_PAUSE_MS * 2 ** reported.aloneRefusals * (1 + random());
    const lowered = { to: 1, at: now, times: (state.lowered?.times ?? 0) + 1 };
    const blocked = { at: now, until: now + Math.round(pause) };
    return { ...reported, lowered, aloneRefusals: reported.aloneRefusals + 1, blocked };
  }
  const until = refusedUntil(head.limits, reported.refusals, now, random);
  return { ...reported, refusals: reported.refusals + 1, blocked: { at: now, until } };
}

function afterSuccess(state: QuotaState, n: number, head: AnswerHead, now: number): QuotaState {
  if (head.status !== 200) return afterReport(state, n, head.limits, now);
  const fresh: QuotaState = { ...state, refusals: 0, aloneRefusals: 0 };
  if (head.limits.remaining === undefined) return { ...fresh, unreportedAt: now };
  return afterReport(fresh, n, head.limits, now);
}

/** Refused while others of ours run: fewer at once, and the next goes when one of them ends (S9). */
function refusedBesideOthers(
  state: QuotaState,
  n: number,
  head: AnswerHead,
  others: number,
  limits: ExportLimits,
  now: number,
): QuotaState {
  // A Remaining of 0 may be about exports at once and not about the hour: it is believed of an export that ran alone.
  const reported = head.limits.remaining === 0 ? state : afterReport(state, n, head.limits, now);
  const to = Math.max(1, Math.min(others, concurrencyOf(state, limits, now)));
  const lowered = { to, at: now, times: (state.lowered?.times ?? 0) + 1 };
  return {
    ...reported,
    lowered,
    blocked: { at: now, until: Math.max(state.blocked?.until ?? 0, now + CROWDED_PAUSE_MS) },
  };
}

/** Takes in what the service says is left, unless it said less to an export sent later or under way beside it. */
function afterReport(state: QuotaState, n: number, { remaining, resetAt }: LimitHeaders, now: number): QuotaState {
  if (remaining === undefined) return state;
  const { report } = state;
  if (report !== undefined && n <= report.upTo && isCurrent(report, now) && report.remaining <= remaining) {
    // More was left when the service saw it: that was before, and the current report includes this one after all.
    return { ...state, report: { ...report, unanswered: Math.max(0, report.unanswered - 1) } };
  }
  const unanswered = state.slots.filter((slot) => !slot.answered && slot.freeAt === undefined && slot.n !== n).length;
  const next = { remaining, at: now, by: n, upTo: state.next - 1, unanswered };
  if (resetAt !== undefined) return { ...state, report: { ...next, resetAt } };
  if (remaining > 0) return { ...state, report: next };
  // Nothing left and no reset: whatever is counted, an hour behind our oldest export that one counts no more.
  const assumed = (state.sent[0]?.at ?? now) + HOUR_MS;
  return { ...state, report: { ...next, resetAt: assumed, isResetAssumed: true } };
}

/** Until when a refusal for the hourly limit stops everybody; `before` counts those in a row before it. */
export function refusedUntil({ resetAt, retryAt }: LimitHeaders, before: number, now: number, random: Random): number {
  const reported = Math.max(resetAt ?? 0, retryAt ?? 0);
  if (reported > now) return reported + RESET_MARGIN_MS;
  const wait = GROWING_MS[Math.min(before, GROWING_MS.length - 1)];
  return Math.round(now + wait * (1 + random() / 4));
}

/** When the last of `count` exports may be sent at the earliest, and how many may be at once now. Over a pruned state. */
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
