import { setMaxListeners } from 'node:events';
import type { Clock } from '../../base/clock.ts';

/**
 * Calls `listener` when the signal aborts, at once if it already has; returns a function that removes the listener. One
 * signal is shared by a whole run, so Node's warning about many listeners (a presumed leak) is turned off for it.
 */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  if (signal.aborted) {
    listener();
    return () => {};
  }
  setMaxListeners(0, signal);
  signal.addEventListener('abort', listener, { once: true });
  return () => signal.removeEventListener('abort', listener);
}

/** Settles as `work` does, but rejects with the signal's reason as soon as it aborts, even where `work` never settles. */
export async function abortable<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let unlink = () => {};
  const aborted = new Promise<never>((_, reject) => {
    unlink = onAbort(signal, () => reject(signal.reason));
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    unlink();
  }
}

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
