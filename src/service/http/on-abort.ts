import { setMaxListeners } from 'node:events';

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
