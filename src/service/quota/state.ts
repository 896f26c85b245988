import isState from '../../../schemas/quota-state.validator';
import { HOUR_MS } from '../../base/durations.ts';
import { jsonOf } from '../../base/json.ts';
import type { ProcessIdentity } from '../../fs/process-identity.ts';

/** The state of the quota, as the state file holds it (schemas/quota-state.json). Instants in ms since 1970. */
export interface QuotaState {
  readonly v: 1;
  /** Exports of the last hour, oldest first, with their number in the order of sending over all processes. */
  readonly sent: readonly { readonly n: number; readonly at: number }[];
  readonly next: number;
  readonly slots: readonly Slot[];
  readonly report?: Report;
  /** Instant of the last answer, other than a refusal, that did not say how many exports are left. */
  readonly unreportedAt?: number;
  /** No export is sent before `until`, because of a refusal at `at`. */
  readonly blocked?: { readonly at: number; readonly until: number };
  /** Number of refusals in a row that were taken for the hourly limit. */
  readonly hourlyRefusals: number;
  /** Number of refusals in a row of exports that ran alone, although some were left. */
  readonly aloneRefusals: number;
  /** Concurrency below the configured one after so many reductions, the last of them at `at`. */
  readonly reduced?: { readonly limit: number; readonly at: number; readonly times: number };
}

/** An export under way. */
export interface Slot {
  readonly n: number;
  /** The process that sends it, and the object in it. */
  readonly owner: ProcessIdentity;
  readonly run: string;
  /** When the lease ends: an owner that has not renewed it by then counts as dead. */
  readonly lease: number;
  /** True if the head of its answer has come, or will never come. */
  readonly answered: boolean;
  /** Instant at which its slot is free, once the export is over. */
  readonly freeAt?: number;
}

/** How many exports are left, as the service last reported. */
export interface Report {
  readonly remaining: number;
  readonly resetAt?: number;
  /** True if the service named no reset: the hour that it counts may have begun later than this machine's. */
  readonly isResetAssumed?: boolean;
  readonly at: number;
  /** Number of the last export sent by then, and how many had no answer yet: the report may not include those. */
  readonly lastSent: number;
  readonly unanswered: number;
}

export const EMPTY_STATE: QuotaState = { v: 1, sent: [], next: 1, slots: [], hourlyRefusals: 0, aloneRefusals: 0 };

/** Undefined for anything that this version did not write. */
export function parseQuotaState(text: string): QuotaState | undefined {
  const value = jsonOf(text);
  return isState<QuotaState>(value) ? value : undefined;
}

/** Maximum wait: the limit is for an hour, and a reset is rounded down to seconds. */
const MAX_WAIT_MS = HOUR_MS + 1_000;
/** The service notices the end of an export a little later than this process. */
export const SLOT_GRACE_MS = 50;

/**
 * The part of a state that still matters at `now`; `isOwned`: the process of a slot lives. After a jump of the clock no
 * instant is believed that is more than an hour ahead of the time at which it was written.
 */
export function pruned(state: QuotaState, now: number, isOwned: (slot: Slot) => boolean): QuotaState {
  const { blocked, report, reduced, unreportedAt, ...rest } = state;
  const isFreeing = (at: number) => at > now && at <= now + SLOT_GRACE_MS;
  // If the clock was ahead when this was written, the wait begins now and lasts as long as it did then.
  const blockedAt = Math.min(blocked?.at ?? now, now);
  const until = blocked === undefined ? 0 : blockedAt + Math.min(blocked.until - blocked.at, MAX_WAIT_MS);
  return {
    ...rest,
    sent: state.sent.map(({ n, at }) => ({ n, at: Math.min(at, now) })).filter(({ at }) => at > now - HOUR_MS),
    slots: state.slots.filter((slot) => (slot.freeAt === undefined ? isOwned(slot) : isFreeing(slot.freeAt))),
    ...(report !== undefined && report.at <= now && { report: withinHour(report) }),
    ...(unreportedAt !== undefined && unreportedAt <= now && { unreportedAt }),
    ...(until > now && { blocked: { at: blockedAt, until } }),
    ...(reduced !== undefined && {
      reduced: { ...reduced, limit: Math.max(1, reduced.limit), at: Math.min(reduced.at, now) },
    }),
  };
}

/** The report, whose reset is at most an hour after it. */
const withinHour = (report: Report): Report =>
  report.resetAt === undefined ? report : { ...report, resetAt: Math.min(report.resetAt, report.at + HOUR_MS) };
