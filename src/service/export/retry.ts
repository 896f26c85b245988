import type { Clock } from '../../base/clock.ts';
import { formatDuration } from '../../base/durations.ts';
import { configError, transientError } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import type { Random } from '../../base/random.ts';
import { pauseAfter, type RetryPolicy } from '../../base/retry.ts';
import { REFUSAL_POLICY } from '../quota/rules.ts';
import type { ExportRefusal } from './protocol.ts';

export const EXPORT_RETRY = {
  attempts: 5,
  /** Answers that may mean "too big" before the days of a request are divided. */
  splitAfter: 3,
  /** The same for a single day, once a day before it was divided. */
  splitNextDayAfter: 1,
  /** The same for a part of a day. */
  splitPartAfter: 2,
  /** Bodies malformed at the same place in the same way before the last is kept for inspection and the run fails. */
  malformedAfter: 3,
  baseMs: 1_000,
  capMs: 120_000,
} as const satisfies RetryPolicy & Record<string, number>;

/** A refusal; a broken body is treated as one. `serverTime` as in `ExportAnswer`. */
export type Refusal = Pick<ExportRefusal, 'kind' | 'code' | 'message'> & { readonly serverTime?: number | undefined };

/** What was read of an answer. */
export interface Received<T> {
  readonly kind: 'received';
  readonly value: T;
  /** Set if the body may have been cut although no fault shows (S60). */
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
 * An answer after which the same request is not sent again. `gone`: the service no longer has the first day. `invalid`: a
 * 400, perhaps for a day that has not begun. `too_big`: it failed so often that fewer days, or fewer event names, must be
 * requested.
 */
export type LastRefusal = Omit<Refusal, 'kind'> & { readonly kind: 'gone' | 'invalid' | 'too_big' };

interface RetryOptions {
  /** Name of the export in messages: `2026-01-01`. */
  readonly exportName: string;
  /** Answers that may mean "too big" before the export is `too_big`; default: that of the policy. */
  readonly splitAfter?: number | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly signal: AbortSignal;
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
  const { exportName, splitAfter = EXPORT_RETRY.splitAfter, logger, signal } = options;
  let attempt = 1;
  let quotaRefusals = 0;
  let maybeTooBig = 0;
  let unconfirmed: string | undefined;
  for (;;) {
    signal.throwIfAborted();
    const where = { window: exportName, attempt };
    let answer = await request();
    if (answer.kind === 'received') {
      const { truncation } = answer;
      const isAccepted = truncation === undefined || truncation.digest === unconfirmed;
      if (isAccepted) return { ...answer, requests: attempt + quotaRefusals };
      await truncation.discard?.();
      const isAskedAtOnce = unconfirmed === undefined && truncation.isUsual && attempt < EXPORT_RETRY.attempts;
      unconfirmed = truncation.digest;
      if (isAskedAtOnce) {
        logger.debug('window.confirm', `${exportName} is exported once more: it may have been cut.`, where);
        attempt++;
        continue;
      }
      answer = { kind: 'retry', code: 'no_final_newline', message: truncation.message };
    }
    const { kind, code, message } = answer;
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
    if (kind === 'retry_or_split' && maybeTooBig >= splitAfter) {
      const text = `${exportName}, attempt ${attempt}: ${why} again and again; a smaller export is requested next.`;
      logger.warn('window.split', text, { ...where, cause: code });
      return { ...answer, kind: 'too_big' };
    }
    await pauseAfterFailure(options, attempt, why, code);
    attempt++;
  }
}

/** Throws a UserError at the last refusal for quota that the policy allows. */
function tellQuotaRefusal({ exportName, logger }: RetryOptions, message: string, refusals: number): void {
  if (refusals >= REFUSAL_POLICY.failAt) {
    throw transientError(`${exportName}: ${message} Asked ${refusals} times; run again later.`);
  }
  logger.info('window.wait', `${exportName}: ${message} It is requested again as soon as that allows.`, {
    window: exportName,
    wait: refusals,
  });
}

/** Throws a UserError after the last attempt. */
async function pauseAfterFailure(options: RetryOptions, attempt: number, why: string, code: string): Promise<void> {
  const { exportName, clock, random, logger, signal } = options;
  const where = { window: exportName, attempt };
  if (attempt >= EXPORT_RETRY.attempts) {
    throw transientError(
      `The export of ${exportName} failed ${attempt} times, at last because ${why}; nothing of it was stored, run again later.`,
      { where, internal: code },
    );
  }
  const pause = pauseAfter(attempt, EXPORT_RETRY, random);
  const text = `${exportName}, attempt ${attempt} of ${EXPORT_RETRY.attempts}: ${why}; again in ${formatDuration(pause)}.`;
  logger.warn('window.retry', text, { ...where, cause: code, pause_ms: pause });
  await clock.sleep(pause, signal);
}
