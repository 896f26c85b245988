import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { codeOf } from '../base/errors.ts';

/** Distinguishes a process from all that may share a folder with it, in any container and on any machine. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Name of the host; two containers, or two machines, may share one. */
  readonly host: string;
  /** Boot and namespace in which `pid` means this process; empty if the system does not provide it. */
  readonly pidSpace: string;
  /** Start time in the system's ticks, since process ids are used again. Empty if the system does not provide it. */
  readonly started: string;
}

/** The identity that a file holds; of a file of another version, or one that is just being written, perhaps nothing. */
export type StoredIdentity = { readonly [member in keyof ProcessIdentity]?: unknown };

export const THIS_PROCESS: ProcessIdentity = {
  pid: process.pid,
  host: hostname(),
  pidSpace: findPidSpace(),
  started: readStatus('self')?.started ?? '',
};

/**
 * Tells whether a process lives, as far as that can be proved from here: not of another machine, boot or container.
 * Without /proc, as on macOS and Windows, only the host is compared. Machines that share a folder then need different
 * names. An id in use may be that of a later process, so its liveness is unknown.
 */
export function livenessOf({ pid, host, pidSpace, started }: StoredIdentity): 'alive' | 'dead' | 'unknown' {
  if (typeof pid !== 'number' || pidSpace !== THIS_PROCESS.pidSpace || host !== THIS_PROCESS.host) return 'unknown';
  if (!isRunning(pid)) return 'dead';
  const status = readStatus(String(pid));
  if (status === undefined || typeof started !== 'string' || started === '') return 'unknown';
  return status.hasEnded || status.started !== started ? 'dead' : 'alive';
}

/** True if a process exists, also if this user may not signal it. */
function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === 'EPERM';
  }
}

/** Status of a process from /proc, if it is readable. One that has ended may wait for its parent. */
function readStatus(pid: string): { readonly started: string; readonly hasEnded: boolean } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // After the command's name, which may hold anything: the state is field 3, the start time field 22.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return { started: fields[19] ?? '', hasEnded: fields[0] === 'Z' || fields[0] === 'X' };
  } catch {
    return undefined;
  }
}

/** Identifies the boot and the namespace of process ids. */
function findPidSpace(): string {
  try {
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()} ${readlinkSync('/proc/self/ns/pid')}`;
  } catch {
    return '';
  }
}
