import { formatDuration, HOUR_MS } from '../../base/durations.ts';
import { configError, transientError } from '../../base/errors.ts';
import { pauseAfter, type RetryPolicy } from '../../base/retry.ts';
import type { Runtime } from '../../base/runtime.ts';
import type { LimitHeaders } from '../http/headers.ts';
import { SHOWN_WAIT_MS } from '../quota/quota.ts';
import { type WaitLimits, waitProblem } from '../quota/wait-limits.ts';
import type { ExportRefusal } from './protocol.ts';

/** A pause is longer where the service names a longer one in `Retry-After`, as far as the `WaitBudget` allows. */
const EXPORT_RETRY: RetryPolicy = { attempts: 5, baseMs: 1_000, capMs: 120_000 };
/** The 429 of one export at which the run fails. */
const MAX_QUOTA_REFUSALS = 50;
/** Answers that may mean "too large" before a smaller export is requested. */
const TOO_LARGE_AFTER = 3;

/** How long the exports of one day may still be kept waiting by `Retry-After` (ms). */
export interface WaitBudget {
  remainingMs: number;
}
export const newWaitBudget = (): WaitBudget => ({ remainingMs: HOUR_MS });

/** A refusal; a broken body, which has no headers, is treated as one. */
export type Refusal = Pick<ExportRefusal, 'kind' | 'code' | 'message'> & {
  readonly limits?: LimitHeaders | undefined;
  /** As in `ExportAnswer`. */
  readonly serverTime?: number | undefined;
};

/** What was read of an answer. */
interface Received<T> {
  readonly kind: 'received';
  readonly value: T;
}

/**
 * An answer after which the same request is not sent again. `gone`: the service no longer has the first day. `invalid`:
 * a 400, perhaps for a day that has not begun. `too_big`: it failed so often that fewer events must be requested.
 */
export type LastRefusal = Omit<Refusal, 'kind'> & { readonly kind: 'gone' | 'invalid' | 'too_big' };

/** `until` in ms since 1970. */
export type OnWait = (until: number | undefined, owner?: object) => void;

interface RetryOptions extends Omit<Runtime, 'env'>, WaitLimits {
  /** The day of the export, for messages. */
  readonly day: string;
  /** Answers that may mean "too large" before the export is `too_big`. */
  readonly splitAfter?: number | undefined;
  /** Shared with the other exports of the day. */
  readonly waitBudget: WaitBudget;
  /** Called with the end of a long pause that the service names, then with undefined; `owner` is the same for both. */
  readonly onWait?: OnWait | undefined;
}

/**
 * Calls `request`, which sends one export, until it has received something or the answer is final. Throws a UserError
 * when the user must act, or when all attempts were made. Throws the signal's reason.
 */
export async function retrying<T>(
  options: RetryOptions,
  request: () => Promise<Received<T> | Refusal>,
): Promise<Received<T> | LastRefusal> {
  const { day, splitAfter = TOO_LARGE_AFTER, clock, logger, signal } = options;
  let attempt = 1;
  let quotaRefusals = 0;
  let maybeTooBig = 0;
  for (;;) {
    signal.throwIfAborted();
    const where = { day, attempt };
    const answer = await request();
    if (answer.kind === 'received') return answer;
    const { kind, code, message, limits } = answer;
    if (kind === 'gone' || kind === 'invalid') return { ...answer, kind };
    if (kind === 'config') throw configError(message, { where, internal: code });
    if (kind === 'wait') {
      // No attempt: the quota has recorded the refusal and delays the next request.
      quotaRefusals++;
      tellQuotaRefusal(options, message, quotaRefusals);
      continue;
    }
    if (kind === 'retry_or_split') maybeTooBig++;
    // The user can search for the code.
    const why = message.endsWith(')') ? message : `${message} (${code})`;
    const now = clock.now();
    const retryAfterMs = Math.max(0, (limits?.retryAt ?? 0) - now);
    const tooLong = waitProblem(now + retryAfterMs, now, options);
    if (kind === 'retry_or_split' && (maybeTooBig >= splitAfter || tooLong !== undefined)) {
      const again = maybeTooBig >= splitAfter ? ' again and again' : '';
      logger.warn('export.given_up', `${day}, attempt ${attempt}: ${why}${again}.`, { ...where, cause: code });
      return { ...answer, kind: 'too_big' };
    }
    await pauseAfterFailure(options, attempt, { why, code, retryAfterMs, tooLong });
    attempt++;
  }
}

/** Throws a UserError at the last refusal for quota that the policy allows. */
function tellQuotaRefusal({ day, logger }: RetryOptions, message: string, refusals: number): void {
  if (refusals >= MAX_QUOTA_REFUSALS) {
    throw transientError(`${day}: ${message} Asked ${refusals} times; run again later.`);
  }
  logger.info('export.wait', `${day}: ${message} It is requested again as soon as that allows.`, {
    day,
    wait: refusals,
  });
}

/** The last failure of an export, as a clause that can follow "because". */
interface Failure {
  readonly why: string;
  readonly code: string;
  /** The pause that `Retry-After` names, whole; 0 if it names none. */
  readonly retryAfterMs: number;
  /** Why that pause is not waited for, as the end of a sentence; undefined if it is. */
  readonly tooLong: string | undefined;
}

/** Throws a UserError after the last attempt, or if the service names a longer pause than is allowed. */
async function pauseAfterFailure(
  options: RetryOptions,
  attempt: number,
  { why, code, retryAfterMs, tooLong }: Failure,
): Promise<void> {
  const { day, waitBudget, onWait, clock, random, logger, signal } = options;
  const where = { day, attempt };
  if (attempt >= EXPORT_RETRY.attempts) {
    throw transientError(
      `The export of ${day} failed ${attempt} times, at last because ${why}; nothing of it was stored, run again later.`,
      { where, internal: code },
    );
  }
  if (tooLong !== undefined) {
    throw transientError(
      `The export of ${day} failed because ${why}, and may be requested again in ${formatDuration(retryAfterMs)}: ${tooLong}`,
      { where, internal: code },
    );
  }
  const namedMs = Math.min(retryAfterMs, waitBudget.remainingMs);
  waitBudget.remainingMs -= namedMs;
  const pause = Math.max(pauseAfter(attempt, EXPORT_RETRY, random), namedMs);
  const text = `${day}, attempt ${attempt} of ${EXPORT_RETRY.attempts}: ${why}; again in ${formatDuration(pause)}.`;
  logger.warn('export.retry', text, { ...where, cause: code, pause_ms: pause });
  if (namedMs >= SHOWN_WAIT_MS) onWait?.(clock.now() + pause, options);
  try {
    await clock.sleep(pause, signal);
  } finally {
    onWait?.(undefined, options);
  }
}
