import { randomBytes } from 'node:crypto';
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
import { basename, dirname, join, resolve } from 'node:path';
import type { DuckDBConnection } from '@duckdb/node-api';
import { codeOf, configError, messageOf } from '../../../base/errors.ts';
import { moveFile, nameTemporary, OWNER_FILE, removeTemporaries, temporaryPathOf } from '../../../fs/atomic-file.ts';
import { literal } from '../../../types/sql.ts';

const PERMISSIONS = 0o777;

/** Suffix of the copy that replaces a file. */
export const REWRITING = '.rewriting';

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

const SPILL = '.tmp';

/** Where DuckDB puts what memory does not hold. Readers of a file have one each: by their names, files of two in one folder are the same. */
export const spillFolder = (file: string, isShared: boolean): string =>
  `${file}${SPILL}${isShared ? `-${randomBytes(6).toString('hex')}` : ''}`;

/** Removes what runs that died had spilled. Whoever has the file open for writing has no readers beside it, but some may just be ending. */
export function sweepSpilled(file: string): void {
  const own = basename(spillFolder(file, false));
  for (const name of readdirSync(dirname(file))) {
    if (!name.startsWith(own) || !/^(-[0-9a-f]{12})?$/.test(name.slice(own.length))) continue;
    try {
      removeSpilled(join(dirname(file), name));
    } catch (error) {
      if (codeOf(error) !== 'ENOENT') throw error;
    }
  }
}

function removeSpilled(folder: string): void {
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

/** Readers of DuckDB 1.2 and all later ones understand it. */
const STORAGE_VERSION = 'v1.2.0';
/** Bytes: DuckDB's own. Numbers and times compress only in blocks of some size, so smaller ones cost a third of the file. */
const BLOCK_SIZE = 262_144;
/**
 * Bytes, for tables of very many columns. Appending takes a block or more of every column: at 256 KiB, 5,000 columns do
 * not fit into 4 GB (measured); so a window of them fits into 1 GB.
 */
const WIDE_BLOCK_SIZE = 16_384;
const WIDE_COLUMNS = 500;

/** True for a table of so many columns that it is better off in small blocks. */
export const isWide = (columns: number): boolean => columns > WIDE_COLUMNS;

/** How a file of ours is made whose largest table has so many columns. */
export const newFile = (columns: number): string =>
  `STORAGE_VERSION ${literal(STORAGE_VERSION)}, BLOCK_SIZE ${isWide(columns) ? WIDE_BLOCK_SIZE : BLOCK_SIZE}`;
/** How a file of small tables is made, of which copies are to be small. */
export const SMALL_BLOCKS = newFile(WIDE_COLUMNS + 1);
/** Making a file takes moments: an older half-made one has nobody who would finish it. */
const ABANDONED_MS = 3_600_000;

/**
 * Makes an empty database under another name and gives it its own when it is whole: DuckDB takes a file whose maker was
 * killed for no database at all. Where somebody else was quicker, theirs stays.
 */
export async function makeFile(connection: DuckDBConnection, file: string, how = newFile(0)): Promise<void> {
  await withTemporary(file, async (making) => {
    await connection.run(`ATTACH ${literal(making)} AS making (${how})`);
    await connection.run('DETACH making');
    chmodSync(making, OWNER_FILE);
    await nameTemporary(making, file, true);
  });
}

/** Removes what killed runs left while they made the file: a second name of it would keep what a purge removes. */
export const sweepNewFiles = (file: string, now: number): Promise<void> => removeTemporaries(file, now, ABANDONED_MS);

/**
 * Recreates the attached database in small blocks, with all that it holds, and gives it the name of its file. What is
 * attached is then the former file, which keeps others from its lock but not from the new one's: detach it at once.
 */
export async function remakeForWideTables(connection: DuckDBConnection, file: string): Promise<void> {
  await withTemporary(file, async (making) => {
    await connection.run('CHECKPOINT target');
    await connection.run(`ATTACH ${literal(making)} AS making (${newFile(WIDE_COLUMNS + 1)})`);
    await connection.run('COPY FROM DATABASE target TO making');
    await connection.run('DETACH making');
    chmodSync(making, OWNER_FILE);
    await moveFile(making, file);
  });
}

async function withTemporary(file: string, make: (making: string) => Promise<void>): Promise<void> {
  const making = temporaryPathOf(file);
  try {
    await make(making);
  } catch (error) {
    throw new Error(messageOf(error).replaceAll(making, file), { cause: error });
  } finally {
    for (const path of [making, `${making}.wal`]) rmSync(path, { force: true });
  }
}
