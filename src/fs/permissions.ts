// Who may read and change files: owners, modes, whether this user can write a file, and the umask of the process.

import { randomUUID } from 'node:crypto';
import { chmodSync, existsSync, lchownSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { mkdtemp, open, rmdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { hasCode } from '../base/errors.ts';

export const PRIVATE_FOLDER_MODE = 0o700;
export const PRIVATE_FILE_MODE = 0o600;
export const PERMISSION_BITS = 0o777;
export const GROUP_AND_OTHERS_BITS = 0o077;

/** True for an owner who is neither this user nor root, whoever this user is. False where files have no owners. */
export function isForeignOwner(uid: number): boolean {
  const user = process.getuid?.();
  return user !== undefined && uid !== user && uid !== 0;
}

/** EINVAL: a container may not know an owner or a group. */
const NO_MODES_CODES: ReadonlySet<string> = new Set(['EPERM', 'EINVAL', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS']);
let firstFolderWithoutModes: string | undefined;

/** The first folder without modes that was noticed since the last call. A command warns of it once, at its end. */
export function takeFolderWithoutModes(): string | undefined {
  const folder = firstFolderWithoutModes;
  firstFolderWithoutModes = undefined;
  return folder;
}

/** Sets the mode of a file of this user. SMB, exFAT and other file systems keep no modes: then nothing changes. */
export function setMode(path: string, mode: number): void {
  try {
    chmodSync(path, mode);
  } catch (error) {
    if (!hasCode(error, NO_MODES_CODES)) throw error;
    firstFolderWithoutModes ??= resolve(dirname(path));
  }
}

/** Gives what root has made to the owner and group of a folder, by default its own: they go on with it. */
export function giveToFolderOwner(path: string, folder = dirname(path)): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(folder);
  try {
    if (uid !== 0 || gid !== process.getegid?.()) lchownSync(path, uid, gid);
  } catch (error) {
    if (!hasCode(error, NO_MODES_CODES)) throw error;
  }
}

/**
 * True for a file or folder of this user, or of root as in a container's volume, whose mode lacks `refusedBits`. Root
 * trusts every owner. A mode counts only if files in `probeFolder` keep theirs: a probe there, removed at once, tells.
 */
export function isProtected(
  { uid, mode }: { readonly uid: number; readonly mode: number },
  refusedBits: number,
  probeFolder: string,
): boolean {
  const user = process.getuid?.();
  if (user === undefined) return true;
  if (user !== 0 && isForeignOwner(uid)) return false;
  return (mode & refusedBits) === 0 || !areModesKept(probeFolder);
}

/** Makes a file for this user alone, and removes it. True if it had that mode, or could not be made. */
function areModesKept(folder: string): boolean {
  const probe = join(folder, `.modes-${randomUUID()}`);
  try {
    writeFileSync(probe, '', { flag: 'wx', mode: PRIVATE_FILE_MODE });
    if ((statSync(probe).mode & GROUP_AND_OTHERS_BITS) === 0) return true;
    firstFolderWithoutModes ??= resolve(folder);
    return false;
  } catch {
    // Without the right to write here nothing is known, and modes are believed.
    return true;
  } finally {
    rmSync(probe, { force: true });
  }
}

/** Throws the system's error if a file, or the folder of it, cannot be written. The file stays as it is. */
export async function checkWritable(path: string): Promise<void> {
  let folder = dirname(path);
  while (!existsSync(folder) && dirname(folder) !== folder) folder = dirname(folder);
  await rmdir(await mkdtemp(join(folder, '.dfinery-try-')));
  if (existsSync(path)) await (await open(path, 'a')).close();
}

let umaskHolders = 0;
let umaskBefore: number | undefined;

/**
 * Sets a umask of the owner alone while at least one caller holds it: DuckDB creates files by itself. Returns what ends
 * the hold. A worker thread cannot set the umask: that of the process stays.
 */
export function holdPrivateUmask(): () => void {
  if (umaskHolders++ === 0) umaskBefore = setUmask(GROUP_AND_OTHERS_BITS);
  return () => {
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
