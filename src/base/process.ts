import { constants } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import type { Clock } from './clock.ts';

const STOP_SIGNALS: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT'];
const STOP_GRACE_MS = 4_500;

/** Why a run was aborted by a signal; the reason of the run's AbortSignal. */
export class Stopped extends Error {
  readonly signal: NodeJS.Signals;

  constructor(signal: NodeJS.Signals) {
    super(`stopped by ${signal}`);
    this.name = 'Stopped';
    this.signal = signal;
  }
}

/**
 * Runs `work`, and ends the process at once with the exit code that it gives: all output must be flushed by then. On
 * SIGTERM or SIGINT its signal aborts. The process then ends by that same signal, so that its parent sees it. It does
 * so once the work has ended, at most 4.5 s later. A second signal ends it at once.
 */
export async function runUntilStopped(work: (signal: AbortSignal) => Promise<number>, clock: Clock): Promise<void> {
  const controller = new AbortController();
  let stoppedBy: NodeJS.Signals | undefined;
  const stop = (name: NodeJS.Signals) => {
    if (stoppedBy !== undefined) return dieBySignal(name);
    stoppedBy = name;
    controller.abort(new Stopped(name));
    clock.after(STOP_GRACE_MS, () => dieBySignal(name));
  };
  for (const name of STOP_SIGNALS) process.on(name, stop);
  // Work that waits for something that never comes ends with the process, and must not look done.
  process.exitCode = 1;
  try {
    const exitCode = await work(controller.signal);
    if (stoppedBy === undefined) process.exit(exitCode);
  } finally {
    for (const name of STOP_SIGNALS) process.off(name, stop);
    if (stoppedBy !== undefined) dieBySignal(stoppedBy);
  }
}

/** Ends the process by the default action of a signal, so that its parent sees the signal. */
function dieBySignal(signal: NodeJS.Signals): void {
  process.removeAllListeners(signal);
  // A signal does not end the first process of a container: it ends with the shell's code for that signal.
  if (process.pid === 1) process.exit(128 + constants.signals[signal]);
  process.kill(process.pid, signal);
}

/**
 * Lets the heap grow to five times its used part before V8 collects all garbage. V8 counts received bytes as growth of
 * the heap. The heap is small here (12 MB), so V8 collected it 35 times while 300 MB arrived. That took a tenth of the
 * processor time of a load (Node 20). Only programs call it, not the library, since it concerns the whole process.
 */
export const letHeapGrow = (): void => setFlagsFromString('--heap-growing-percent=400');
