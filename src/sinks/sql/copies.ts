import { constants, existsSync, rmSync, statSync } from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { configError, messageOf, UserError } from '../../base/errors.ts';
import { moveFile, removeTemporaries } from '../../fs/atomic-file.ts';
import { diskError } from '../../fs/disk-failure.ts';
import { literal } from '../../types/sql.ts';
import type { StatefulTarget } from '../target.ts';
import { checkLogPath, copyMode, copyOwner, fileExists, REWRITING, realFile, sweep } from './engine/database-file.ts';
import type { Engine, EngineOptions } from './engine/engine.ts';

// Copies for readers (S52), of a DuckDB file or of a catalog of DuckLake. A database has an id, and says which file it is by what the
// file system says of that file, which a plain copy of it does not share. A copy for readers carries the id of its database as a
// mark: only such a file is ever replaced.

/** A kind of database file of which copies are published. */
export interface CopiedFormat {
  /** What it is called in messages. */
  readonly noun: 'database' | 'catalog';
  /** Its table with the mark: one row, in columns as in `Mark`. */
  readonly marks: string;
  /** Opens a file, works on it and closes it. Throws UserError. */
  withFile<T>(options: EngineOptions, work: (engine: Engine) => Promise<T>): Promise<T>;
  /** Throws a configuration failure unless the open file is one of these, loaded by this program. */
  check(engine: Engine): Promise<void>;
  /** Throws also if the file lacks rows. */
  checkWhole(engine: Engine): Promise<void>;
}

/** A target whose place is one database file, with copies of it for readers (S52). */
export const withCopies = (target: StatefulTarget, load: () => Promise<CopiedFormat>): StatefulTarget => ({
  ...target,
  publishes: true,
  async open(file, options) {
    const format = await load();
    if (options.publish !== undefined) await checkCopy(format, options.publish, file, options);
    const sink = await target.open(file, options);
    // A sink that holds the lock of the file publishes it itself.
    sink.publish ??= (copy) =>
      format.withFile({ ...options, file }, (engine) => publish(format, engine, copy, options));
    return sink;
  },
  async people() {
    const [people, format] = await Promise.all([target.people(), load()]);
    return {
      ...people,
      async purge(file, query, options) {
        const purged = await people.purge(file, query, options);
        return { ...purged, unreached: await republish(format, { ...options, file }) };
      },
    };
  },
});

/** Which database a file is, or is a copy of for readers. */
interface Mark {
  readonly database: string;
  /** Which file it is, so that a plain copy is not taken for it. */
  readonly file: string;
  /** The id of the database that a copy for readers was made of. */
  readonly copyOf: string | null;
}

/** The table of the copies of a database: `path`, `published_at`. */
export const COPIES_TABLE = '_dfinery_copies';
const UNFINISHED = '.publishing';

type Options = Omit<EngineOptions, 'readOnly' | 'file'>;

/** What the file system says of a file, and of no plain copy of it; the same wherever it is moved on one file system. */
export function identityOf(path: string): string {
  const { ino, birthtimeNs } = statSync(path, { bigint: true });
  return `${ino}-${birthtimeNs}`;
}

async function readMark({ marks }: CopiedFormat, engine: Engine): Promise<Mark> {
  const { database, file, copy_of } = await engine.row(`SELECT database, file, copy_of FROM ${marks}`);
  return { database: String(database), file: String(file), copyOf: copy_of === null ? null : String(copy_of) };
}

/** Stores that a new file takes the place of another: `from` is what that one says it is. `schema`: the new file, as attached. */
export async function moveIdentity(
  { marks }: CopiedFormat,
  engine: Engine,
  { from, to, schema = 'target' }: { readonly from: string; readonly to: string; readonly schema?: string },
): Promise<void> {
  await engine.run(`UPDATE ${schema}.main.${marks} SET file = $2 WHERE file = $1`, [from, to]);
}

/** The id of a database, if the file that says so is the database itself: not a plain copy of it, nor a copy for readers. */
const databaseOf = ({ database, file, copyOf }: Mark, path: string): string | undefined =>
  copyOf === null && file === identityOf(realFile(path)) ? database : undefined;

/** True for a file that was copied from a database which is still where it was. Throws UserError. */
export async function isPlainCopy(
  format: CopiedFormat,
  { file, original }: { readonly file: string; readonly original: string },
  options: Options,
): Promise<boolean> {
  if (!fileExists(original) || identityOf(realFile(original)) === identityOf(realFile(file))) return false;
  const { database } = await markOf(format, file, options);
  const found = await databaseAt(format, original, options).catch((error) => {
    // What is there now is no database of ours.
    if (error instanceof UserError && error.kind === 'config') return undefined;
    throw error;
  });
  return found === database;
}

/** Throws a configuration failure for a copy for readers: what is to be changed is its database. */
export async function refuseCopy(format: CopiedFormat, engine: Engine): Promise<void> {
  if ((await readMark(format, engine)).copyOf !== null) throw copyError(format, engine.file);
}

