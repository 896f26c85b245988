import type { Clock } from '../../base/clock.ts';
import { formatDuration } from '../../base/durations.ts';
import { configError, transientError } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import type { Random } from '../../base/random.ts';
import { pauseAfter, type RetryPolicy } from '../../base/retry.ts';
import type { ExportRefusal } from './protocol.ts';

export const EXPORT_RETRY = {
  attempts: 5,
  /** Answers that may mean "too big" before the request is split: of days; of a day once one before it was split; of a part of a day. */
  splitAfter: 3,
  splitNextDayAfter: 1,
  splitPartAfter: 2,
  /** Bodies malformed at the same place in the same way before the last is kept for inspection and the run fails. */
  malformedAfter: 3,
  /** The refusal for quota (429) of one export at which the run fails. Refusals are no attempts; `src/service/quota` waits. */
  failAtQuotaRefusal: 50,
  baseMs: 1_000,
  capMs: 120_000,
} as const satisfies RetryPolicy & Record<string, number>;

/** A refusal; a broken body is treated as one. */
export type Refusal = Pick<ExportRefusal, 'kind' | 'code' | 'message'>;

/** `again`: the same request is sent again now; any other word is for the caller to handle. */
type AfterRefusal = 'again' | 'too_big' | 'gone' | 'invalid';

interface ExportRetryOptions {
  /** Name of the export in messages: `2026-01-01`. */
  readonly name: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

/** Counts the requests of one export, and decides after each refusal whether there is another one. */
export class ExportRetries {
  readonly #options: ExportRetryOptions;
  /** The attempt that was begun last, from 1; refusals for quota are not counted. */
  #attempt = 0;
  #quotaRefusals = 0;
  #maybeTooBig = 0;

  constructor(options: ExportRetryOptions) {
    this.#options = options;
  }

  get requests(): number {
    return this.#attempt + this.#quotaRefusals;
  }

  get isLast(): boolean {
    return this.#attempt >= EXPORT_RETRY.attempts;
  }

  get where() {
    return { window: this.#options.name, attempt: this.#attempt };
  }

  /** Begins a request; called before each. Throws the signal's reason. */
  begin(): void {
    this.#options.signal.throwIfAborted();
    this.#attempt++;
  }

  /**
   * Pauses if the export is to be requested again. Throws a UserError when the user must act, or when all attempts were made.
   * `splitAfter`: answers that may mean "too big" before it is `too_big`.
   */
  async after(refusal: Refusal, splitAfter: number = EXPORT_RETRY.splitAfter): Promise<AfterRefusal> {
    const { kind, code, message } = refusal;
    switch (kind) {
      case 'gone':
      case 'invalid':
        return kind;
      case 'config':
        throw configError(message, { where: this.where, internal: code });
      case 'wait':
        return this.#afterQuotaRefusal(message);
      case 'retry_or_split':
        this.#maybeTooBig++;
        return this.#afterFailure(refusal, this.#maybeTooBig >= splitAfter);
      case 'retry':
        return this.#afterFailure(refusal, false);
    }
  }

  /** The quota has recorded the refusal and delays the next request. */
  #afterQuotaRefusal(message: string): AfterRefusal {
    const { name, logger } = this.#options;
    this.#attempt--;
    this.#quotaRefusals++;
    if (this.#quotaRefusals >= EXPORT_RETRY.failAtQuotaRefusal) {
      throw transientError(`${name}: ${message} Asked ${this.#quotaRefusals} times; run again later.`);
    }
    logger.info('window.wait', `${name}: ${message} It is requested again as soon as that allows.`, {
      window: name,
      wait: this.#quotaRefusals,
    });
    return 'again';
  }

  async #afterFailure({ code, message }: Refusal, isTooBig: boolean): Promise<AfterRefusal> {
    const { name, clock, random, logger, signal } = this.#options;
    const { where } = this;
    // The user can search for the code.
    const why = message.includes(`(${code})`) ? message : `${message} (${code})`;
    if (isTooBig) {
      const text = `${name}, attempt ${this.#attempt}: ${why} again and again; a smaller export is requested next.`;
      logger.warn('window.split', text, { ...where, cause: code });
      return 'too_big';
    }
    if (this.isLast) {
      throw transientError(
        `The export of ${name} failed ${this.#attempt} times, at last because ${why}; nothing of it was stored, run again later.`,
        { where, internal: code },
      );
    }
    const pause = pauseAfter(this.#attempt, EXPORT_RETRY, random);
    const text = `${name}, attempt ${this.#attempt} of ${EXPORT_RETRY.attempts}: ${why}; again in ${formatDuration(pause)}.`;
    logger.warn('window.retry', text, { ...where, cause: code, pause_ms: pause });
    await clock.sleep(pause, signal);
    return 'again';
  }
}
