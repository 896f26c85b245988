// This folder: files that survive a crash and other processes. It has locks, atomic replacement, private folders, and
// the errors of a full or refusing disk.

import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { link, lstat, mkdtemp, open, readdir, rename, rm, rmdir, unlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { codeOf, configError } from '../base/errors.ts';
import { syncFolder } from './folders.ts';
import { OWNER_FILE, setMode } from './permissions.ts';

/** A unique path beside a file for its next version, which is written there until it is complete. */
export const temporaryPathOf = (path: string): string =>
  join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}.tmp`);

/** True for a path of such a version, of this program or another. */
export const isTemporary = (path: string): boolean => /(^|\/)\.[^/]+\.tmp$/.test(path);

/** The name of a temporary file of this program; its group is the name of the file. */
const TEMPORARY = /^\.(.+)\.[0-9a-f]{12}\.tmp$/;

/**
 * Removes the temporary files of a file that killed writers left, if they are older than `ageMs`; 0: all of them.
 * Throws the system's error. A file of another user stays if it need not go.
 */
export async function removeTemporaries(path: string, now: number, ageMs: number): Promise<void> {
  for (const name of await readdir(dirname(path)).catch(() => [])) {
    if (TEMPORARY.exec(name)?.[1] !== basename(path)) continue;
    const temporary = join(dirname(path), name);
    try {
      if (ageMs === 0 || now - (await lstat(temporary)).mtimeMs > ageMs) await unlink(temporary);
    } catch (error) {
      const code = codeOf(error);
      const isOthers = code === 'EPERM' || code === 'EACCES';
      if (code !== 'ENOENT' && (ageMs === 0 || !isOthers)) throw error;
    }
  }
}

/** Throws the system's error if a file, or the folder of it, cannot be written. The file stays as it is. */
export async function tryToWrite(path: string): Promise<void> {
  let folder = dirname(path);
  while (!existsSync(folder) && dirname(folder) !== folder) folder = dirname(folder);
  await rmdir(await mkdtemp(join(folder, '.dfinery-try-')));
  if (existsSync(path)) await (await open(path, 'a')).close();
}

/** Throws a configuration failure for a file that is a mount itself, as in a container: it cannot be replaced. */
export function checkReplaceable(path: string): void {
  const mounts = existsSync('/proc/self/mountinfo') ? readFileSync('/proc/self/mountinfo', 'utf8') : '';
  const points = mounts.split('\n').map((line) => line.split(' ')[4] ?? '');
  const plain = (point: string) =>
    point.replace(/\\(\d{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8)));
  if (!points.some((point) => plain(point) === realpathSync(path))) return;
  const message = `${path} is a mount of its own, which cannot be replaced: mount its folder instead. Nothing was done.`;
  throw configError(message, { where: { file: path } });
}

/** Replaces a file, synced to disk: the old text or the new one is there, whole. Throws the system's error. */
export async function replaceFile(path: string, text: string, mode = OWNER_FILE): Promise<void> {
  const temporary = await temporaryWith(path, text, mode);
  try {
    await rename(temporary, path);
  } finally {
    await rm(temporary, { force: true });
  }
  await syncFolder(dirname(path));
}

interface NameOptions {
  /** Works without hard links too; two processes that look at the same moment then both succeed. */
  readonly mayRename?: boolean;
}

/**
 * Gives a temporary file its final name, synced to disk; false if a file of that name exists. The temporary file is
 * gone in any case. Throws the system's error.
 */
export async function nameTemporary(
  temporary: string,
  path: string,
  { mayRename = false }: NameOptions = {},
): Promise<boolean> {
  try {
    await link(temporary, path);
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    if (!mayRename) throw error;
    if ((await lstat(path).catch(() => undefined)) !== undefined) return false;
    await rename(temporary, path);
  } finally {
    await rm(temporary, { force: true });
  }
  await syncFolder(dirname(path));
  return true;
}

/** Creates a synced file with this text as `nameTemporary` does; false if a file of that name exists. */
export const createFile = async (
  path: string,
  text: string,
  { mode = OWNER_FILE, ...options }: NameOptions & { readonly mode?: number } = {},
): Promise<boolean> => nameTemporary(await temporaryWith(path, text, mode), path, options);

async function temporaryWith(path: string, text: string, mode: number): Promise<string> {
  const temporary = temporaryPathOf(path);
  try {
    await writeFile(temporary, text, { flag: 'wx', mode: OWNER_FILE });
    // The umask must not decide the mode.
    if (mode !== OWNER_FILE) setMode(temporary, mode);
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

/** Windows syncs only what is open for writing. */
async function syncFile(path: string): Promise<void> {
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
