import type { Clock } from '../../base/clock.ts';
import type { DeletionAnswer } from '../../service/delete/answer.ts';

const MINUTE_MS = 60_000;
/** Sends are set this much further apart than the rate asks, so that no minute ever holds one too many. */
const SLACK = 1.01;
/** How late a send may be and still be made up for. */
const CATCH_UP_MS = 50;
/** The share of the service's quota that is left to others: it is shared with live imports. */
const RESERVE = 0.2;
/** A pause where the service does not say when its limit resets. */
const UNKNOWN_RESET_MS = MINUTE_MS;
/** A reset further away than this is no reset. */
const LONGEST_RESET_MS = 400 * 24 * 60 * MINUTE_MS;

export interface RateLimits {
  readonly requestsPerMinute: number;
  readonly maxConcurrent: number;
}

/** Instants as far apart as the rate asks: a minute, wherever it begins, never holds more of them than that. */
class Spacing {
  readonly #gapMs: number;
  #next = Number.NEGATIVE_INFINITY;

  constructor(perMinute: number) {
    this.#gapMs = (MINUTE_MS / perMinute) * SLACK;
  }

  /** Takes the next instant; how many ms it lies ahead of `now`. */
  take(now: number): number {
    const due = Math.max(this.#next, now - CATCH_UP_MS);
    this.#next = due + this.#gapMs;
    return due - now;
  }
}

/**
 * When the next request may go out: evenly spread, never over the rate, never into the reserve, not at all while the
 * service's limit is exhausted. All workers ask the same limiter.
 */
export class RateLimiter {
  readonly #clock: Clock;
  readonly #limits: RateLimits;
  readonly #turns: Spacing;
  /** Kept apart from the turns: who waits after their turn, for a pause or a slot, must not come all at once. */
  readonly #sends: Spacing;
  #turn: Promise<void> = Promise.resolve();
  #pausedUntil = 0;
  #active = 0;
  #waiters: (() => void)[] = [];
  /** The quota as last heard of, and the largest seen: what it is when it is whole. */
  #remaining: number | undefined;
  #resetAt: number | undefined;
  #quota = 0;

  constructor(clock: Clock, limits: RateLimits) {
    this.#clock = clock;
    this.#limits = limits;
    this.#turns = new Spacing(limits.requestsPerMinute);
    this.#sends = new Spacing(limits.requestsPerMinute);
  }

  /** Instant (ms) until which nothing is sent; in the past when sending is allowed. */
  get pausedUntil(): number {
    return this.#pausedUntil;
  }

  /** Resolves when it is the caller's turn by the rate. Turns are given in the order of the calls. */
  waitForTurn(signal: AbortSignal): Promise<void> {
    const mine = this.#turn.then(() => this.#wait(this.#turns, signal));
    this.#turn = mine.catch(() => {});
    return mine;
  }

  /** Resolves when one more request may go out at once; every `acquire` that resolves needs its `release`. */
  async acquire(signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.#whenAllowed(signal);
      if (this.#active < this.#limits.maxConcurrent) break;
      await new Promise<void>((resolve) => this.#waiters.push(resolve));
    }
    this.#active++;
    try {
      do await this.#wait(this.#sends, signal);
      while (this.#pausedUntil > this.#clock.now());
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

  async #wait(spacing: Spacing, signal: AbortSignal): Promise<void> {
    await this.#whenAllowed(signal);
    const ahead = spacing.take(this.#clock.now());
    if (ahead > 0) await this.#clock.sleep(ahead, signal);
    else signal.throwIfAborted();
  }

  async #whenAllowed(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    for (let left = this.#pausedUntil - this.#clock.now(); left > 0; left = this.#pausedUntil - this.#clock.now()) {
      await this.#clock.sleep(left, signal);
    }
  }

  #observe({ kind, limits }: DeletionAnswer): void {
    const { remaining, resetAt } = limits;
    const now = this.#clock.now();
    if (kind === 'wait') this.#pause(resetAt, now);
    if (kind === 'wait' || remaining === undefined) return;
    const isSameCycle = resetAt === this.#resetAt && this.#remaining !== undefined;
    // Answers overtake each other: within a cycle only the least says how much is left.
    this.#remaining = isSameCycle ? Math.min(this.#remaining ?? remaining, remaining) : remaining;
    this.#resetAt = resetAt;
    this.#quota = Math.max(this.#quota, remaining + 1);
    const free = this.#remaining - this.#active;
    if (free <= 0 || free < this.#reserve()) this.#pause(resetAt, now);
  }

  /**
   * Not more than what the user's own rate leaves of the quota: who sets 9,500 of 10,000 means it. A rate that no quota
   * so small could hold says nothing about it.
   */
  #reserve(): number {
    const share = this.#quota * RESERVE;
    const left = this.#quota - this.#limits.requestsPerMinute;
    return left < 0 ? share : Math.min(share, left);
  }

  #pause(resetAt: number | undefined, now: number): void {
    const isKnown = resetAt !== undefined && resetAt > now && resetAt - now < LONGEST_RESET_MS;
    this.#pausedUntil = Math.max(this.#pausedUntil, isKnown ? resetAt : now + UNKNOWN_RESET_MS);
    this.#remaining = undefined;
  }
}
