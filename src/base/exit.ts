import { constants } from 'node:os';

/** Ends the process by the default action of a signal, so that its parent sees the signal. */
export function dieBySignal(signal: NodeJS.Signals): void {
  process.removeAllListeners(signal);
  // The first process of a container is spared by signals that it does not handle: it ends with the shell's code for them.
  if (process.pid === 1) process.exit(128 + constants.signals[signal]);
  process.kill(process.pid, signal);
}

/** Ends the process at once; call it only after all output is flushed. */
export function endNow(code: number): void {
  process.exit(code);
}
