// Makes folders, and syncs the names in them to disk.

import { mkdirSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { hasCode } from '../base/errors.ts';
import { checkLocalPath, refuseDeadLink } from './local-path.ts';
import { giveToFolderOwner, PRIVATE_FOLDER_MODE, setMode } from './permissions.ts';

/** The bit of a folder by which new files in it get its group. */
const SETGID_BIT = 0o2000;

/**
 * Makes a folder and those above it with this mode, as far as they are missing. Their names are synced to disk: else a
 * power cut takes a folder with all that was synced in it. Throws the system's error, and a configuration failure for
 * an address or a dead link. Node's own recursion never ends where nothing can be made, as under /proc.
 */
export async function makeFolders(path: string, mode = PRIVATE_FOLDER_MODE): Promise<void> {
  checkLocalPath(path);
  if (isFolder(path)) return;
  const parent = dirname(path);
  if (parent !== path) await makeFolders(parent, mode);
  try {
    mkdirSync(path, { mode: PRIVATE_FOLDER_MODE });
  } catch (error) {
    // Another process was quicker, and does the rest.
    if (isFolder(path)) return;
    await refuseDeadLink(path, 'folder');
    throw error;
  }
  giveToFolderOwner(path);
  // The umask must not decide the mode. A folder in one of a shared group keeps that group.
  if (mode !== PRIVATE_FOLDER_MODE) setMode(path, mode | (statSync(path).mode & SETGID_BIT));
  await syncFolder(parent);
}

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

/** Codes where folders cannot be synced, and of a folder that is gone or unreadable. */
const NO_SYNC_CODES: ReadonlySet<string> = new Set(['EISDIR', 'EPERM', 'EACCES', 'EINVAL', 'ENOTSUP', 'ENOENT']);

/** Syncs the names in a folder to disk, on file systems that support it. */
export async function syncFolder(path: string): Promise<void> {
  try {
    const handle = await open(path, 'r');
    await handle.sync().finally(() => handle.close());
  } catch (error) {
    if (!hasCode(error, NO_SYNC_CODES)) throw error;
  }
}
