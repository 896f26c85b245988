// The limits of the Export group, in this process: this file holds exports back, and shows waits.

import pLimit from 'p-limit';
import { transientError } from '../../base/errors.ts';
import { formatDuration } from '../../base/quantities.ts';
import type { Runtime } from '../../base/runtime.ts';
import { afterAnswer, afterSending, nextAllowedAt, type QuotaAnswer, type QuotaState } from './quota-rules.ts';

export interface ExportQuotaOptions extends Pick<Runtime, 'clock' | 'logger'> {
  readonly maxConcurrentExports: number;
  /** Longest wait (ms); one that would be longer is refused. */
  readonly maxWaitMs?: number | undefined;
  /** Called with the end (ms since 1970) of every wait that is shown, and with undefined when it is over. */
  readonly onWait?: ((until: number | undefined) => void) | undefined;
}

/** Minimum length of a wait that is shown to the user. */
const SHOWN_WAIT_MS = 5_000;

export class ExportQuota {
  readonly #options: ExportQuotaOptions;
  readonly #slots: ReturnType<typeof pLimit>;
  /** Exports that have a slot wait one after the other for the service to allow them. */
  readonly #queue = pLimit(1);
  #state: QuotaState = { refusedUntil: 0, refusals: 0 };

  constructor(options: ExportQuotaOptions) {
    this.#options = options;
    this.#slots = pLimit(options.maxConcurrentExports);
  }

  /**
   * Calls `send` when an export may be sent, in the order of the calls, and counts it as running until that settles.
   * Rejects as `send` does, with the signal's reason, or with a transient UserError that names the wait if it is longer
   * than allowed.
   */
  run<T>(signal: AbortSignal, send: () => Promise<T>): Promise<T> {
    return this.#slots(async () => {
      await this.#queue(async () => {
        await this.#waitUntilAllowed(signal);
        this.#state = afterSending(this.#state);
      });
      return send();
    });
  }

  /** Takes what an answer says, before its export has ended. */
  record(answer: QuotaAnswer): void {
    this.#state = afterAnswer(this.#state, answer, this.#options.clock.now());
  }

  async #waitUntilAllowed(signal: AbortSignal): Promise<void> {
    const { clock, logger, maxWaitMs = Number.POSITIVE_INFINITY, onWait } = this.#options;
    let shownUntil: number | undefined;
    try {
      for (;;) {
        signal.throwIfAborted();
        const now = clock.now();
        const until = nextAllowedAt(this.#state, now);
        if (until === undefined) return;
        const waitMs = until - now;
        const untilText = new Date(until).toISOString();
        if (waitMs > maxWaitMs) {
          const message =
            `The limit of exports is reached and the next may be sent at ${untilText}, in ${formatDuration(waitMs)}: ` +
            `longer than this run waits (${formatDuration(maxWaitMs)}). Run again then.`;
          throw transientError(message, { detail: 'quota: the wait is longer than allowed' });
        }
        if (waitMs >= SHOWN_WAIT_MS && until !== shownUntil) {
          shownUntil = until;
          const message = `The limit of exports is reached: the next is sent at ${untilText}, in ${formatDuration(waitMs)}.`;
          logger.warn('quota.wait', message, { until: untilText });
          onWait?.(until);
        }
        await clock.sleep(waitMs, signal);
      }
    } finally {
      if (shownUntil !== undefined) onWait?.(undefined);
    }
  }
}
