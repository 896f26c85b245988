import { randomUUID } from 'node:crypto';
import { chmodSync, closeSync, constants, fstatSync, lstatSync, mkdirSync, openSync, rmSync, statSync } from 'node:fs';
import { access } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { codeOf, configError } from '../base/errors.ts';
import { checkLocalPath } from './local-path.ts';
import { syncFolderNow } from './sync.ts';

export const OWNER_FOLDER = 0o700;
export const OWNER_FILE = 0o600;
/** The bits of a mode that say who may do what. */
export const PERMISSIONS = 0o777;
/** The bit of a folder by which new files in it get its group. */
const SHARED_GROUP = 0o2000;
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

/** Throws a configuration failure for a folder whose files cannot be replaced or removed. */
export async function checkWritable(folder: string): Promise<void> {
  await access(folder, constants.W_OK | constants.X_OK).catch((cause) => {
    throw configError(`${folder} cannot be written to: give its owner the right to. Nothing was changed.`, { cause });
  });
}

/** True for a folder, not a link, that belongs to this user and that nobody else may look into. */
export function isPrivateFolder(path: string): boolean {
  const folder = lstatSync(path, { throwIfNoEntry: false });
  if (folder?.isDirectory() !== true) return false;
  const uid = process.getuid?.();
  return uid === undefined || (folder.uid === uid && (folder.mode & OTHERS) === 0);
}

/**
 * Makes a folder and those above it with this mode, as far as they are missing. Their names are synced to disk: else a
 * power cut takes a folder with all that was synced in it. Throws the system's error, and a configuration failure for
 * an address. Node's own recursion never ends where nothing can be made, as under /proc.
 */
export function makeFolders(path: string, mode = OWNER_FOLDER): void {
  checkLocalPath(path);
  if (isFolder(path)) return;
  const parent = dirname(path);
  if (parent !== path) makeFolders(parent, mode);
  try {
    mkdirSync(path, { mode: OWNER_FOLDER });
  } catch (error) {
    // Another process was quicker, and does the rest.
    if (isFolder(path)) return;
    throw error;
  }
  // The umask must not decide the mode. A folder in one of a shared group keeps that group.
  if (mode !== OWNER_FOLDER) setMode(path, mode | (statSync(path).mode & SHARED_GROUP));
  syncFolderNow(parent);
}

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

let holders = 0;
let before: number | undefined;

/**
 * Sets a umask of the owner alone while at least one caller holds it: DuckDB creates files by itself. Returns a
 * function that releases the hold, once. A worker thread cannot set the umask: that of the process stays.
 */
export function holdPrivateUmask(): () => void {
  if (holders++ === 0) before = setUmask(OTHERS);
  let isHeld = true;
  return () => {
    if (!isHeld) return;
    isHeld = false;
    if (--holders === 0 && before !== undefined) setUmask(before);
  };
}

function setUmask(mask: number): number | undefined {
  try {
    return process.umask(mask);
  } catch {
    return undefined;
  }
}
