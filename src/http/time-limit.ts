import { abortable, onAbort } from '../base/abort.ts';
import type { Clock } from '../base/clock.ts';
import { transientError } from '../base/errors.ts';
import { formatDuration } from '../base/quantities.ts';
import type { Runtime } from '../base/runtime.ts';

/** Thrown when the time for an answer, or for its next bytes, is over. */
export class TimeLimitReached extends Error {
  readonly code = 'ETIMEDOUT';
  readonly afterMs: number;
  constructor(afterMs: number) {
    super(`the time limit of ${formatDuration(afterMs)} was reached`);
    this.afterMs = afterMs;
  }
}

/**
 * Aborts `signal` with `TimeLimitReached` after one wait of `limitMs`; each wait begins anew. Follows `callerSignal`.
 * In Node 20 an `AbortSignal.timeout` within an `AbortSignal.any` is collected as garbage, and then never fires.
 */
export class WaitLimit {
  readonly signal: AbortSignal;
  /** The caller's: it aborts for other reasons than the time. */
  readonly callerSignal: AbortSignal;
  /** Stops listening to the caller's signal. */
  readonly release: () => void;
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #controller = new AbortController();

  constructor(clock: Clock, limitMs: number, callerSignal: AbortSignal) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.callerSignal = callerSignal;
    this.signal = this.#controller.signal;
    this.release = onAbort(callerSignal, () => this.#controller.abort(callerSignal.reason));
  }

  /** Rejects with the signal's reason when it aborts, even if nothing arrives. */
  async waitFor<T>(arrival: Promise<T>): Promise<T> {
    const disarm = this.#clock.after(this.#limitMs, () => this.#controller.abort(new TimeLimitReached(this.#limitMs)));
    try {
      return await abortable(arrival, this.signal);
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
  { clock, signal }: Pick<Runtime, 'clock' | 'signal'>,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const waitLimit = new WaitLimit(clock, ms, signal);
  try {
    return await waitLimit.waitFor(work(waitLimit.signal));
  } finally {
    waitLimit.release();
  }
}

/** As `withinTime`; throws a transient failure with the sentence that `subject` did not come within the time. */
export async function requireWithin<T>(
  subject: string,
  ms: number,
  deps: Pick<Runtime, 'clock' | 'signal'>,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  try {
    return await withinTime(ms, deps, work);
  } catch (error) {
    if (!(error instanceof TimeLimitReached)) throw error;
    throw transientError(`${subject} did not come within ${formatDuration(error.afterMs)}.`);
  }
}
