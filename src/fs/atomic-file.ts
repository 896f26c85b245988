// This folder: files that survive a crash and other processes: locks, atomic replacement, private folders, and the
// errors of a full or refusing disk.

import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, lstatSync, openSync, readFileSync, readSync, realpathSync, statSync } from 'node:fs';
import { link, lstat, mkdtemp, open, readdir, rename, rm, rmdir, unlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { codeOf, configError } from '../base/errors.ts';
import { cannotSync, diskError } from './disk-failure.ts';
import { checkLocalPath } from './local-path.ts';
import { isForeign, setMode } from './permissions.ts';

/** The mode of a file that its owner alone may read. */
export const OWNER_FILE = 0o600;
const NAMED_FILE = 0o644;
/** The bits of a mode that say who may do what. */
export const PERMISSIONS = 0o777;

/** A unique path beside a file for its next version, which is written there until it is complete. */
export const temporaryPathOf = (path: string): string =>
  join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}.tmp`);

/** True for a path of such a version. */
export const isTemporary = (path: string): boolean => /(^|\/)\.[^/]+\.tmp$/.test(path);

/**
 * Removes the temporary files of a file that killed writers left, as far as they are older than `ageMs`; 0: all of
 * them. Throws the system's error; a file of another user that need not go stays.
 */
export async function removeTemporaries(path: string, now: number, ageMs: number): Promise<void> {
  const prefix = `.${basename(path)}.`;
  for (const name of await readdir(dirname(path)).catch(() => [])) {
    if (!name.startsWith(prefix) || !/^[0-9a-f]{12}\.tmp$/.test(name.slice(prefix.length))) continue;
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

/**
 * Throws the system's error if a file, or the folder in which it and what belongs to it are made, cannot be written.
 * The file stays as it is.
 */
export async function tryToWrite(path: string): Promise<void> {
  let folder = dirname(path);
  while (!existsSync(folder) && dirname(folder) !== folder) folder = dirname(folder);
  await rmdir(await mkdtemp(join(folder, '.dfinery-try-')));
  if (existsSync(path)) await (await open(path, 'a')).close();
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

/**
 * The path under which a file that a user has named is replaced: for a link, the file that it leads to. Undefined for a
 * device or a pipe, which is written as it is. Throws the system's error, and a configuration failure for an
 * address, for a link of another user, and for a DuckDB database: perhaps it is the very place that was loaded.
 */
export function replaceablePath(path: string): string | undefined {
  checkLocalPath(path);
  const link = lstatSync(path, { throwIfNoEntry: false });
  if (link?.isSymbolicLink() && isForeign(link.uid)) {
    throw configError(`${path} is a link that another user made: give another path, or remove it.`);
  }
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return path;
  if (stat.isFile() && isDatabase(path)) {
    throw configError(`${path} is a DuckDB database, which is not replaced: give another path, or remove it.`);
  }
  return stat.isFile() || stat.isDirectory() ? realpathSync(path) : undefined;
}

/** True for a file with the magic bytes of a DuckDB database, after its first checksum. */
export function isDatabase(path: string): boolean {
  const bytes = Buffer.alloc(12);
  const file = openSync(path, 'r');
  try {
    return readSync(file, bytes, 0, bytes.length, 0) === bytes.length && bytes.toString('latin1', 8) === 'DUCK';
  } finally {
    closeSync(file);
  }
}

/**
 * Writes a small file that a user has named; without `mode` a new one may be read by others. A reader sees the old text
 * or the new one, whole. A device or a pipe is written as it is. Throws a UserError, which calls the file `what`.
 */
export async function writeNamedFile(path: string, text: string, what: string, mode = NAMED_FILE): Promise<void> {
  try {
    const replaced = replaceablePath(path);
    const stat = statSync(path, { throwIfNoEntry: false });
    if (replaced === undefined) await writeFile(path, text);
    else await replaceFile(replaced, text, (stat?.mode ?? mode) & PERMISSIONS);
  } catch (error) {
    throw diskError(error, { what, path });
  }
}

interface NameOptions {
  /** Works on a file system without hard links too; two processes that look at the same moment then both succeed. */
  readonly mayRename?: boolean;
  /** The mode of the file; by default its owner alone may read it. */
  readonly mode?: number;
}

/**
 * Gives a temporary file its final name, which is synced to disk when this returns; false if a file of that name
 * exists. The temporary file is gone in any case. Throws the system's error.
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
export const createFile = async (path: string, text: string, options?: NameOptions): Promise<boolean> =>
  nameTemporary(await temporaryWith(path, text, options?.mode ?? OWNER_FILE), path, options);

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

/**
 * Throws a configuration failure for a file that is a mount itself, as a container may have one: it can be written, and
 * never be replaced.
 */
export function checkReplaceable(path: string): void {
  const mounts = existsSync('/proc/self/mountinfo') ? readFileSync('/proc/self/mountinfo', 'utf8') : '';
  const points = mounts.split('\n').map((line) => line.split(' ')[4] ?? '');
  const plain = (point: string) =>
    point.replace(/\\(\d{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8)));
  if (!points.some((point) => plain(point) === realpathSync(path))) return;
  const message = `${path} is a mount of its own, which cannot be replaced: mount its folder instead. Nothing was done.`;
  throw configError(message, { where: { file: path } });
}

/** Renames a finished file, replacing `to`; the bytes and the name are synced to disk when this returns. */
export async function moveFile(from: string, to: string): Promise<void> {
  await syncFile(from);
  await rename(from, to);
  await syncFolder(dirname(to));
}

/** Windows syncs only what is open for writing, Linux opens a folder only for reading. */
async function syncFile(path: string, flags: 'r+' | 'r' = 'r+'): Promise<void> {
  const file = await open(path, flags);
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Syncs the names in a folder to disk, on file systems that support it. */
export async function syncFolder(path: string): Promise<void> {
  try {
    await syncFile(path, 'r');
  } catch (error) {
    if (!cannotSync(error)) throw error;
  }
}

const WITHOUT_LINKS: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

/** True for the error of a file system without hard links for a second name. */
export const hasNoLinks = (error: unknown): boolean => WITHOUT_LINKS.has(codeOf(error) ?? '');
