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

/** How long an export, with the smaller ones that take its place, may still be kept waiting by `Retry-After` (ms). */
export interface WaitBudget {
  remainingMs: number;
}
export const newWaitBudget = (): WaitBudget => ({ remainingMs: HOUR_MS });

/** The number of answers that may mean "too big" before an export is divided. */
const SPLIT_AFTER = {
  days: 3,
  /** Of a single day, once a day before it was divided. */
  nextDay: 1,
  partOfDay: 2,
} as const;

/** The 429 of one export at which the run fails. */
const MAX_QUOTA_REFUSALS = 50;

/** A refusal; a broken body, which has no headers, is treated as one. */
export type Refusal = Pick<ExportRefusal, 'kind' | 'code' | 'message'> & {
  readonly limits?: LimitHeaders | undefined;
  /** As in `ExportAnswer`. */
  readonly serverTime?: number | undefined;
};

/** What was read of an answer. */
export interface Received<T> {
  readonly kind: 'received';
  readonly value: T;
  /** Set if the body may have been cut although no fault shows: within its last cell. */
  readonly truncation?: SuspectedTruncation | undefined;
}

interface SuspectedTruncation {
  /** A clause that says why; it follows "because". */
  readonly message: string;
  /** Equal for equal bodies. */
  readonly digest: string;
  /** True if all bodies of the service are known to end like this one. */
  readonly isUsual: boolean;
  /** Removes what was received. */
  discard?(): Promise<void>;
}

/** `requests`: all that were sent, those that were refused included. */
type Accepted<T> = Received<T> & { readonly requests: number };

/**
 * An answer after which the same request is not sent again. `gone`: the service no longer has the first day. `invalid`:
 * a 400, perhaps for a day that has not begun. `too_big`: it failed so often that fewer days, or fewer event names,
 * must be requested.
 */
export type LastRefusal = Omit<Refusal, 'kind'> & { readonly kind: 'gone' | 'invalid' | 'too_big' };

/** `until` in ms since 1970. */
export type OnWait = (until: number | undefined, owner?: object) => void;

interface RetryOptions extends Omit<Runtime, 'env'>, WaitLimits {
  /** Name of the export in messages: `2026-01-01`. */
  readonly exportName: string;
  /** Answers that may mean "too big" before the export is `too_big`; default: that of several days. */
  readonly splitAfter?: number | undefined;
  /** Shared with the exports in whose place this one is sent. */
  readonly waitBudget?: WaitBudget | undefined;
  /** Called with the end of a long pause that the service names, then with undefined; `owner` is the same for both. */
  readonly onWait?: OnWait | undefined;
}

/**
 * Calls `request`, which sends one export, until what it received is accepted as complete, or until an answer after
 * which the export is not sent again. A body that may have been cut is accepted if the one before it was the same.
 * Throws a UserError when the user must act, or when all attempts were made; throws the signal's reason.
 */
export async function retrying<T>(
  options: RetryOptions,
  request: () => Promise<Received<T> | Refusal>,
): Promise<Accepted<T> | LastRefusal> {
  const { exportName, splitAfter = SPLIT_AFTER.days, waitBudget = newWaitBudget(), clock, logger, signal } = options;
  let attempt = 1;
  let quotaRefusals = 0;
  let maybeTooBig = 0;
  const send = confirmed(request);
  for (;;) {
    signal.throwIfAborted();
    const where = { window: exportName, attempt };
    const answer = await send();
    if (answer.kind === 'received') return { ...answer, requests: attempt + quotaRefusals };
    if (answer.isToConfirm === true && attempt < EXPORT_RETRY.attempts) {
      logger.debug('window.confirm', `${exportName} is exported once more: it may have been cut.`, where);
      attempt++;
      continue;
    }
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
    const why = message.includes(`(${code})`) ? message : `${message} (${code})`;
    const now = clock.now();
    const retryAfterMs = Math.max(0, (limits?.retryAt ?? 0) - now);
    const tooLong = waitProblem(now + retryAfterMs, now, options);
    if (kind === 'retry_or_split' && (maybeTooBig >= splitAfter || tooLong !== undefined)) {
      const again = maybeTooBig >= splitAfter ? ' again and again' : '';
      const text = `${exportName}, attempt ${attempt}: ${why}${again}; a smaller export is requested next.`;
      logger.warn('window.split', text, { ...where, cause: code });
      return { ...answer, kind: 'too_big' };
    }
    await pauseAfterFailure({ ...options, waitBudget }, attempt, { why, code, retryAfterMs, tooLong });
    attempt++;
  }
}

/**
 * Makes a refusal of a body that may have been cut, unless the one before it was the same. `isToConfirm`: it is
 * worth another request without a pause.
 */
function confirmed<T>(
  request: () => Promise<Received<T> | Refusal>,
): () => Promise<Received<T> | (Refusal & { readonly isToConfirm?: boolean })> {
  let before: string | undefined;
  return async () => {
    const answer = await request();
    if (answer.kind !== 'received') return answer;
    const { truncation } = answer;
    if (truncation === undefined || truncation.digest === before) return answer;
    await truncation.discard?.();
    const isToConfirm = before === undefined && truncation.isUsual;
    before = truncation.digest;
    return { kind: 'retry', code: 'no_final_newline', message: truncation.message, isToConfirm };
  };
}

/** Throws a UserError at the last refusal for quota that the policy allows. */
function tellQuotaRefusal({ exportName, logger }: RetryOptions, message: string, refusals: number): void {
  if (refusals >= MAX_QUOTA_REFUSALS) {
    throw transientError(`${exportName}: ${message} Asked ${refusals} times; run again later.`);
  }
  logger.info('window.wait', `${exportName}: ${message} It is requested again as soon as that allows.`, {
    window: exportName,
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
  options: RetryOptions & { readonly waitBudget: WaitBudget },
  attempt: number,
  { why, code, retryAfterMs, tooLong }: Failure,
): Promise<void> {
  const { exportName, waitBudget, onWait, clock, random, logger, signal } = options;
  const where = { window: exportName, attempt };
  if (attempt >= EXPORT_RETRY.attempts) {
    throw transientError(
      `The export of ${exportName} failed ${attempt} times, at last because ${why}; nothing of it was stored, run again later.`,
      { where, internal: code },
    );
  }
  if (tooLong !== undefined) {
    throw transientError(
      `The export of ${exportName} failed because ${why}, and may be requested again in ${formatDuration(retryAfterMs)}: ${tooLong}`,
      { where, internal: code },
    );
  }
  const namedMs = Math.min(retryAfterMs, waitBudget.remainingMs);
  waitBudget.remainingMs -= namedMs;
  const pause = Math.max(pauseAfter(attempt, EXPORT_RETRY, random), namedMs);
  const text = `${exportName}, attempt ${attempt} of ${EXPORT_RETRY.attempts}: ${why}; again in ${formatDuration(pause)}.`;
  logger.warn('window.retry', text, { ...where, cause: code, pause_ms: pause });
  if (namedMs >= SHOWN_WAIT_MS) onWait?.(clock.now() + pause, options);
  try {
    await clock.sleep(pause, signal);
  } finally {
    onWait?.(undefined, options);
  }
}
