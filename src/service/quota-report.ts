import type { IncomingHttpHeaders } from 'node:http';

/** The quota in the headers of an answer; instants in ms since 1970. What is unusable or over counts as absent. */
export interface QuotaReport {
  readonly remaining?: number | undefined;
  readonly resetAt?: number | undefined;
  /** The instant that `Retry-After` names. */
  readonly retryAt?: number | undefined;
}

/** Reads either spelling of the headers. */
export function readQuotaReport(headers: IncomingHttpHeaders, now: number): QuotaReport {
  const limitHeader = (name: string) =>
    String(headers[`x-rate-limit-${name}`] ?? headers[`x-ratelimit-${name}`] ?? '').trim();
  const remaining = limitHeader('remaining');
  const resetAt = readReset(limitHeader('reset'));
  const retryAt = readRetryAfter(headers['retry-after']?.trim() ?? '', now);
  return {
    remaining: /^\d{1,15}$/.test(remaining) ? Number(remaining) : undefined,
    resetAt: resetAt > now ? resetAt : undefined,
    retryAt: retryAt > now ? retryAt : undefined,
  };
}

/** Seconds reach this number in the year 5138. Milliseconds have been above it since 1973. */
const LEAST_MS_SINCE_1970 = 100_000_000_000;

/** An instant in seconds or milliseconds; NaN for any other text. */
function readReset(text: string): number {
  const number = /^\d{9,15}(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  return Math.round(number < LEAST_MS_SINCE_1970 ? number * 1_000 : number);
}

/** An instant from seconds or a date; NaN for any other text. */
const readRetryAfter = (text: string, now: number): number =>
  /^\d{1,9}$/.test(text) ? now + Number(text) * 1_000 : Date.parse(text);
