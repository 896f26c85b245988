import type { Clock } from '../base/clock.ts';

/** The limits of the two groups of operations: the cycle as the headers name it, and its length. */
export const CYCLES = { export: { cycle: '1h', ms: 3_600_000 }, delete: { cycle: '1m', ms: 60_000 } } as const;

/** Counts the requests of one group in cycles, each of which begins with its first request. */
export class RequestLimit {
  readonly #clock: Clock;
  readonly #most: number | undefined;
  readonly #cycle: (typeof CYCLES)[keyof typeof CYCLES];
  #began = 0;
  #count = 0;

  constructor(clock: Clock, operation: keyof typeof CYCLES, most: number | undefined) {
    this.#clock = clock;
    this.#cycle = CYCLES[operation];
    this.#most = most;
  }

  /** Counts a request; false if the limit is reached. */
  take(): boolean {
    this.#begin();
    if (this.#most !== undefined && this.#count >= this.#most) return false;
    this.#count++;
    return true;
  }

  #begin(): void {
    const now = this.#clock.now();
    if (now < this.#began + this.#cycle.ms) return;
    this.#began = now;
    this.#count = 0;
  }

  /** The limit headers; none if there is no limit. */
  headers(): Record<string, string> {
    if (this.#most === undefined) return {};
    this.#begin();
    return {
      'x-ratelimit-limit': this.#cycle.cycle,
      'x-ratelimit-remaining': String(Math.max(0, this.#most - this.#count)),
      'x-ratelimit-reset': String(this.#began + this.#cycle.ms),
    };
  }
}
