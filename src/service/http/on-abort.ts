import { setMaxListeners } from 'node:events';

/**
 * Calls `listener` when the signal aborts, at once if it has; returns what takes it back. One signal runs through
 * everything here: many listeners on it are no leak, which Node would otherwise warn of on stderr.
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
