import { constants } from 'node:os';

/** Ends by the default action of a signal, so that whoever waits sees how we died. */
export function dieBySignal(signal: NodeJS.Signals): void {
  process.removeAllListeners(signal);
  // The first process of a container is spared by signals that it does not handle: it ends with the shell's code for them.
  if (process.pid === 1) process.exit(128 + constants.signals[signal]);
  process.kill(process.pid, signal);
}

/** Ends at once, whatever is still open: only after everything that was said has been taken by the system. */
export function endNow(code: number): void {
  process.exit(code);
}
