import { HOUR_MS } from '../../base/durations.ts';
import { configError } from '../../base/errors.ts';
import type { Secret } from '../../base/secrets.ts';
import { isHeaderText } from '../../config/parse.ts';
import type { AnswerHeaders } from './transport.ts';

/** The quota in the headers of an answer; instants in ms since 1970. Values out of range count as absent. */
export interface LimitHeaders {
  readonly remaining: number | undefined;
  readonly resetAt: number | undefined;
  /** The instant that `Retry-After` names. */
  readonly retryAt: number | undefined;
}

/** The quota of a failure without an answer. */
export const NO_LIMITS: LimitHeaders = { remaining: undefined, resetAt: undefined, retryAt: undefined };

const LENIENCY_MS = 300_000;
const PREFIXES = ['x-rate-limit-', 'x-ratelimit-'] as const;
/** Seconds until the year 2286 have at most 10 digits, milliseconds since 2001 at least 12. */
const FIRST_MS = 100_000_000_000;
/** The longest known quota cycle is a month: instants further ahead are ignored. */
const FURTHEST_MS = 32 * 24 * HOUR_MS;

/** Reads both spellings, in seconds or milliseconds. A reset at or before `now` counts as absent. */
export function readLimits(headers: AnswerHeaders, now: number): LimitHeaders {
  const serverTime = readDate(headers);
  return {
    remaining: firstOf(headers, 'remaining', wholeNumber),
    resetAt: firstOf(headers, 'reset', (text) => onLocalClock(instantOf(text), now, serverTime)),
    retryAt: laterThan(now, retryAtOf(oneOf(headers['retry-after']), now)),
  };
}

/** The instant from which requests are allowed after a refusal: the later one of those named, undefined if none is. */
export const allowedFrom = ({ resetAt, retryAt }: LimitHeaders): number | undefined =>
  Math.max(resetAt ?? 0, retryAt ?? 0) || undefined;

/** The `Date` header in ms. */
export function readDate(headers: AnswerHeaders): number | undefined {
  const ms = Date.parse(oneOf(headers.date) ?? '');
  return Number.isNaN(ms) ? undefined : ms;
}

export const oneOf = (value: string | readonly string[] | undefined): string | undefined =>
  typeof value === 'string' ? value : value?.[0];

/** The first value that `read` understands; Node joins a header that came twice by a comma. */
function firstOf<T>(headers: AnswerHeaders, name: string, read: (text: string) => T | undefined): T | undefined {
  const values = PREFIXES.flatMap((prefix) => headers[`${prefix}${name}`] ?? []);
  return values
    .flatMap((value) => value.split(','))
    .map((text) => read(text.trim()))
    .find((found) => found !== undefined);
}

const wholeNumber = (text: string): number | undefined => (/^\d{1,15}$/.test(text) ? Number(text) : undefined);

function instantOf(text: string): number | undefined {
  if (!/^\d{9,15}(\.\d+)?$/.test(text)) return undefined;
  const number = Number(text);
  return Math.round(number < FIRST_MS ? number * 1_000 : number);
}

/**
 * A reset, an instant of the service's clock, by this machine's clock: if it is within the next hour by the answer's
 * own `Date` alone, its distance from that is added to `now`.
 */
function onLocalClock(reset: number | undefined, now: number, serverTime: number | undefined): number | undefined {
  if (reset === undefined) return undefined;
  const isNear = (distance: number) => distance > 0 && distance <= HOUR_MS + LENIENCY_MS;
  if (isNear(reset - now) || serverTime === undefined || !isNear(reset - serverTime)) return laterThan(now, reset);
  return now + (reset - serverTime);
}

function retryAtOf(text: string | undefined, now: number): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,9}$/.test(text.trim())) return now + Number(text) * 1_000;
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? undefined : ms;
}

const laterThan = (now: number, at: number | undefined): number | undefined =>
  at !== undefined && at > now && at <= now + FURTHEST_MS ? at : undefined;

/** The text of a token. Throws a configuration failure that names the key if a header cannot carry its characters. */
export function headerText(token: Secret, key: string): string {
  const text = token.reveal();
  if (isHeaderText(text)) return text;
  throw configError(`${key} is empty, or holds a character that no HTTP header can carry: copy the token again.`);
}
