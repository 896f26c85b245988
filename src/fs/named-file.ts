// Files that a user has named: which may be replaced, and how a small one is written.

import { closeSync, lstatSync, openSync, readSync, realpathSync, statSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { configError } from '../base/errors.ts';
import { replaceFile } from './atomic-file.ts';
import { diskError } from './disk-failure.ts';
import { checkLocalPath } from './local-path.ts';
import { isForeignOwner, PERMISSION_BITS } from './permissions.ts';

/** What is written to a named path. It replaces only a file that is empty, or begins as a file of its kind. */
const KINDS = {
  page: { name: 'a page of this program', beginning: /^<!doctype html>/ },
  arrow: { name: 'an Arrow stream of this program', beginning: /^\xff{4}/ },
  // Anything but a database: `init` has asked whether it may replace the file.
  configuration: { name: 'a configuration', beginning: /^(?!.{8}DUCK)/s },
};

/**
 * The path under which a file is replaced: for a link, the file that it leads to, if there is one. Undefined for a
 * device or a pipe, which is written as it is. Throws the system's error, also for a folder. An address, a link of
 * another user and a file of another kind are configuration failures: it may be a list, a key or the place itself.
 */
export function replaceablePath(path: string, kind: keyof typeof KINDS): string | undefined {
  checkLocalPath(path);
  const link = lstatSync(path, { throwIfNoEntry: false });
  if (link?.isSymbolicLink() && isForeignOwner(link.uid)) {
    throw configError(`${path} is a link that another user made: give another path, or remove it.`);
  }
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return path;
  const { name, beginning } = KINDS[kind];
  if (stat.isFile() && stat.size > 0 && !beginning.test(beginningOf(path))) {
    throw configError(`${path} is there already, and is not ${name}: give another path, or remove it.`);
  }
  // Else only the rename at the very end would find it.
  if (stat.isDirectory()) throw Object.assign(new Error(`${path} is a folder`), { code: 'EISDIR' });
  return stat.isFile() ? realpathSync(path) : undefined;
}

/** True for a file with the magic bytes of a DuckDB database, after its first checksum. */
export const isDuckDbFile = (path: string): boolean => beginningOf(path).startsWith('DUCK', 8);

/** The first bytes of a file, a character each. */
function beginningOf(path: string): string {
  const bytes = Buffer.alloc(16);
  const fd = openSync(path, 'r');
  try {
    return bytes.toString('latin1', 0, readSync(fd, bytes, 0, bytes.length, 0));
  } finally {
    closeSync(fd);
  }
}

/**
 * Writes a small file that a user has named; without `mode` others may read a new one. A reader sees the old text or
 * the new one, whole. A device or a pipe is written as it is. Throws a UserError, which calls the file `subject`.
 */
export async function writeNamedFile(
  path: string,
  text: string,
  subject: string,
  kind: keyof typeof KINDS,
  mode = 0o644,
): Promise<void> {
  try {
    const realPath = replaceablePath(path, kind);
    if (realPath === undefined) return await writeFile(path, text);
    const replacedFile = statSync(realPath, { throwIfNoEntry: false });
    await replaceFile(realPath, { text, mode: (replacedFile?.mode ?? mode) & PERMISSION_BITS });
  } catch (error) {
    throw diskError(error, { subject, path });
  }
}
