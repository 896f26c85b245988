import { identityFrom, type ProcessIdentity } from '../../fs/process-identity.ts';

/** The service notices the end of an export a little later than this process. */
export const SLOT_GRACE_MS = 50;

/** An export sent: its number, in the order of sending over all processes, and when. */
interface Sent {
  readonly n: number;
  readonly at: number;
}

/** A place taken by an export under way. */
export interface Slot {
  readonly n: number;
  /** The process that holds it, and the object in it. */
  readonly holder: ProcessIdentity;
  readonly run: string;
  /** When the lease ends: a holder that has not renewed it by then counts as dead. */
  readonly lease: number;
  /** The head of its answer has come. */
  readonly answered: boolean;
  /** It is over; its place is free from then on. */
  readonly freeAt?: number;
}

/** What the service last said of what is left. */
export interface Report {
  readonly remaining: number;
  readonly resetAt?: number;
  /** The service named no reset: what it counts may have begun later than our own hour. */
  readonly isResetAssumed?: boolean;
  /** When it came, and to which export. */
  readonly at: number;
  readonly by: number;
  /** The last export sent by then, and how many had no answer yet: the report may not know of them. */
  readonly upTo: number;
  readonly unanswered: number;
}

/** Fewer at once than configured, learned from refusals. */
interface Lowered {
  readonly to: number;
  readonly at: number;
  readonly times: number;
}

/** All that is known of the quota; what the state file holds (schemas/quota-state.json). Instants in ms since 1970. */
export interface QuotaState {
  readonly v: 1;
  /** Those of the last hour, oldest first. */
  readonly sent: readonly Sent[];
  readonly next: number;
  readonly slots: readonly Slot[];
  readonly report?: Report;
  /** When an answer that was no refusal last came without saying what is left. */
  readonly unreportedAt?: number;
  /** Nothing is sent before `until`; said at `at`. */
  readonly blocked?: { readonly at: number; readonly until: number };
  /** Refusals in a row for the hourly limit, and while nothing else of ours ran though some were left. */
  readonly refusals: number;
  readonly aloneRefusals: number;
  readonly lowered?: Lowered;
}

export const EMPTY_STATE: QuotaState = { v: 1, sent: [], next: 1, slots: [], refusals: 0, aloneRefusals: 0 };

export const HOUR_MS = 3_600_000;

/** A state file's text as state; undefined for anything that this version did not write. */
export function parseState(text: string): QuotaState | undefined {
  const value = parsed(text);
  if (!isObject(value) || value.v !== 1 || !isCount(value.next)) return undefined;
  if (!isCount(value.refusals) || !isCount(value.aloneRefusals)) return undefined;
  if (!isListOf(value.sent, ['n', 'at']) || !isListOf(value.slots, ['n', 'lease']) || !value.slots.every(isHeld))
    return undefined;
  if (value.report !== undefined && !hasNumbers(value.report, ['remaining', 'at', 'by', 'upTo', 'unanswered']))
    return undefined;
  if (value.lowered !== undefined && !hasNumbers(value.lowered, ['to', 'at', 'times'])) return undefined;
  if (value.blocked !== undefined && !hasNumbers(value.blocked, ['at', 'until'])) return undefined;
  if (isObject(value.report) && value.report.resetAt !== undefined && !isInstant(value.report.resetAt))
    return undefined;
  if (value.unreportedAt !== undefined && !isInstant(value.unreportedAt)) return undefined;
  return value as Record<string, unknown> & QuotaState;
}

/** The limit is one an hour, and a reset is rounded down to seconds: nothing has to be waited for longer. */
const MOST_WAIT_MS = HOUR_MS + 1_000;

/**
 * What still matters at `now`. `isHeld` says whether a slot's process lives. Repairs what a jump of the clock left, and
 * believes no instant further than an hour ahead of the one at which it was written.
 */
export function pruned(state: QuotaState, now: number, isHeld: (slot: Slot) => boolean): QuotaState {
  const { blocked: told, report, lowered, unreportedAt, ...rest } = state;
  const blocked = told && blockedWithin(told, now);
  const sent = state.sent.map(({ n, at }) => ({ n, at: Math.min(at, now) })).filter(({ at }) => at > now - HOUR_MS);
  const isFreeing = (at: number) => at > now && at <= now + SLOT_GRACE_MS;
  const slots = state.slots.filter((slot) => (slot.freeAt === undefined ? isHeld(slot) : isFreeing(slot.freeAt)));
  return {
    ...rest,
    sent,
    slots,
    ...(blocked !== undefined && blocked.until > now && { blocked }),
    ...(report !== undefined && report.at <= now && { report: reportWithin(report) }),
    ...(lowered !== undefined && {
      lowered: { ...lowered, to: Math.max(1, lowered.to), at: Math.min(lowered.at, now) },
    }),
    ...(unreportedAt !== undefined && unreportedAt <= now && { unreportedAt }),
  };
}

/** Written by a clock that was ahead of today's: as long as then, from now on. */
function blockedWithin({ at, until }: { at: number; until: number }, now: number): { at: number; until: number } {
  const from = Math.min(at, now);
  return { at: from, until: from + Math.min(until - at, MOST_WAIT_MS) };
}

const reportWithin = (report: Report): Report =>
  report.resetAt === undefined ? report : { ...report, resetAt: Math.min(report.resetAt, report.at + HOUR_MS) };

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isInstant = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0;
/** Far enough below the end of whole numbers that counting on is exact. */
const MOST_COUNT = 2 ** 48;
const isCount = (value: unknown): value is number => Number.isInteger(value) && isInstant(value) && value < MOST_COUNT;
const INSTANTS = new Set(['at', 'until', 'lease', 'resetAt']);
const hasNumbers = (value: unknown, keys: readonly string[]): boolean =>
  isObject(value) && keys.every((key) => (INSTANTS.has(key) ? isInstant : isCount)(value[key]));
const isHeld = (slot: Record<string, unknown>): boolean =>
  identityFrom(slot.holder) !== undefined && typeof slot.run === 'string';
const isListOf = (value: unknown, keys: readonly string[]): value is Record<string, unknown>[] =>
  Array.isArray(value) && value.every((one) => hasNumbers(one, keys));
