// Who may read and change files: owners, modes, the umask.

import { randomUUID } from 'node:crypto';
import { chmodSync, closeSync, fstatSync, openSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { codeOf } from '../base/errors.ts';

export const OWNER_FOLDER = 0o700;
export const OWNER_FILE = 0o600;
/** The bits of a mode that say who may do what. */
export const PERMISSIONS = 0o777;
/** The bits of group and others. */
export const OTHERS = 0o077;

/** True for an owner who is neither this user nor root, also for root; false where files have no owners. */
export function isForeign(uid: number): boolean {
  const user = process.getuid?.();
  return user !== undefined && uid !== user && uid !== 0;
}

/** True for an owner that this process trusts: its own user or root, as for a container's volume; root trusts all. */
export const isTrustedOwner = (uid: number): boolean => process.getuid?.() === 0 || !isForeign(uid);

const WITHOUT_MODES: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS']);
let withoutModes: string | undefined;

/** The first folder in which this process could set no mode; undefined if there was none. */
export const folderWithoutModes = (): string | undefined => withoutModes;

/** Sets the mode of a file of this user, where the file system keeps modes: SMB, exFAT and others do not. */
export function setMode(path: string, mode: number): void {
  try {
    chmodSync(path, mode);
  } catch (error) {
    if (!WITHOUT_MODES.has(codeOf(error) ?? '')) throw error;
    withoutModes ??= resolve(dirname(path));
  }
}

/** False if a new file for this user alone is open to others: then modes say nothing about this folder. */
export function keepsModes(folder: string): boolean {
  const probe = join(folder, `.modes-${randomUUID()}`);
  let descriptor: number | undefined;
  try {
    descriptor = openSync(probe, 'wx', OWNER_FILE);
    if ((fstatSync(descriptor).mode & OTHERS) === 0) return true;
  } catch {
    // Without the right to write here nothing is known, and modes are believed.
    return true;
  } finally {
    if (descriptor !== undefined) {
      closeSync(descriptor);
      rmSync(probe, { force: true });
    }
  }
  withoutModes ??= resolve(folder);
  return false;
}

let umaskHolders = 0;
let umaskBefore: number | undefined;

/**
 * Sets a umask of the owner alone while at least one caller holds it: DuckDB creates files by itself. Returns a
 * function that releases the hold, once. A worker thread cannot set the umask: that of the process stays.
 */
export function holdPrivateUmask(): () => void {
  if (umaskHolders++ === 0) umaskBefore = setUmask(OTHERS);
  let isHeld = true;
  return () => {
    if (!isHeld) return;
    isHeld = false;
    if (--umaskHolders === 0 && umaskBefore !== undefined) setUmask(umaskBefore);
  };
}

function setUmask(mask: number): number | undefined {
  try {
    return process.umask(mask);
  } catch {
    return undefined;
  }
}
