// This folder: files and folders of this machine. It replaces and locks files so that they survive a crash and other
// processes. It makes private folders, reads JSON, writes to stdout, tells addresses from paths, and names disk errors.

import { randomBytes } from 'node:crypto';
import { link, lstat, open, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { codeOf } from '../base/errors.ts';
import { syncFolder } from './folders.ts';
import { OWNER_FILE_MODE, setMode } from './permissions.ts';

/** A unique path beside a file for its next version, which is written there until it is complete. */
export const temporaryPathOf = (path: string): string =>
  join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}.tmp`);

/** True for the path of a temporary file, also for one that another program has left. */
export const isTemporary = (path: string): boolean => /(^|\/)\.[^/]+\.tmp$/.test(path);

/** The name of a temporary file of this program; its group is the name of the file. */
const TEMPORARY = /^\.(.+)\.[0-9a-f]{12}\.tmp$/;

/** Removes the temporary files of a file that killed writers left. Throws the system's error. */
export async function removeAllTemporaries(path: string): Promise<void> {
  for (const temporary of await temporariesOf(path)) await rm(temporary, { force: true });
}

/**
 * Removes those that are older than `olderThanMs` at the instant `now` (ms since 1970). What this user may not list or
 * remove stays. Throws any other error of the system.
 */
export async function removeOldTemporaries(
  path: string,
  { now, olderThanMs }: { readonly now: number; readonly olderThanMs: number },
): Promise<void> {
  const mayStay = (error: unknown) => {
    if (!NOT_ALLOWED.has(codeOf(error) ?? '')) throw error;
  };
  const temporaries = await temporariesOf(path).catch(mayStay);
  for (const temporary of temporaries ?? []) {
    const stat = await lstat(temporary).catch(unlessMissing);
    if (stat !== undefined && now - stat.mtimeMs > olderThanMs) await rm(temporary, { force: true }).catch(mayStay);
  }
}

const NOT_ALLOWED: ReadonlySet<string> = new Set(['EPERM', 'EACCES']);

const unlessMissing = (error: unknown): undefined => {
  if (codeOf(error) !== 'ENOENT') throw error;
};

/** The paths of the temporary files of a file. Throws the system's error, but for a folder that is missing. */
async function temporariesOf(path: string): Promise<string[]> {
  const names = (await readdir(dirname(path)).catch(unlessMissing)) ?? [];
  const ofFile = names.filter((name) => TEMPORARY.exec(name)?.[1] === basename(path));
  return ofFile.map((name) => join(dirname(path), name));
}

/** Replaces a file, synced to disk: the old text or the new one is there, whole. Throws the system's error. */
export async function replaceFile(path: string, text: string, mode = OWNER_FILE_MODE): Promise<void> {
  const temporary = await writeTemporary(path, text, mode);
  try {
    await rename(temporary, path);
  } finally {
    await rm(temporary, { force: true });
  }
  await syncFolder(dirname(path));
}

interface PublishOptions {
  /** Works without hard links too; two processes that look at the same moment then both succeed. */
  readonly mayRename?: boolean;
}

/**
 * Gives a temporary file its final name, synced to disk; false if a file of that name exists. The temporary file is
 * gone in any case. Throws the system's error.
 */
export async function publishTemporary(
  temporary: string,
  path: string,
  { mayRename = false }: PublishOptions = {},
): Promise<boolean> {
  try {
    await link(temporary, path);
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    if (!mayRename || !hasNoLinks(error)) throw error;
    if ((await lstat(path).catch(() => undefined)) !== undefined) return false;
    await rename(temporary, path);
  } finally {
    await rm(temporary, { force: true });
  }
  await syncFolder(dirname(path));
  return true;
}

/** Creates a synced file with this text as `publishTemporary` does; false if a file of that name exists. */
export const createFile = async (
  path: string,
  text: string,
  { mode = OWNER_FILE_MODE, ...options }: PublishOptions & { readonly mode?: number } = {},
): Promise<boolean> => publishTemporary(await writeTemporary(path, text, mode), path, options);

async function writeTemporary(path: string, text: string, mode: number): Promise<string> {
  const temporary = temporaryPathOf(path);
  try {
    await writeFile(temporary, text, { flag: 'wx', mode: OWNER_FILE_MODE });
    // The umask must not decide the mode.
    if (mode !== OWNER_FILE_MODE) setMode(temporary, mode);
    await syncFile(temporary);
    return temporary;
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** Renames a finished file, replacing `to`; the bytes and the name are synced to disk when this returns. */
export async function moveFile(from: string, to: string): Promise<void> {
  await syncFile(from);
  await rename(from, to);
  await syncFolder(dirname(to));
}

async function syncFile(path: string): Promise<void> {
  // Windows syncs only what is open for writing.
  const file = await open(path, 'r+');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

const WITHOUT_LINKS: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

/** True for the error of a file system without hard links for a second name. */
export const hasNoLinks = (error: unknown): boolean => WITHOUT_LINKS.has(codeOf(error) ?? '');
