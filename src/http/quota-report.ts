import type { IncomingHttpHeaders } from 'node:http';

/** The quota in the headers of an answer; instants in ms since 1970. What is unusable or over counts as absent. */
export interface QuotaReport {
  readonly remaining: number | undefined;
  readonly resetAt: number | undefined;
  /** The instant that `Retry-After` names. */
  readonly retryAt: number | undefined;
}

/** The quota of a failure without an answer. */
export const NO_QUOTA_REPORT: QuotaReport = { remaining: undefined, resetAt: undefined, retryAt: undefined };

const PREFIXES = ['x-rate-limit-', 'x-ratelimit-'] as const;
/** Seconds reach this number in the year 5138. Milliseconds have been above it since 1973. */
const FIRST_MS = 100_000_000_000;

/** Reads both spellings, in seconds or milliseconds. */
export function readQuotaReport(headers: IncomingHttpHeaders, now: number): QuotaReport {
  return {
    remaining: firstSpelling(headers, 'remaining', readCount),
    resetAt: firstSpelling(headers, 'reset', (text) => ifAfter(now, readReset(text))),
    retryAt: ifAfter(now, readRetryAfter(headers['retry-after'] ?? '', now)),
  };
}

/** The first spelling of a header that `read` understands. */
const firstSpelling = (headers: IncomingHttpHeaders, name: string, read: (text: string) => number | undefined) =>
  PREFIXES.map((prefix) => read(String(headers[`${prefix}${name}`] ?? '').trim())).find((value) => value !== undefined);

const readCount = (text: string): number | undefined => (/^\d{1,15}$/.test(text) ? Number(text) : undefined);

function readReset(text: string): number | undefined {
  if (!/^\d{9,15}(\.\d+)?$/.test(text)) return undefined;
  const number = Number(text);
  return Math.round(number < FIRST_MS ? number * 1_000 : number);
}

const readRetryAfter = (text: string, now: number): number =>
  /^\d{1,9}$/.test(text.trim()) ? now + Number(text) * 1_000 : Date.parse(text);

const ifAfter = (now: number, at: number | undefined): number | undefined =>
  at !== undefined && at > now ? at : undefined;
