import type { Clock } from '../base/clock.ts';
import { DAY_MS } from '../base/durations.ts';
import type { DestinationConfig } from '../config/destination.ts';
import type { DeletionAnswer } from '../service/delete/client.ts';
import { allowedFrom } from '../service/http/headers.ts';

const MINUTE_MS = 60_000;
/** Factor by which sends are further apart than the rate requires, so that no minute ever contains one too many. */
const SLACK = 1.01;
/** Maximum delay of a send that later sends may catch up on. */
const CATCH_UP_MS = 50;
/** The share of the service's quota that is left to others: it is shared with live imports. */
const RESERVE = 0.2;
const UNKNOWN_RESET_MS = MINUTE_MS;
const MAX_RESET_MS = 400 * DAY_MS;

export type RateLimits = Pick<DestinationConfig, 'requestsPerMinute' | 'maxConcurrentRequests'>;

/**
 * Decides when the next request may be sent: evenly spread, below the rate, without using the reserve of the quota, and
 * not while the service's limit is exhausted. Shared by all workers.
 */
export class RateLimiter {
  readonly #clock: Clock;
  readonly #limits: RateLimits;
  readonly #gapMs: number;
  /** The instants of the next turn and of the next send. */
  readonly #turns = { next: Number.NEGATIVE_INFINITY };
  readonly #sends = { next: Number.NEGATIVE_INFINITY };
  #pausedUntil = 0;
  /** The last reading of the machine's clock, and the time by which it was set back in all. */
  #lastClock = Number.NEGATIVE_INFINITY;
  #setBackMs = 0;
  #waits = 0;
  #active = 0;
  #waiters: (() => void)[] = [];
  /** The latest remaining quota, and the largest one seen, which is assumed to be the whole quota. */
  #remaining: number | undefined;
  #resetAt: number | undefined;
  #quota = 0;

  constructor(clock: Clock, limits: RateLimits) {
    this.#clock = clock;
    this.#limits = limits;
    this.#gapMs = (MINUTE_MS / limits.requestsPerMinute) * SLACK;
  }

  /** How often the service said to wait; the answers of requests that were in progress together count as one. */
  get waits(): number {
    return this.#waits;
  }

  /** Time (ms) during which nothing is sent; 0 when sending is allowed. */
  get pausedMs(): number {
    return Math.max(0, this.#pausedUntil - this.#now());
  }

  /**
   * Resolves when a request may be announced: when it could be sent, so that a killed run leaves few requests in doubt.
   */
  waitForTurn(signal: AbortSignal): Promise<void> {
    return this.#paced(this.#turns, signal);
  }

  /** Resolves when one more request may go out at once; every `acquire` that resolves needs its `release`. */
  async acquire(signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.#whenAllowed(signal);
      if (this.#active < this.#limits.maxConcurrentRequests) break;
      await new Promise<void>((resolve) => this.#waiters.push(resolve));
    }
    this.#active++;
    try {
      await this.#paced(this.#sends, signal);
    } catch (error) {
      this.release(undefined);
      throw error;
    }
  }

  release(answer: DeletionAnswer | undefined): void {
    this.#active--;
    if (answer) this.#observe(answer);
    this.#waiters.shift()?.();
  }

  /** Waits for the next of a series of instants, as far apart as the rate requires, outside of pauses. */
  async #paced(instants: { next: number }, signal: AbortSignal): Promise<void> {
    do {
      await this.#whenAllowed(signal);
      const now = this.#now();
      const due = Math.max(instants.next, now - CATCH_UP_MS);
      instants.next = due + this.#gapMs;
      if (due > now) await this.#clock.sleep(due - now, signal);
    } while (this.pausedMs > 0);
  }

  async #whenAllowed(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    for (let left = this.pausedMs; left > 0; left = this.pausedMs) {
      await this.#clock.sleep(left, signal);
    }
  }

  #observe({ kind, limits }: DeletionAnswer): void {
    const { remaining } = limits;
    const now = this.#now();
    const ownInstant = (at: number | undefined) => (at === undefined ? undefined : at + this.#setBackMs);
    if (kind === 'wait') {
      if (now >= this.#pausedUntil) this.#waits++;
      this.#pause(ownInstant(allowedFrom(limits)), now);
      return;
    }
    const resetAt = ownInstant(limits.resetAt);
    if (remaining === undefined) return;
    const isSameCycle = resetAt === this.#resetAt && this.#remaining !== undefined;
    // Answers may arrive out of order: within a cycle the smallest remaining quota counts.
    this.#remaining = isSameCycle ? Math.min(this.#remaining ?? remaining, remaining) : remaining;
    this.#resetAt = resetAt;
    this.#quota = Math.max(this.#quota, remaining + 1);
    const free = this.#remaining - this.#active;
    // The reserve is at most what the configured rate leaves of the quota: 9,500 of 10,000 are intended. A rate above
    // the quota does not lower it.
    const beside = this.#quota - this.#limits.requestsPerMinute;
    const share = this.#quota * RESERVE;
    const reserve = beside < 0 ? share : Math.min(share, beside);
    if (free <= 0 || free < reserve) this.#pause(resetAt, now);
  }

  /** The time (ms), which never goes backward: a clock that is set back must not delay the next request. */
  #now(): number {
    const clock = this.#clock.now();
    if (clock < this.#lastClock) this.#setBackMs += this.#lastClock - clock;
    this.#lastClock = clock;
    return clock + this.#setBackMs;
  }

  #pause(resetAt: number | undefined, now: number): void {
    const isKnown = resetAt !== undefined && resetAt > now && resetAt - now < MAX_RESET_MS;
    this.#pausedUntil = Math.max(this.#pausedUntil, isKnown ? resetAt : now + UNKNOWN_RESET_MS);
    this.#remaining = undefined;
  }
}
