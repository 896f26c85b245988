import type { Clock } from '../base/clock.ts';
import type { DeletionAnswer } from '../service/deletion-client.ts';

const MINUTE_MS = 60_000;
/** Pauses are longer than the rate requires by this factor, so that no minute contains one too many. */
const SLACK = 1.01;
/** A reset that is further away than this is not believed. */
const MAX_RESET_MS = 60 * MINUTE_MS;

/**
 * Decides when the next request may be sent. Requests are evenly spread, below the rate. None is sent while the limit
 * of the service is used up. Shared by all workers.
 */
export class RateLimiter {
  readonly #clock: Clock;
  readonly #spacingMs: number;
  #nextDue = Number.NEGATIVE_INFINITY;
  #pausedUntil = 0;

  constructor(clock: Clock, requestsPerMinute: number) {
    this.#clock = clock;
    this.#spacingMs = (MINUTE_MS / requestsPerMinute) * SLACK;
  }

  /** Time (ms) during which nothing is sent; 0 when sending is allowed. */
  get pausedMs(): number {
    return Math.max(0, this.#pausedUntil - this.#clock.now());
  }

  /** Resolves when the next request may be sent; rejects with the signal's reason. */
  async waitForTurn(signal: AbortSignal): Promise<void> {
    do {
      signal.throwIfAborted();
      if (this.pausedMs > 0) await this.#clock.sleep(this.pausedMs, signal);
      const now = this.#clock.now();
      const due = Math.max(this.#nextDue, now);
      this.#nextDue = due + this.#spacingMs;
      if (due > now) await this.#clock.sleep(due - now, signal);
    } while (this.pausedMs > 0);
  }

  /** Learns from an answer: nothing is sent before the reset once the limit is used up. */
  noteLimits({ kind, quotaReport }: DeletionAnswer): void {
    if (kind !== 'wait' && quotaReport.remaining !== 0) return;
    const now = this.#clock.now();
    const credibleTimes = [quotaReport.resetAt ?? 0, quotaReport.retryAt ?? 0].filter((at) => at <= now + MAX_RESET_MS);
    const resumeAt = Math.max(...credibleTimes, 0);
    this.#pausedUntil = Math.max(this.#pausedUntil, resumeAt > now ? resumeAt : now + MINUTE_MS);
  }
}
