import { existsSync, lstatSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { configError, messageOf, UserError } from '../../base/errors.ts';
import { moveFile, removeTemporaries } from '../../fs/atomic-file.ts';
import { diskError } from '../../fs/disk-failure.ts';
import { copyLockedFile } from '../../fs/locked-file.ts';
import { literal } from '../../types/sql.ts';
import type { PurgeOptions } from '../people.ts';
import type { StatefulTarget } from '../target.ts';
import {
  checkDatabasePath,
  copyMode,
  copyOwner,
  fileAt,
  fileExists,
  REWRITING,
  realFile,
  removeDatabase,
  spilledFolders,
  spillFolder,
} from './engine/database-file.ts';
import type { Engine, EngineOptions } from './engine/engine.ts';

// Copies for readers (S52), of a DuckDB file or of a catalog of DuckLake. A database has an id, and stores an identity
// of its file from the file system, which a plain copy of the file does not share. A copy for readers stores the id of
// its database: only such a file is ever replaced.

/** A kind of database file whose copies are published. */
export interface CopiedFormat {
  readonly noun: 'database' | 'catalog';
  /** Its table with the mark: one row, with the columns of `Mark`. */
  readonly marks: string;
  /** Opens a file, works on it and closes it. Throws UserError. */
  withFile<T>(options: EngineOptions, work: (engine: Engine) => Promise<T>): Promise<T>;
  /** Throws a configuration failure unless the open file is of this kind and was loaded by this program. */
  check(engine: Engine): Promise<void>;
  /** Does the work of `check`, and also throws if the file lacks rows. */
  checkWhole(engine: Engine): Promise<void>;
  /** The options of ATTACH for a new file with the tables of an open one. */
  newFile(engine: Engine): Promise<string>;
}

/** Adds copies for readers (S52) to a target whose place is one database file, and whose purge publishes them again. */
export const withCopies = (target: StatefulTarget, load: () => Promise<CopiedFormat>): StatefulTarget => ({
  ...target,
  options: {
    ...target.options,
    publish: 'A checked copy for readers at this path, replaced after each run that committed something',
  },
  async open(file, options) {
    const format = await load();
    if (options.publish !== undefined) await checkCopy(format, options.publish, file, options);
    const sink = await target.open(file, options);
    // A sink that holds the lock of the file publishes the copy itself.
    sink.publish ??= (copy) => format.withFile({ ...options, file }, (engine) => publish(format, engine, copy));
    return sink;
  },
  async people() {
    const [people, format] = await Promise.all([target.people(), load()]);
    return {
      ...people,
      async copies(file, options) {
        if (!fileExists(file)) return [];
        return format.withFile({ ...options, file, readOnly: true }, async (engine) => {
          await format.check(engine);
          await refuseCopy(format, engine);
          return copiesIn(engine);
        });
      },
      async tryPurge(file, query, options) {
        const trial = await people.tryPurge(file, query, options);
        const reading = { ...options, file, readOnly: true };
        return {
          ...trial,
          copiesOfOriginal: await format.withFile(reading, (engine) => copiesOfOriginal(format, engine)),
        };
      },
    };
  },
});

/** The mark that identifies a file as a database, or as a copy of one for readers. */
interface Mark {
  readonly database: string;
  /** Identity of the file, which a plain copy of it does not share. */
  readonly file: string;
  /** Id of the database of which this is a copy for readers; null for a database itself. */
  readonly copyOf: string | null;
}

/** The table of the copies of a database; `published_at` is NULL for those of the one that it was a plain copy of. */
export const COPIES_TABLE = '_dfinery_copies';
export const COPIES_COLUMNS: readonly string[] = ['path', 'published_at'];
export const CREATE_COPIES = `CREATE TABLE IF NOT EXISTS ${COPIES_TABLE}(path VARCHAR, published_at TIMESTAMPTZ)`;
const PUBLISHING = '.publishing';
/** The new file that is to replace an open one, as attached to it. */
export const NEW_DATABASE = 'new_database';

type Options = Omit<EngineOptions, 'file'>;

/** The identity of a file in its file system, which stays when it is moved there; a plain copy has another one. */
export function identityOf(path: string): string {
  const { ino, birthtimeNs } = statSync(path, { bigint: true });
  return `${ino}-${birthtimeNs}`;
}

async function readMark({ marks }: CopiedFormat, engine: Engine): Promise<Mark> {
  const { database, file, copy_of } = await engine.row(`SELECT database, file, copy_of FROM ${marks}`);
  return { database: String(database), file: String(file), copyOf: copy_of === null ? null : String(copy_of) };
}

/** Stores that a new file replaces another, whose stored identity is `from`. `database`: the new file, as attached. */
export async function moveIdentity(
  { marks }: CopiedFormat,
  engine: Engine,
  { from, to, database = 'target' }: { readonly from: string; readonly to: string; readonly database?: string },
): Promise<void> {
  await engine.run(`UPDATE ${database}.main.${marks} SET file = $2 WHERE file = $1`, [from, to]);
}

/** The id of a database, if the file is the database itself: neither a plain copy of it, nor a copy for readers. */
const databaseOf = ({ database, file, copyOf }: Mark, path: string): string | undefined =>
  copyOf === null && file === identityOf(realFile(path)) ? database : undefined;

/** True for a file that was copied from a database which still exists at its path. Throws UserError. */
export async function isPlainCopy(
  format: CopiedFormat,
  { file, original }: { readonly file: string; readonly original: string },
  options: Options,
): Promise<boolean> {
  // A clone of a whole file system has files of the same identity, on another device.
  if (!fileExists(original) || fileAt(original) === fileAt(file)) return false;
  const { database } = await markOf(format, file, options);
  const found = await databaseAt(format, original, options).catch((error) => {
    // The file at that path is no longer a database of this program.
    if (error instanceof UserError && error.kind === 'config') return undefined;
    throw error;
  });
  return found === database;
}

/** Throws a configuration failure for a copy for readers, since only its database may be changed. */
export async function refuseCopy(format: CopiedFormat, engine: Engine): Promise<void> {
  if ((await readMark(format, engine)).copyOf !== null) throw copyError(format, engine.file);
}

export const copyError = ({ noun }: CopiedFormat, file: string): UserError =>
  configError(
    `${file} is a copy for readers: give the ${noun} that it was made from, which publishes its copies anew. Nothing was done.`,
  );

/** Throws a configuration failure unless the place of a copy is free, or has a copy of the database in `file`. */
export async function checkCopy(format: CopiedFormat, copy: string, file: string, options: Options): Promise<void> {
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
  options: Options,
): Promise<void> {
  const stats = statSync(path);
  if (!stats.isFile()) throw configError(`${path} is no file: publish at another path.`);
  if (fileAt(path) === fileAt(file)) throw loadedFileError(path);
  if (stats.nlink > 1) {
    throw configError(
      `${path} has another name (a hard link), under which the old copy would stay: remove that first. It was not changed.`,
    );
  }
  const refusal = (why: string, cause?: unknown) =>
    configError(
      `${path} exists and is not a copy that this program made of this ${format.noun}; it was not changed: ${why} ` +
        'Move it elsewhere, or publish at another path; a purge is told of one that was moved by --forget-copy with this path.',
      { cause },
    );
  const mark = await markOf(format, path, options, format.checkWhole).catch((error: unknown) => {
    throw error instanceof UserError ? refusal(error.message, error) : error;
  });
  if (mark.copyOf === null) throw refusal(`it is a ${format.noun} of its own.`);
  if (mark.copyOf !== database) throw refusal(`it is a copy of another ${format.noun}.`);
}

async function databaseAt(format: CopiedFormat, file: string, options: Options): Promise<string | undefined> {
  for (;;) {
    const identity = identityOf(realFile(file));
    const mark = await markOf(format, file, options);
    // A purge or `compact` may have put a new file in its place meanwhile: its mark is then to be read, not that of the
    // former one.
    if (identityOf(realFile(file)) === identity) return databaseOf(mark, file);
  }
}

/** Reads the mark of a file, which is opened for reading and checked. */
function markOf(format: CopiedFormat, file: string, options: Options, check = format.check): Promise<Mark> {
  return format.withFile({ ...options, file, readOnly: true }, async (engine) => {
    await check(engine);
    return readMark(format, engine);
  });
}

/**
 * Puts a complete, checked copy of an open file beside `copy` and renames it into place: readers who have the former
 * copy open keep it. The file remembers the copy first, so that a purge knows of it whatever happens. Throws UserError.
 */
export async function publish(format: CopiedFormat, engine: Engine, copy: string): Promise<void> {
  const path = realFile(copy);
  const { file, options } = engine;
  const known = databaseOf(await readMark(format, engine), file);
  if (existsSync(path)) await checkCopyTarget(format, path, { file, database: known }, options);
  await engine.transaction(async () => {
    if (known === undefined) {
      // A plain copy of a database, or the database itself on another disk, becomes one of its own with its first copy
      // for readers. It cannot replace those that it was made with, and only names them.
      await engine.run(`UPDATE ${format.marks} SET database = CAST(uuid() AS VARCHAR), file = $1, copy_of = NULL`, [
        identityOf(file),
      ]);
      await engine.run(`UPDATE ${COPIES_TABLE} SET published_at = NULL`);
    }
    await engine.run(`DELETE FROM ${COPIES_TABLE} WHERE path = $1`, [path]);
    await engine.append(COPIES_TABLE, [[path, new Date(options.clock.now()).toISOString()]]);
  });
  const { database } = await readMark(format, engine);
  await engine.run('CHECKPOINT target');
  const temporary = unfinishedCopyOf(path);
  try {
    removeUnfinishedCopy(path);
    await copyLockedFile(file, temporary, options.signal);
    copyMode(existsSync(path) ? path : file, temporary);
    await format.withFile({ ...options, file: temporary }, async (copied) => {
      await copied.transaction(async () => {
        await copied.run(`UPDATE ${format.marks} SET copy_of = $1`, [database]);
        await copied.run(`DELETE FROM ${COPIES_TABLE}`);
      });
      // The file alone is renamed: what closing it leaves in its write-ahead log would be lost, the mark first.
      await copied.run('CHECKPOINT target');
    });
    await markOf(format, temporary, options, format.checkWhole);
    await moveFile(temporary, path);
  } catch (error) {
    throw diskError(error, { what: `the copy for readers ${path}`, path, consequence: 'the former copy stays' });
  } finally {
    removeUnfinishedCopy(path);
  }
}

const unfinishedCopyOf = (path: string): string => join(dirname(path), `.${basename(path)}${PUBLISHING}`);

/** Removes what a run left that was killed while it published: it holds all rows. */
function removeUnfinishedCopy(path: string): void {
  const temporary = unfinishedCopyOf(path);
  removeDatabase(temporary);
  rmSync(spillFolder(temporary), { force: true, recursive: true });
}

/**
 * Publishes every copy of a file again: after a purge no copy may hold the removed rows. Returns a sentence that names
 * every copy which could not be replaced or is not there, and so may still hold them; such a copy stays on the list. A
 * plain copy of a database has no copies. Those of `forgetCopies` that do not exist are taken off the list first.
 */
export async function republish(format: CopiedFormat, options: EngineOptions & Pick<PurgeOptions, 'forgetCopies'>) {
  const { forgetCopies = [] } = options;
  const failed: string[] = [];
  /** Replaces a copy; returns a sentence if it may still hold the people. */
  const replace = async (engine: Engine, copy: string): Promise<string[]> => {
    try {
      if (!existsSync(copy)) {
        removeUnfinishedCopy(copy);
        return [
          `${copy} is not there: if it was moved, or lies on a share that is not mounted now, it still holds them.`,
        ];
      }
      await publish(format, engine, copy);
      // A reader may be alive, and nobody who opens the copy may find it locked: so it is not known whose these are.
      const spilled = spilledFolders(copy).join(', ');
      if (spilled === '') return [];
      return [
        `${copy} is published anew, but ${spilled} may hold what a reader of the former one has put there: remove that ` +
          'once nobody reads it.',
      ];
    } catch (error) {
      options.signal?.throwIfAborted();
      return [`${copy} could not be replaced: ${messageOf(error).replace(/\.?$/, '.')}`];
    }
  };
  try {
    await format.withFile(options, async (engine) => {
      if (databaseOf(await readMark(format, engine), engine.file) === undefined) return;
      for (const path of forgetCopies.map((copy) => resolve(copy)).filter((one) => !existsSync(one))) {
        removeUnfinishedCopy(path);
        await engine.run(`DELETE FROM ${COPIES_TABLE} WHERE path = $1`, [path]);
      }
      for (const copy of await copiesIn(engine)) failed.push(...(await replace(engine, copy)));
    });
  } catch (error) {
    if (error instanceof UserError) return [error.message];
    throw error;
  }
  if (failed.length === 0) return [];
  return [
    `${options.file} is purged, but its copies for readers may still hold the people. ${failed.join(' ')} Run the purge again ` +
      'when they can be replaced; for one that is gone for good, with --forget-copy FILE.',
  ];
}

/**
 * Publishes each copy again that is there and of which `isOld` is true. Throws UserError if one cannot be replaced, once
 * all others are, and for a plain copy of the database that has them.
 */
export function publishOld(format: CopiedFormat, options: EngineOptions, isOld: (copy: Engine) => Promise<boolean>) {
  return format.withFile(options, async (engine) => {
    const copies = (await copiesIn(engine)).filter((copy) => existsSync(copy));
    if (copies.length > 0 && databaseOf(await readMark(format, engine), engine.file) === undefined) {
      throw configError(
        `${engine.file} is a plain copy of the ${format.noun} that published ${copies.join(', ')}, which may need these files: give ` +
          '--publish once, which makes it one of its own, or remove these copies.',
      );
    }
    const failures: UserError[] = [];
    for (const copy of copies) {
      try {
        const isOldCopy = async (open: Engine) => {
          await format.check(open);
          return isOld(open);
        };
        if (!(await format.withFile({ ...options, file: copy, readOnly: true }, isOldCopy))) continue;
        await publish(format, engine, copy);
      } catch (error) {
        if (!(error instanceof UserError)) throw error;
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  });
}

/** The copies of the database of which an open file is, or was, a plain copy. */
async function copiesOfOriginal(format: CopiedFormat, engine: Engine): Promise<string[]> {
  const former = await copiesIn(engine, 'published_at IS NULL');
  if (databaseOf(await readMark(format, engine), engine.file) !== undefined) return former;
  return [...former, ...(await copiesIn(engine)).filter((path) => existsSync(path))];
}

/** The copies on the list of an open file, without paths that lead to this file by now: there is no copy at them. */
async function copiesIn(engine: Engine, where = 'published_at IS NOT NULL'): Promise<string[]> {
  const rows = await engine.rows(`SELECT path FROM ${COPIES_TABLE} WHERE ${where} ORDER BY path`);
  const paths = rows.map(({ path }) => String(path));
  return paths.filter((path) => fileAt(path) !== fileAt(engine.file));
}

/**
 * Makes a new file of a database beside the open one; `fill` copies what is kept into it, as `NEW_DATABASE`. It is
 * removed unless `then` renames it into place. Throws what they throw, or UserError.
 */
export async function withNewDatabase<F, T>(
  format: CopiedFormat,
  engine: Engine,
  fill: () => Promise<F>,
  then: (path: string, filled: F) => Promise<T>,
): Promise<T> {
  const { file } = engine;
  const path = `${file}${REWRITING}`;
  const former = identityOf(file);
  removeDatabase(path);
  // A process that was about to rename such a file held the lock of this one, and died.
  await removeTemporaries(file, 0, 0);
  try {
    await engine.run('SET preserve_insertion_order = true');
    await engine.run(`ATTACH ${literal(path)} AS ${NEW_DATABASE} (${await format.newFile(engine)})`);
    copyOwner(file, path);
    const filled = await fill();
    await moveIdentity(format, engine, { from: former, to: identityOf(path), database: NEW_DATABASE });
    await engine.run(`DETACH ${NEW_DATABASE}`);
    return await then(path, filled);
  } finally {
    // Once the new file has replaced the former one, a file at this path belongs to the next process, which holds the
    // new file's lock.
    if (identityOf(file) === former) removeDatabase(path);
  }
}
