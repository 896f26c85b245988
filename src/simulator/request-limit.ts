import type { Clock } from '../base/clock.ts';

/** The cycle of a limit as the headers name it, and its length. */
interface Cycle {
  readonly name: string;
  readonly ms: number;
}

/** Counts the requests of one group in cycles. A new one begins with the first request or answer after the last. */
export class RequestLimit {
  readonly #clock: Clock;
  readonly #limit: number | undefined;
  readonly #cycle: Cycle;
  #cycleStart = 0;
  #count = 0;

  constructor(clock: Clock, cycle: Cycle, limit: number | undefined) {
    this.#clock = clock;
    this.#cycle = cycle;
    this.#limit = limit;
  }

  /** Counts a request; false if the limit is reached. */
  take(): boolean {
    this.#beginCycle();
    if (this.#limit !== undefined && this.#count >= this.#limit) return false;
    this.#count++;
    return true;
  }

  #beginCycle(): void {
    const now = this.#clock.now();
    if (now < this.#cycleStart + this.#cycle.ms) return;
    this.#cycleStart = now;
    this.#count = 0;
  }

  /** The limit headers; none if there is no limit. */
  headers(): Record<string, string> {
    if (this.#limit === undefined) return {};
    this.#beginCycle();
    return {
      'x-ratelimit-limit': this.#cycle.name,
      'x-ratelimit-remaining': String(Math.max(0, this.#limit - this.#count)),
      'x-ratelimit-reset': String(this.#cycleStart + this.#cycle.ms),
    };
  }
}
