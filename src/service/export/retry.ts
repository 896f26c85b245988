import type { Clock } from '../../base/clock.ts';
import { formatDuration } from '../../base/durations.ts';
import { configError, transientError } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import type { Random } from '../../base/random.ts';
import { pauseAfter, type RetryPolicy } from '../../base/retry.ts';
import type { ExportRefusal } from './answer.ts';

/** How often an export is requested again. */
export const EXPORT_RETRY = {
  attempts: 5,
  /** Answers that may mean "too big" before the request is split. */
  splitAfter: 3,
  /** Bodies malformed at the same place in the same way before the last is kept for inspection and the run fails. */
  malformedAfter: 3,
  /** Refusals for quota before the run fails; the quota itself waits before each request. */
  waits: 50,
  baseMs: 1_000,
  capMs: 120_000,
} as const satisfies RetryPolicy & Record<string, number>;

/** A refusal, or a body that was broken, which is treated as one. */
export type Refusal = Pick<ExportRefusal, 'kind' | 'code' | 'message'>;

/** `again`: the same request, now; else what the caller has to find an answer to. */
type AfterRefusal = 'again' | 'too_big' | 'gone' | 'invalid';

interface ExportRetryOptions {
  /** The export in messages: `2026-01-01`. */
  readonly name: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly signal: AbortSignal;
}

/** Counts the requests of one export, and decides after each refusal whether there is another one. */
export class ExportRetries {
  readonly #options: ExportRetryOptions;
  #attempt = 0;
  #waits = 0;
  #maybeTooBig = 0;

  constructor(options: ExportRetryOptions) {
    this.#options = options;
  }

  /** The attempt that was begun last, from 1; refusals for quota are not counted. */
  get attempt(): number {
    return this.#attempt;
  }

  /** Requests sent. */
  get requests(): number {
    return this.#attempt + this.#waits;
  }

  get isLast(): boolean {
    return this.#attempt >= EXPORT_RETRY.attempts;
  }

  /** For a failure, and for a line of the log. */
  get where() {
    return { window: this.#options.name, attempt: this.#attempt };
  }

  /** To be called before each request. Throws the signal's reason. */
  begin(): void {
    this.#options.signal.throwIfAborted();
    this.#attempt++;
  }

  /**
   * Pauses if the export is to be requested again. Throws a UserError when the user must act, or when all attempts were made.
   * `splitAfter`: answers that may mean "too big" before it is `too_big`.
   */
  async after({ kind, code, message }: Refusal, splitAfter: number = EXPORT_RETRY.splitAfter): Promise<AfterRefusal> {
    switch (kind) {
      case 'gone':
      case 'invalid':
        return kind;
      case 'config':
        throw configError(message, { where: this.where, internal: code });
      case 'wait':
        return this.#waitForQuota(message);
      case 'retry_or_split':
        if (++this.#maybeTooBig < splitAfter) return this.#pause(code, message);
        this.#warnOfSplit(code, message);
        return 'too_big';
      case 'retry':
        return this.#pause(code, message);
    }
  }

  /** The quota knows of the refusal: it lets the next request wait. */
  #waitForQuota(message: string): 'again' {
    const { name, logger } = this.#options;
    this.#attempt--;
    this.#waits++;
    if (this.#waits >= EXPORT_RETRY.waits) {
      throw transientError(`${name}: ${message} Asked ${this.#waits} times; run again later.`);
    }
    const fields = { window: name, wait: this.#waits };
    logger.info('window.wait', `${name}: ${message} It is requested again as soon as that allows.`, fields);
    return 'again';
  }

  async #pause(code: string, message: string): Promise<'again'> {
    const { name, clock, random, logger, signal } = this.#options;
    const why = withCode(message, code);
    if (this.isLast) {
      throw transientError(
        `The export of ${name} failed ${this.#attempt} times, at last because ${why}; nothing of it was stored, run again later.`,
        { where: this.where, internal: code },
      );
    }
    const pause = pauseAfter(this.#attempt, EXPORT_RETRY, random);
    const text = `${name}, attempt ${this.#attempt} of ${EXPORT_RETRY.attempts}: ${why}; again in ${formatDuration(pause)}.`;
    logger.warn('window.retry', text, { ...this.where, cause: code, pause_ms: pause });
    await clock.sleep(pause, signal);
    return 'again';
  }

  #warnOfSplit(code: string, message: string): void {
    const { name, logger } = this.#options;
    const why = withCode(message, code);
    const text = `${name}, attempt ${this.#attempt}: ${why} again and again; a smaller export is requested next.`;
    logger.warn('window.split', text, { ...this.where, cause: code });
  }
}

/** Appends the code, by which a user can search, unless the message contains it. */
const withCode = (message: string, code: string): string =>
  message.includes(`(${code})`) ? message : `${message} (${code})`;
