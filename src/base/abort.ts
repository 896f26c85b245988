import { setMaxListeners } from 'node:events';

/**
 * Calls `listener` when the signal aborts, at once if it already has; the result removes the listener. A whole run
 * shares one signal, so Node's warning about many listeners is turned off for it.
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

/** Settles as `work` does; once the signal aborts, rejects with its reason, even where `work` never settles. */
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