export const copyError = ({ noun }: CopiedFormat, file: string): UserError =>
  configError(
    `${file} is a copy for readers: give the ${noun} that it was made from, which publishes its copies anew. Nothing was done.`,
  );

/**
 * Throws a configuration failure for a place where no copy of `file` may be put: only one that is free, or has a copy of this very
 * database, may get one.
 */
export async function checkCopy(format: CopiedFormat, copy: string, file: string, options: Options): Promise<void> {
  checkLogPath(copy);
  const path = realFile(copy);
  if (!existsSync(dirname(path))) throw configError(`The folder of --publish ${copy} does not exist.`);
  if (!existsSync(path)) return;
  const database = fileExists(file) ? await databaseAt(format, file, options) : undefined;
  await checkPlace(format, { name: `--publish ${copy}`, path, file, database }, options);
}

/** The place of a copy that is taken. `database`: the id of the database; undefined if no copy of it can be there. */
interface TakenPlace {
  /** What messages call it. */
  readonly name: string;
  readonly path: string;
  readonly file: string;
  readonly database: string | undefined;
}

async function checkPlace(
  format: CopiedFormat,
  { name, path, file, database }: TakenPlace,
  options: Options,
): Promise<void> {
  const found = statSync(path);
  if (!found.isFile()) throw configError(`${name} is no file.`);
  if (fileExists(file) && identityOf(path) === identityOf(realFile(file)) && found.dev === statSync(file).dev) {
    throw configError(`${name} is the file that is loaded: give another path.`);
  }
  if (found.nlink > 1) {
    throw configError(
      `${name} has another name (a hard link), under which the old copy would stay: remove that first. It was not changed.`,
    );
  }
  const refused = (why: string, cause?: unknown) =>
    configError(
      `${name} exists and is not a copy that this program made of this ${format.noun}; it was not changed: ${why} Give another path, or remove it.`,
      { cause },
    );
  let mark: Mark;
  try {
    mark = await markOf(format, path, options, format.checkWhole);
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    throw refused(error.message, error);
  }
  if (mark.copyOf === null) throw refused(`it is a ${format.noun} of its own.`);
  if (mark.copyOf !== database) throw refused(`it is a copy of another ${format.noun}.`);
}

/** The id of the database that is in a file, as of `databaseOf`. */
async function databaseAt(format: CopiedFormat, file: string, options: Options): Promise<string | undefined> {
  for (;;) {
    const identity = identityOf(realFile(file));
    const mark = await markOf(format, file, options);
    // A purge or `compact` may have put a new file in its place meanwhile: its mark is then to be read, not that of the former one.
    if (identityOf(realFile(file)) === identity) return databaseOf(mark, file);
  }
}

/** The mark of a file, which is opened for reading and checked. */
function markOf(format: CopiedFormat, file: string, options: Options, check = format.check): Promise<Mark> {
  return format.withFile({ ...options, file, readOnly: true }, async (engine) => {
    await check(engine);
    return readMark(format, engine);
  });
}

/**
 * Puts a whole, checked copy of an open file beside `copy` and renames it into place: who has the former copy open keeps
 * it. The file remembers the copy first, so that a purge knows of it whatever happens. `name`: what messages call the copy.
 * Throws UserError.
 */
export async function publish(
  format: CopiedFormat,
  engine: Engine,
  copy: string,
  options: Options,
  name = `--publish ${copy}`,
): Promise<void> {
  const path = realFile(copy);
  const known = databaseOf(await readMark(format, engine), engine.file);
  if (existsSync(path)) await checkPlace(format, { name, path, file: engine.file, database: known }, options);
  const database = await engine.transaction(() => remember(format, engine, { path, known }, options));
  await engine.run('CHECKPOINT target');
  await copyWhole(format, { file: engine.file, path, database }, options);
}

/** Adds a copy to the list. A plain copy of a database becomes one of its own with its first copy for readers, and forgets the other's. */
async function remember(
  format: CopiedFormat,
  engine: Engine,
  { path, known }: { readonly path: string; readonly known: string | undefined },
  { clock }: Options,
): Promise<string> {
  if (known === undefined) {
    await engine.run(`UPDATE ${format.marks} SET database = CAST(uuid() AS VARCHAR), file = $1, copy_of = NULL`, [
      identityOf(engine.file),
    ]);
    await engine.run(`DELETE FROM ${COPIES_TABLE}`);
  }
  await engine.run(`DELETE FROM ${COPIES_TABLE} WHERE path = $1`, [path]);
  const at = new Date(clock.now()).toISOString();
  await engine.run(`INSERT INTO ${COPIES_TABLE} VALUES ($1, $2)`, [path, at]);
  return (await readMark(format, engine)).database;
}

