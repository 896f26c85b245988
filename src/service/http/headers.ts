import { configError } from '../../base/errors.ts';
import type { Secret } from '../../base/secrets.ts';
import { isHeaderText } from '../../config/parse.ts';
import type { AnswerHeaders } from './transport.ts';

/** The quota in the headers of an answer; instants in ms since 1970. What is unusable or over counts as absent. */
export interface LimitHeaders {
  readonly remaining: number | undefined;
  readonly resetAt: number | undefined;
  /** The instant that `Retry-After` names. */
  readonly retryAt: number | undefined;
}

/** The quota of a failure without an answer. */
export const NO_LIMITS: LimitHeaders = { remaining: undefined, resetAt: undefined, retryAt: undefined };

const PREFIXES = ['x-rate-limit-', 'x-ratelimit-'] as const;
/** Seconds until the year 2286 have at most 10 digits, milliseconds since 2001 at least 12. */
const FIRST_MS = 100_000_000_000;

/** Reads both spellings, in seconds or milliseconds. */
export function readLimits(headers: AnswerHeaders, now: number): LimitHeaders {
  return {
    remaining: firstOf(headers, 'remaining', wholeNumber),
    resetAt: firstOf(headers, 'reset', (text) => laterThan(now, instantOf(text))),
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

/** The first spelling of a header that `read` understands. */
const firstOf = <T>(headers: AnswerHeaders, name: string, read: (text: string) => T | undefined): T | undefined =>
  PREFIXES.map((prefix) => read((oneOf(headers[`${prefix}${name}`]) ?? '').trim())).find(
    (found) => found !== undefined,
  );

const wholeNumber = (text: string): number | undefined => (/^\d{1,15}$/.test(text) ? Number(text) : undefined);

function instantOf(text: string): number | undefined {
  if (!/^\d{9,15}(\.\d+)?$/.test(text)) return undefined;
  const number = Number(text);
  return Math.round(number < FIRST_MS ? number * 1_000 : number);
}

function retryAtOf(text: string | undefined, now: number): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,9}$/.test(text.trim())) return now + Number(text) * 1_000;
  return Date.parse(text);
}

const laterThan = (now: number, at: number | undefined): number | undefined =>
  at !== undefined && at > now ? at : undefined;

/** The text of a token. Throws a configuration failure that names the key for a text that is no token. */
export function headerText(token: Secret, key: string): string {
  const text = token.reveal();
  if (/^bearer\s/i.test(text)) throw configError(`${key} begins with "Bearer ": give the token alone.`);
  if (isHeaderText(text)) return text;
  throw configError(`${key} is empty, or holds a character that no HTTP header can carry: copy the token again.`);
}
