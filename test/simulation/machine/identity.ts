import type { Liveness, ProcessIdentity } from '../../../src/fs/process-identity.ts';
import { current, type MachineProcess } from './process.ts';

const SPACE = 'simulated';
const known = new Map<number, MachineProcess>();

/** Replaces the identity of the process by that of the simulated process that asks for it. */
export const simulatedIdentity = (real: ProcessIdentity): ProcessIdentity => ({
  get pid() {
    const process = current();
    if (process !== undefined) known.set(process.pid, process);
    return process?.pid ?? real.pid;
  },
  host: real.host,
  get space() {
    return current() === undefined ? real.space : SPACE;
  },
  started: real.started,
});

/** Whether a process of the simulation lives; undefined for any other. */
export function simulatedLiveness({ pid, space }: ProcessIdentity): Liveness | undefined {
  if (space !== SPACE) return undefined;
  return known.get(pid)?.isDead === false ? 'alive' : 'dead';
}

/** No process of an earlier simulation lives. */
export function forgetProcesses(): void {
  known.clear();
}