async function copyWhole(
  format: CopiedFormat,
  { file, path, database }: { readonly file: string; readonly path: string; readonly database: string },
  options: Options,
): Promise<void> {
  const draft = unfinishedCopyOf(path);
  try {
    removeUnfinishedCopy(path);
    // A file system that can share the blocks does.
    await copyFile(file, draft, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
    copyMode(existsSync(path) ? path : file, draft);
    await format.withFile({ ...options, file: draft }, (engine) =>
      engine.transaction(async () => {
        await engine.run(`UPDATE ${format.marks} SET copy_of = $1`, [database]);
        await engine.run(`DELETE FROM ${COPIES_TABLE}`);
      }),
    );
    await markOf(format, draft, options, format.checkWhole);
    await moveFile(draft, path);
  } catch (error) {
    throw diskError(error, { what: `the copy for readers ${path}`, path, consequence: 'the former copy stays' });
  } finally {
    removeUnfinishedCopy(path);
  }
}

const unfinishedCopyOf = (path: string): string => join(dirname(path), `.${basename(path)}${UNFINISHED}`);

/** What a run that was killed while it published has left holds all rows. */
function removeUnfinishedCopy(path: string): void {
  const draft = unfinishedCopyOf(path);
  for (const left of [draft, `${draft}.wal`]) rmSync(left, { force: true });
  rmSync(`${draft}.tmp`, { force: true, recursive: true });
}

export interface RepublishOptions extends Omit<EngineOptions, 'readOnly'> {
  /** Copies that are gone for good and leave the list. */
  readonly forgetCopies?: readonly string[] | undefined;
}

/**
 * Publishes every copy of a file again: after a purge no copy may hold the removed rows. Returns a sentence that names every copy
 * which could not be replaced or is not there, and may still hold them; it stays on the list. A plain copy of a database has no copies.
 */
export async function republish(format: CopiedFormat, options: RepublishOptions): Promise<string[]> {
  const failed: string[] = [];
  const replace = async (engine: Engine, copy: string) => {
    try {
      if (!existsSync(copy)) {
        removeUnfinishedCopy(copy);
        throw configError(
          'it is not there: if it was moved, or lies on a share that is not mounted now, it still holds them',
        );
      }
      await publish(format, engine, copy, options, 'it');
    } catch (error) {
      options.signal?.throwIfAborted();
      failed.push(`${copy} (${messageOf(error)})`);
    }
  };
  try {
    await format.withFile(options, async (engine) => {
      if (databaseOf(await readMark(format, engine), engine.file) === undefined) return;
      await forgetCopies(engine, options.forgetCopies ?? []);
      for (const copy of await copiesIn(engine)) await replace(engine, copy);
    });
  } catch (error) {
    if (error instanceof UserError) return [error.message];
    throw error;
  }
  if (failed.length === 0) return [];
  return [
    `${options.file} is purged, but these copies for readers may still hold the people: ${failed.join('; ')}. Run the purge again when ` +
      'they can be replaced; for one that is gone for good, with --forget-copy FILE.',
  ];
}

/** Takes copies off the list that are gone, and removes what a run that was killed left beside them. */
async function forgetCopies(engine: Engine, copies: readonly string[]): Promise<void> {
  for (const path of copies.map((copy) => resolve(copy)).filter((one) => !existsSync(one))) {
    removeUnfinishedCopy(path);
    await engine.run(`DELETE FROM ${COPIES_TABLE} WHERE path = $1`, [path]);
  }
}

/** The copies for readers of the database that an open file is a plain copy of; none for that database itself. */
export async function copiesOfOriginal(format: CopiedFormat, engine: Engine): Promise<string[]> {
  if (databaseOf(await readMark(format, engine), engine.file) !== undefined) return [];
  return (await copiesIn(engine)).filter((path) => existsSync(path));
}

const copiesIn = async (engine: Engine): Promise<string[]> =>
  (await engine.rows(`SELECT path FROM ${COPIES_TABLE} ORDER BY path`)).map(({ path }) => String(path));

/**
 * Writes the database of an open file anew, in a file beside it that is removed in the end unless `then` has put it in the former
 * one's place. `how`: of a new file; `fill`: puts what is to be kept into the database `rewritten`. Throws what they throw, or UserError.
 */
export async function withRewritten<F, T>(
  format: CopiedFormat,
  engine: Engine,
  how: string,
  fill: () => Promise<F>,
  then: (path: string, filled: F) => Promise<T>,
): Promise<T> {
  const { file } = engine;
  const path = `${file}${REWRITING}`;
  const former = identityOf(file);
  sweep(path);
  // Whoever was to name one of them had this file's lock, and died.
  await removeTemporaries(file, 0, 0);
  try {
    await engine.run('SET preserve_insertion_order = true');
    await engine.run(`ATTACH ${literal(path)} AS rewritten (${how})`);
    copyOwner(file, path);
    const filled = await fill();
    await moveIdentity(format, engine, { from: former, to: identityOf(path), schema: 'rewritten' });
    await engine.run('DETACH rewritten');
    return await then(path, filled);
  } finally {
    // Once it has taken the place of the file, a file of its name is that of the next process, which has the new file's lock.
    if (identityOf(file) === former) sweep(path);
  }
}
