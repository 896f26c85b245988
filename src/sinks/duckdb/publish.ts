import { constants, existsSync, realpathSync, rmSync, statSync } from 'node:fs';
import { chmod, copyFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { configFailure, defect, Failure, messageOf, transientFailure } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import { moveFile } from '../../fs/atomic-file.ts';
import { diskFailure } from '../../fs/disk-failure.ts';
import { type Engine, type EngineOptions, openEngine } from '../sql/engine/engine.ts';
import { engineFailure } from '../sql/engine/faults.ts';
import { checkStore } from './store.ts';

const UNFINISHED = '.publishing';
const PERMISSIONS = 0o777;

type Options = Omit<EngineOptions, 'readOnly' | 'file'>;

/** The stored list of a file's copies for readers: absolute paths. */
async function readCopies(engine: Engine): Promise<string[]> {
  const rows = await engine.rows('SELECT path FROM _dfinery_copies ORDER BY path');
  return rows.map(({ path }) => String(path));
}

/** Throws a configuration failure for a place where no copy of `file` may be put: the file itself, or one of others. */
export async function checkCopy(copy: string, file: string, options: Options): Promise<void> {
  const path = resolve(copy);
  if (!existsSync(dirname(path))) throw configFailure(`The folder of --publish ${copy} does not exist.`);
  if (!existsSync(path)) return;
  if (!statSync(path).isFile()) throw configFailure(`--publish ${copy} is no file.`);
  if (existsSync(file) && realpathSync(path) === realpathSync(file)) {
    throw configFailure(`--publish ${copy} is the file that is loaded: give another path.`);
  }
  try {
    await checkWhole(path, options);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    throw configFailure(
      `--publish ${copy} exists and is not a copy made by this program; it was not changed: ${error.message}`,
      {
        cause: error,
      },
    );
  }
}

/**
 * Puts a whole, checked copy of an open file beside `copy` and renames it into place: who has the former copy open keeps
 * it. The file remembers the copy first, so that a purge knows of it whatever happens. Throws Failure.
 */
export async function publish(engine: Engine, copy: string, options: Options): Promise<void> {
  const path = resolve(copy);
  await remember(engine, path, new Date(options.clock.now()).toISOString());
  await engine.run('CHECKPOINT target');
  await copyWhole(engine.file, path, options);
}

async function remember(engine: Engine, path: string, at: string): Promise<void> {
  await engine.transaction(async () => {
    await engine.run('DELETE FROM _dfinery_copies WHERE path = $1', [path]);
    await engine.run('INSERT INTO _dfinery_copies VALUES ($1, $2)', [path, at]);
  });
}

async function copyWhole(file: string, path: string, options: Options): Promise<void> {
  const draft = unfinishedCopyOf(path);
  try {
    removeUnfinishedCopy(path);
    // A file system that can share the blocks does.
    await copyFile(file, draft, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
    const like = existsSync(path) ? path : file;
    await chmod(draft, statSync(like).mode & PERMISSIONS);
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
  for (const left of [unfinishedCopyOf(path), `${unfinishedCopyOf(path)}.wal`]) rmSync(left, { force: true });
}

/** Opens a copy for reading and counts its rows against its receipts. */
async function checkWhole(path: string, options: Options): Promise<void> {
  const engine = await openEngine({ ...options, file: path, readOnly: true });
  try {
    await checkStore(engine);
    const { found, wanted } = await engine.row(
      'SELECT (SELECT count(*) FROM events) AS found, (SELECT coalesce(sum(rows_live), 0) FROM _dfinery_windows) AS wanted',
    );
    if (Number(found) !== Number(wanted)) {
      throw defect(`${path} has ${found} rows, its receipts ${wanted}: the copy was not published.`);
    }
  } catch (error) {
    throw engineFailure(error, path);
  } finally {
    await engine.close();
  }
}

/**
 * Publishes every copy of a file again: after a purge no copy may hold the removed rows. A missing copy is dropped from the
 * list, with a warning. Throws a Failure that names every copy that could not be replaced and still holds the rows.
 */
export async function republish(
  options: Omit<EngineOptions, 'readOnly'> & { readonly logger: Logger },
): Promise<number> {
  const engine = await openEngine(options);
  const failed: string[] = [];
  let published = 0;
  try {
    for (const path of await readCopies(engine)) {
      try {
        if (!existsSync(path)) {
          removeUnfinishedCopy(path);
          options.logger.warn(
            'purge.copy_missing',
            `The copy for readers ${path} is not there any more: it is taken off the list. If it was moved, or lies on a share that is not mounted now, it still holds the people: remove it there.`,
          );
          await engine.run('DELETE FROM _dfinery_copies WHERE path = $1', [path]);
          continue;
        }
        // The list is part of a file that others may have written: only what is a copy of ours is replaced.
        await checkCopy(path, engine.file, options);
        await publish(engine, path, options);
        published++;
      } catch (error) {
        failed.push(`${path} (${messageOf(error)})`);
      }
    }
  } finally {
    await engine.close();
  }
  if (failed.length === 0) return published;
  throw transientFailure(
    `${options.file} is purged, but these copies for readers still hold the people: ${failed.join('; ')}. Remove them, or run the purge again when they can be replaced.`,
  );
}
