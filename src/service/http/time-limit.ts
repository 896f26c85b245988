import type { Clock } from '../../base/clock.ts';
import { abortable, onAbort } from './on-abort.ts';

/** The time for a request is over. */
export class TimeLimitReached extends Error {
  readonly code = 'ETIMEDOUT';
}

/**
 * Does work for `ms` at most: rejects then with TimeLimitReached, or with the reason of `signal` when that aborts first.
 * (Not `AbortSignal.any` with `AbortSignal.timeout`: Node 20 collects the latter as garbage, and it never fires.)
 */
export async function withinTime<T>(
  ms: number,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const limit = new AbortController();
  const unlink = onAbort(signal, () => limit.abort(signal.reason));
  const cancel = clock.after(ms, () => limit.abort(new TimeLimitReached('the time limit is reached')));
  try {
    return await abortable(work(limit.signal), limit.signal);
  } finally {
    cancel();
    unlink();
  }
}
