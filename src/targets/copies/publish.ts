import { existsSync, lstatSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { configError, UserError } from '../../base/errors.ts';
import {
  checkDatabasePath,
  copyMode,
  fileAt,
  fileExists,
  realFile,
  removeDatabase,
  spillFolder,
} from '../../engine/session/database-file.ts';
import type { Engine } from '../../engine/session/engine.ts';
import { moveFile } from '../../fs/atomic-file.ts';
import { diskError } from '../../fs/disk-failure.ts';
import { copyLockedFile } from '../../fs/locked-file.ts';
import {
  type CopiedFormat,
  databaseAt,
  databaseOf,
  type EngineSettings,
  identityOf,
  markOf,
  readMark,
} from './mark.ts';

/** The table of the copies of a database; `published_at` is NULL for those of the one that it was a plain copy of. */
export const COPIES_TABLE = '_dfinery_copies';
export const COPIES_COLUMNS: readonly string[] = ['path', 'published_at'];
export const CREATE_COPIES = `CREATE TABLE IF NOT EXISTS ${COPIES_TABLE}(path VARCHAR, published_at TIMESTAMPTZ)`;

const PUBLISHING = '.publishing';

/** Throws a configuration failure unless the place of a copy is free, or has a copy of the database in `file`. */
export async function checkCopy(
  format: CopiedFormat,
  copy: string,
  file: string,
  options: EngineSettings,
): Promise<void> {
  checkDatabasePath(copy);
  const path = realFile(copy);
  if (!existsSync(dirname(path))) throw configError(`The folder of --publish ${copy} does not exist.`);
  if (path === realFile(file)) throw loadedFileError(path);
  if (!existsSync(path)) {
    if (!isLink(path)) return;
    throw configError(`--publish ${copy} is a link to a file that is not there: give that file, or remove the link.`);
  }
  const database = fileExists(file) ? await databaseAt(format, file, options) : undefined;
  await checkCopyTarget(format, path, { file, database }, options);
}

/** True for a link at a path where no file is. Throws a configuration failure for a path at which none can be. */
function isLink(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    throw diskError(error, { what: `the copy for readers ${path}`, path });
  }
}

const loadedFileError = (path: string): UserError =>
  configError(`${path} is the file that is loaded: publish at another path.`);

/** Throws a configuration failure unless `path` has a copy of `database`, which is that of `file`. */
async function checkCopyTarget(
  format: CopiedFormat,
  path: string,
  { file, database }: { readonly file: string; readonly database: string | undefined },
  options: EngineSettings,
): Promise<void> {
  if (fileAt(path) === fileAt(file)) throw loadedFileError(path);
  const refusal = (why: string, cause?: unknown) =>
    configError(
      `${path} exists and is not a copy that this program made of this ${format.noun}; it was not changed: ${why} ` +
        'Move it elsewhere, or publish at another path; a purge is told of one that was moved by --forget-copy with this path.',
      { cause },
    );
  const stats = statSync(path);
  if (!stats.isFile()) throw refusal('it is no file.');
  if (stats.nlink > 1) {
    throw configError(
      `${path} has another name (a hard link), under which the old copy would stay: remove that first. It was not changed.`,
    );
  }
  const mark = await markOf(format, path, options, format.checkWhole).catch((error: unknown) => {
    throw error instanceof UserError ? refusal(error.message, error) : error;
  });
  if (mark.copyOf === null) throw refusal(`it is a ${format.noun} of its own.`);
  if (mark.copyOf !== database) throw refusal(`it is a copy of another ${format.noun}.`);
}

/**
 * Puts a complete, checked copy of an open file beside `copy` and renames it into place: readers who have the former
 * copy open keep it. The file remembers the copy first, so that a purge knows of it whatever happens. Throws UserError.
 */
export async function publish(format: CopiedFormat, engine: Engine, copy: string): Promise<void> {
  const path = realFile(copy);
  const { file, options } = engine;
  const databaseBefore = databaseOf(await readMark(format, engine), file);
  if (existsSync(path)) await checkCopyTarget(format, path, { file, database: databaseBefore }, options);
  await engine.transaction(async () => {
    if (databaseBefore === undefined) await becomeDatabase(format, engine);
    await engine.run(`DELETE FROM ${COPIES_TABLE} WHERE path = $1`, [path]);
    await engine.append(COPIES_TABLE, [[path, new Date(options.clock.now()).toISOString()]]);
  });
  const { database } = await readMark(format, engine);
  await engine.checkpoint();
  const temporary = unfinishedCopyOf(path);
  try {
    removeUnfinishedCopy(path);
    await copyLockedFile(file, temporary, options.signal);
    copyMode(existsSync(path) ? path : file, temporary);
    await format.withFile({ ...options, file: temporary }, (copied) => becomeCopy(format, copied, database));
    await markOf(format, temporary, options, format.checkWhole);
    await moveFile(temporary, path);
  } catch (error) {
    throw diskError(error, { what: `the copy for readers ${path}`, path, consequence: 'the former copy stays' });
  } finally {
    removeUnfinishedCopy(path);
  }
}

/**
 * A plain copy of a database, or the database itself on another disk, becomes one of its own with its first copy for
 * readers. It cannot replace those that it was made with, and only names them.
 */
async function becomeDatabase({ marks }: CopiedFormat, engine: Engine): Promise<void> {
  await engine.run(`UPDATE ${marks} SET database = CAST(uuid() AS VARCHAR), file = $1, copy_of = NULL`, [
    identityOf(engine.file),
  ]);
  await engine.run(`UPDATE ${COPIES_TABLE} SET published_at = NULL`);
}

/** Marks an open file as a copy for readers of a database. */
async function becomeCopy({ marks }: CopiedFormat, copied: Engine, database: string): Promise<void> {
  await copied.transaction(async () => {
    await copied.run(`UPDATE ${marks} SET copy_of = $1`, [database]);
    await copied.run(`DELETE FROM ${COPIES_TABLE}`);
  });
  // The file alone is renamed: what closing it leaves in its write-ahead log would be lost, the mark first.
  await copied.checkpoint();
}

const unfinishedCopyOf = (path: string): string => join(dirname(path), `.${basename(path)}${PUBLISHING}`);

/** Removes what a run left that was killed while it published: it holds all rows. */
export function removeUnfinishedCopy(path: string): void {
  // A file that has taken the place of the folder holds nothing.
  if (!existsSync(`${dirname(path)}/`)) return;
  const temporary = unfinishedCopyOf(path);
  removeDatabase(temporary);
  rmSync(spillFolder(temporary), { force: true, recursive: true });
}
