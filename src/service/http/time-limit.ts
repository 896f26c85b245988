import { abortable, onAbort } from '../../base/abort.ts';
import type { Clock } from '../../base/clock.ts';
import { formatDuration } from '../../base/durations.ts';

/** Thrown when the time for an answer, or for its next bytes, is over. */
export class TimeLimitReached extends Error {
  readonly code = 'ETIMEDOUT';
  readonly afterMs: number;
  constructor(afterMs: number) {
    super(`nothing came for ${formatDuration(afterMs)}`);
    this.afterMs = afterMs;
  }
}

/** Bytes that must arrive within the time limit: a body that drips would otherwise never end. */
const SLOWEST_BYTES = 64 * 1024;

/**
 * Aborts `signal` with `TimeLimitReached` after a caller has waited for `ms` in all. Each `SLOWEST_BYTES` that arrive
 * begin the time anew. It also aborts when `caller` does. Node 20 collects an `AbortSignal.timeout` within an
 * `AbortSignal.any` as garbage, and then it never fires.
 */
export class IdleTimeout {
  readonly signal: AbortSignal;
  readonly #clock: Clock;
  readonly #ms: number;
  #remainingMs: number;
  #bytes = 0;
  readonly #controller = new AbortController();
  /** Stops listening to the caller. */
  readonly end: () => void;

  constructor(clock: Clock, ms: number, caller: AbortSignal) {
    this.#clock = clock;
    this.#ms = ms;
    this.#remainingMs = ms;
    this.signal = this.#controller.signal;
    this.end = onAbort(caller, () => this.#controller.abort(caller.reason));
  }

  /**
   * Rejects with the signal's reason when it aborts, even if nothing arrives. Without a size, any arrival is enough.
   */
  async waitFor<T>(arrival: Promise<T>, sizeOf: (arrived: T) => number = () => SLOWEST_BYTES): Promise<T> {
    const began = this.#clock.now();
    const disarm = this.#clock.after(this.#remainingMs, () => this.#controller.abort(new TimeLimitReached(this.#ms)));
    try {
      const arrived = await abortable(arrival, this.signal);
      this.#bytes += sizeOf(arrived);
      this.#remainingMs -= Math.max(0, this.#clock.now() - began);
      if (this.#bytes >= SLOWEST_BYTES) [this.#bytes, this.#remainingMs] = [0, this.#ms];
      return arrived;
    } catch (error) {
      throw this.signal.aborted ? this.signal.reason : error;
    } finally {
      disarm();
    }
  }
}

/** Runs work for at most `ms`, then rejects with TimeLimitReached; with the reason of `signal` if that aborts first. */
export async function withinTime<T>(
  ms: number,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const timeout = new IdleTimeout(clock, ms, signal);
  try {
    return await timeout.waitFor(work(timeout.signal));
  } finally {
    timeout.end();
  }
}
