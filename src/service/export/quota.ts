// The limits of the Export group, in this process: this file gives permits, waits and shows waits.

import pLimit from 'p-limit';
import { abortable } from '../../base/abort.ts';
import type { Clock } from '../../base/clock.ts';
import { transientError } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import { formatDuration } from '../../base/quantities.ts';
import { type AnswerHead, afterAnswer, afterSending, NO_QUOTA, nextAllowedAt, type QuotaState } from './quota-rules.ts';

/** The permission to send one export; it counts as running until it is released. */
export interface Permit {
  /** Records the head of the answer; called before `release`. */
  recordAnswer(head: AnswerHead): void;
  /** Records that the connection is closed; may be called again. */
  release(): void;
}

export interface ExportQuotaOptions {
  readonly maxConcurrentExports: number;
  readonly clock: Clock;
  readonly logger: Logger;
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
  #state: QuotaState = NO_QUOTA;
  #shownWait: number | undefined;

  constructor(options: ExportQuotaOptions) {
    this.#options = options;
    this.#slots = pLimit(options.maxConcurrentExports);
  }

  /**
   * Resolves when an export may be sent, in the order of the calls. Rejects with the signal's reason, or with a
   * transient UserError that names the wait if it is longer than allowed.
   */
  async enter(signal: AbortSignal): Promise<Permit> {
    signal.throwIfAborted();
    const admitted = new Promise<Permit>((resolve, reject) => {
      const useSlot = async () => {
        const { permit, released } = await this.#queue(() => this.#admit(signal));
        resolve(permit);
        await released;
      };
      this.#slots(useSlot).catch(reject);
    });
    try {
      return await abortable(admitted, signal);
    } catch (error) {
      // The export may have been admitted when the signal aborted: nobody will use the permit.
      void admitted.then((permit) => permit.release()).catch(() => {});
      throw error;
    }
  }

  /** Waits until an export may be sent, and counts it as sent. `released` resolves when its connection is closed. */
  async #admit(signal: AbortSignal): Promise<{ readonly permit: Permit; readonly released: Promise<void> }> {
    const { clock } = this.#options;
    await this.#waitUntilAllowed(signal);
    this.#state = afterSending(this.#state, clock.now());
    let release = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const recordAnswer = (head: AnswerHead) => {
      this.#state = afterAnswer(this.#state, head, clock.now());
    };
    return { permit: { recordAnswer, release }, released };
  }

  async #waitUntilAllowed(signal: AbortSignal): Promise<void> {
    const { clock, maxWaitMs = Number.POSITIVE_INFINITY } = this.#options;
    try {
      for (;;) {
        signal.throwIfAborted();
        const now = clock.now();
        const until = nextAllowedAt(this.#state, now);
        if (until === undefined) return;
        if (until - now > maxWaitMs) throw tooLong(until, until - now, maxWaitMs);
        if (until - now >= SHOWN_WAIT_MS) this.#showWait(until);
        await clock.sleep(until - now, signal);
      }
    } finally {
      this.#showWait(undefined);
    }
  }

  #showWait(until: number | undefined): void {
    if (until === this.#shownWait) return;
    this.#shownWait = until;
    const { logger, clock, onWait } = this.#options;
    if (until !== undefined) {
      const [at, wait] = [new Date(until).toISOString(), formatDuration(until - clock.now())];
      const message = `The limit of exports is reached: the next is sent at ${at}, in ${wait}.`;
      logger.warn('quota.wait', message, { until: at });
    }
    onWait?.(until);
  }
}

const tooLong = (at: number, wait: number, maxWaitMs: number) =>
  transientError(
    `The limit of exports is reached and the next may be sent at ${new Date(at).toISOString()}, in ${formatDuration(wait)}: ` +
      `longer than this run waits (${formatDuration(maxWaitMs)}). Run again then.`,
    { technical: 'quota: the wait is longer than allowed' },
  );
