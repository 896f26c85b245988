import { identityFrom, type ProcessIdentity } from '../../fs/process-identity.ts';

/** The other side notices the end of an export a little later than we do. */
export const SLOT_GRACE_MS = 50;

/** An export sent: its number, in the order of sending over all processes, and when. */
export interface Sent {
  readonly n: number;
  readonly at: number;
}

/** A place taken by an export under way. */
export interface Slot {
  readonly n: number;
  /** The process that holds it, and the object in it. */
  readonly holder: ProcessIdentity;
  readonly run: string;
  /** Whoever does not renew it until then is taken for dead. */
  readonly lease: number;
  /** The head of its answer has come. */
  readonly heard: boolean;
  /** It is over; its place is free from then on. */
  readonly freeAt?: number;
}

/** The last word of the service on what is left. */
export interface Word {
  readonly remaining: number;
  readonly resetAt?: number;
  /** When it came, and to which export. */
  readonly at: number;
  readonly by: number;
  /** The last export sent by then, and how many had no answer yet: the word may not know of them. */
  readonly upTo: number;
  readonly unheard: number;
}

/** Fewer at once than configured, learned from refusals. */
export interface Lowered {
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
  readonly word?: Word;
  /** When an answer that was no refusal last came without any word on what is left. */
  readonly muteAt?: number;
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
  if (value.word !== undefined && !hasNumbers(value.word, ['remaining', 'at', 'by', 'upTo', 'unheard']))
    return undefined;
  if (value.lowered !== undefined && !hasNumbers(value.lowered, ['to', 'at', 'times'])) return undefined;
  if (value.blocked !== undefined && !hasNumbers(value.blocked, ['at', 'until'])) return undefined;
  if (value.muteAt !== undefined && !isCount(value.muteAt)) return undefined;
  return value as Record<string, unknown> & QuotaState;
}

/** What still matters at `now`. `isHeld` says whether a slot's process lives. Repairs what a jump of the clock left. */
export function pruned(state: QuotaState, now: number, isHeld: (slot: Slot) => boolean): QuotaState {
  const { blocked: told, word, ...rest } = state;
  // Told by a clock that was ahead of today's: as long as then, from now on.
  const blocked = told !== undefined && told.at > now ? { at: now, until: now + told.until - told.at } : told;
  const sent = state.sent.map(({ n, at }) => ({ n, at: Math.min(at, now) })).filter(({ at }) => at > now - HOUR_MS);
  const isFreeing = (at: number) => at > now && at <= now + SLOT_GRACE_MS;
  const slots = state.slots.filter((slot) => (slot.freeAt === undefined ? isHeld(slot) : isFreeing(slot.freeAt)));
  return {
    ...rest,
    sent,
    slots,
    ...(blocked !== undefined && blocked.until > now && { blocked }),
    ...(word !== undefined && word.at <= now && { word }),
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isCount = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value) && value >= 0;
const hasNumbers = (value: unknown, keys: readonly string[]): boolean =>
  isObject(value) && keys.every((key) => isCount(value[key]));
const isHeld = (slot: Record<string, unknown>): boolean =>
  identityFrom(slot.holder) !== undefined && typeof slot.run === 'string';
const isListOf = (value: unknown, keys: readonly string[]): value is Record<string, unknown>[] =>
  Array.isArray(value) && value.every((one) => hasNumbers(one, keys));
