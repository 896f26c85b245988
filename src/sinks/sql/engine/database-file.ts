import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  readdirSync,
  realpathSync,
  rmdirSync,
  rmSync,
  statSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { configError } from '../../../base/errors.ts';

const PERMISSIONS = 0o777;

/**
 * The file that a path leads to: through a link, what is written beside a file (its log) and what replaces it would else
 * belong to the link.
 */
export function realFile(path: string): string {
  const file = resolve(path);
  if (!existsSync(file)) return file;
  return lstatSync(file).isSymbolicLink() ? realpathSync(file) : file;
}

/** Refuses a path with a `?`: DuckDB takes what follows for options, and writes the log of the file somewhere else. Throws UserError. */
export function checkLogPath(file: string): void {
  if (!resolve(file).includes('?')) return;
  throw configError(`${file} has a "?" in its path, with which DuckDB cannot write a file: give another path.`);
}

export const fileExists = (file: string): boolean => existsSync(resolve(file));

/** Removes what a run that died left of a database. Whoever holds the lock of the file it belongs to may. */
export function sweep(path: string): void {
  for (const name of [path, `${path}.wal`]) rmSync(name, { force: true });
}

/** Removes what a run that died had spilled into its temporary folder. */
export function sweepSpilled(folder: string): void {
  if (!existsSync(folder)) return;
  const names = readdirSync(folder);
  const spilled = names.filter((name) => name.startsWith('duckdb_temp_'));
  for (const name of spilled) rmSync(join(folder, name), { force: true });
  if (spilled.length === names.length) rmdirSync(folder);
}

/** Gives a copy the mode and the owner of the file that it is to replace. Throws UserError. */
export function copyOwner(file: string, copy: string): void {
  const { mode, uid, gid } = statSync(file);
  const made = statSync(copy);
  if (made.uid !== uid || made.gid !== gid) {
    try {
      chownSync(copy, uid, gid);
    } catch (error) {
      throw configError(
        `${file} belongs to another user or group, which a copy of it cannot be given: run as its owner. Nothing was changed.`,
        { cause: error },
      );
    }
  }
  chmodSync(copy, mode & PERMISSIONS);
}

/** Gives a copy the mode of a file, but not its owner: a copy is its maker's. */
export const copyMode = (file: string, copy: string): void => chmodSync(copy, statSync(file).mode & PERMISSIONS);
