// Folders: made and closed to others, with their names on the disk.

import { closeSync, constants, fsyncSync, lstatSync, mkdirSync, openSync, statSync } from 'node:fs';
import { access, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { codeOf, configError } from '../base/errors.ts';
import { checkLocalPath } from './local-path.ts';
import { OTHERS, OWNER_FOLDER, setMode } from './permissions.ts';

/** The bit of a folder by which new files in it get its group. */
const SHARED_GROUP = 0o2000;

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

const CANNOT_SYNC: ReadonlySet<string> = new Set(['EISDIR', 'EPERM', 'EACCES', 'EINVAL', 'ENOTSUP', 'ENOENT']);

/** True for the error of a file system that cannot sync the names in a folder. */
const cannotSync = (error: unknown): boolean => CANNOT_SYNC.has(codeOf(error) ?? '');

/** Syncs the names in a folder to disk, on file systems that support it. */
export async function syncFolder(path: string): Promise<void> {
  try {
    const folder = await open(path, 'r');
    await folder.sync().finally(() => folder.close());
  } catch (error) {
    if (!cannotSync(error)) throw error;
  }
}

/** The same, without a turn for others. */
function syncFolderNow(path: string): void {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(path, 'r');
    fsyncSync(descriptor);
  } catch (error) {
    if (!cannotSync(error)) throw error;
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}
