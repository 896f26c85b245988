import { constants, existsSync, rmSync, statSync } from 'node:fs';
import { chmod, copyFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { configFailure, Failure, internalError, messageOf, transientFailure } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import { moveFile } from '../../fs/atomic-file.ts';
import { diskFailure } from '../../fs/disk-failure.ts';
import { fileExists, realFile } from '../sql/engine/database-file.ts';
import type { Engine, EngineOptions } from '../sql/engine/engine.ts';
import { checkStore, identityOf, type Mark, readMark, withFile } from './store.ts';

// Copies for readers (S52). A database has an id, and says which file it is by what the file system says of that file, which a plain
// copy of it does not share. A copy for readers carries the id of its database as a mark: only such a file is ever replaced.

const UNFINISHED = '.publishing';
const PERMISSIONS = 0o777;

type Options = Omit<EngineOptions, 'readOnly' | 'file'>;

/**
 * Throws a configuration failure for a place where no copy of `file` may be put: only one that is free, or has a copy of this very
 * database, may get one.
 */
export async function checkCopy(copy: string, file: string, options: Options): Promise<void> {
  const path = realFile(copy);
  if (!existsSync(dirname(path))) throw configFailure(`The folder of --publish ${copy} does not exist.`);
  if (!existsSync(path)) return;
  const mark = fileExists(file) ? await markIn(file, options) : undefined;
  await checkPlace(copy, path, file, mark && databaseOf(mark, file), options);
}

/** The same for a place that is taken. `database`: the id of the database; undefined if no copy of it can be there. */
async function checkPlace(
  copy: string,
  path: string,
  file: string,
  database: string | undefined,
  options: Options,
): Promise<void> {
  const found = statSync(path);
  if (!found.isFile()) throw configFailure(`--publish ${copy} is no file.`);
  if (fileExists(file) && identityOf(path) === identityOf(realFile(file)) && found.dev === statSync(file).dev) {
    throw configFailure(`--publish ${copy} is the file that is loaded: give another path.`);
  }
  if (found.nlink > 1) {
    throw configFailure(
      `--publish ${copy} has another name (a hard link), under which the old copy would stay: remove that first. It was not changed.`,
    );
  }
  const refused = (why: string, cause?: unknown) =>
    configFailure(
      `--publish ${copy} exists and is not a copy that this program made of this database; it was not changed: ${why} Give another path, or remove it.`,
      { cause },
    );
  let mark: Mark;
  try {
    mark = await checkWhole(path, options);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    throw refused(error.message, error);
  }
  if (mark.copyOf === null) throw refused('it is a database of its own.');
  if (mark.copyOf !== database) throw refused('it is a copy of another database.');
}

/** The id of a database, if the file that says so is the database itself: not a plain copy of it, nor a copy for readers. */
const databaseOf = ({ database, file, copyOf }: Mark, path: string): string | undefined =>
  copyOf === null && file === identityOf(realFile(path)) ? database : undefined;

const markIn = (file: string, options: Options): Promise<Mark> =>
  withFile({ ...options, file, readOnly: true }, async (engine) => {
    await checkStore(engine);
    return readMark(engine);
  });

/**
 * Puts a whole, checked copy of an open file beside `copy` and renames it into place: who has the former copy open keeps
 * it. The file remembers the copy first, so that a purge knows of it whatever happens. Throws Failure.
 */
export async function publish(engine: Engine, copy: string, options: Options): Promise<void> {
  const path = realFile(copy);
  const known = databaseOf(await readMark(engine), engine.file);
  if (existsSync(path)) await checkPlace(copy, path, engine.file, known, options);
  const database = await engine.transaction(() => remember(engine, path, known, options));
  await engine.run('CHECKPOINT target');
  await copyWhole(engine.file, path, database, options);
}

/** Adds a copy to the list. A plain copy of a database becomes one of its own with its first copy for readers, and forgets the other's. */
async function remember(engine: Engine, path: string, known: string | undefined, { clock }: Options): Promise<string> {
  if (known === undefined) {
    await engine.run('UPDATE _dfinery_state SET database = CAST(uuid() AS VARCHAR), file = $1, copy_of = NULL', [
      identityOf(engine.file),
    ]);
    await engine.run('DELETE FROM _dfinery_copies');
  }
  await engine.run('DELETE FROM _dfinery_copies WHERE path = $1', [path]);
  await engine.run('INSERT INTO _dfinery_copies VALUES ($1, $2)', [path, new Date(clock.now()).toISOString()]);
  return (await readMark(engine)).database;
}

async function copyWhole(file: string, path: string, database: string, options: Options): Promise<void> {
  const draft = unfinishedCopyOf(path);
  try {
    removeUnfinishedCopy(path);
    // A file system that can share the blocks does.
    await copyFile(file, draft, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
    const like = existsSync(path) ? path : file;
    await chmod(draft, statSync(like).mode & PERMISSIONS);
    await withFile({ ...options, file: draft }, async (engine) => {
      await engine.transaction(async () => {
        await engine.run('UPDATE _dfinery_state SET copy_of = $1', [database]);
        await engine.run('DELETE FROM _dfinery_copies');
      });
    });
    await checkWhole(draft, options);
    await moveFile(draft, path);
  } catch (error) {
    throw diskFailure(error, { what: `the copy for readers ${path}`, path, consequence: 'the former copy stays' });
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

/** Opens a copy for reading and counts its rows against its receipts. */
function checkWhole(path: string, options: Options): Promise<Mark> {
  return withFile({ ...options, file: path, readOnly: true }, async (engine) => {
    await checkStore(engine);
    const { found, wanted } = await engine.row(
      'SELECT (SELECT count(*) FROM events) AS found, (SELECT coalesce(sum(rows_live), 0) FROM _dfinery_windows) AS wanted',
    );
    if (Number(found) !== Number(wanted)) {
      throw internalError(`${path} has ${found} rows, its receipts ${wanted}: the copy was not published.`);
    }
    return readMark(engine);
  });
}

/** Throws a configuration failure for a copy for readers: what is to be changed is its database. */
export async function refuseCopy(engine: Engine): Promise<void> {
  if ((await readMark(engine)).copyOf === null) return;
  throw configFailure(
    `${engine.file} is a copy for readers: purge the database that it was made from, which publishes its copies anew. Nothing was done.`,
  );
}

export interface RepublishOptions extends Omit<EngineOptions, 'readOnly'> {
  readonly logger: Logger;
  /** Copies that are gone for good and leave the list. */
  readonly forgetCopies?: readonly string[] | undefined;
}

/**
 * Publishes every copy of a file again: after a purge no copy may hold the removed rows. Throws a Failure that names every copy
 * that could not be replaced or is not there, and may still hold them; it stays on the list. A plain copy of a database has no copies.
 */
export async function republish(options: RepublishOptions): Promise<number> {
  const failed: string[] = [];
  const published = await withFile(options, async (engine) => {
    if (databaseOf(await readMark(engine), engine.file) === undefined) return 0;
    await forgetCopies(engine, options.forgetCopies ?? []);
    let count = 0;
    for (const { path } of await engine.rows('SELECT path FROM _dfinery_copies ORDER BY path')) {
      const copy = String(path);
      try {
        if (!existsSync(copy)) {
          removeUnfinishedCopy(copy);
          throw configFailure(
            'it is not there: if it was moved, or lies on a share that is not mounted now, it still holds them',
          );
        }
        await publish(engine, copy, options);
        count++;
      } catch (error) {
        options.signal?.throwIfAborted();
        failed.push(`${copy} (${messageOf(error)})`);
      }
    }
    return count;
  });
  if (failed.length === 0) return published;
  throw transientFailure(
    `${options.file} is purged, but these copies for readers may still hold the people: ${failed.join('; ')}. Run the purge again when ` +
      'they can be replaced; for one that is gone for good, with --forget-copy FILE.',
  );
}

/** Takes copies off the list. Throws a configuration failure for one that is not on it, or is still there. */
async function forgetCopies(engine: Engine, copies: readonly string[]): Promise<void> {
  for (const copy of copies) {
    const path = resolve(copy);
    if (existsSync(path)) {
      throw configFailure(
        `--forget-copy ${copy} is still there: remove it first, since it may hold people who were purged.`,
      );
    }
    await engine.run('DELETE FROM _dfinery_copies WHERE path = $1', [path]);
  }
}
