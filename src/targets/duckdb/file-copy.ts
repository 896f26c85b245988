import { chownSync, existsSync, statSync } from 'node:fs';
import { configError, systemError, transientError } from '../../base/errors.ts';
import { literal } from '../../base/sql.ts';
import { copyPathOf, NEW_FILE_OPTIONS, removeDatabase } from '../../engine/session/database-file.ts';
import { type Engine, MAIN_DATABASE } from '../../engine/session/engine.ts';
import { tableRefusalOf } from '../../engine/session/engine-errors.ts';
import { removeTemporaries, replaceFile } from '../../fs/atomic-file.ts';
import { withDiskErrors } from '../../fs/disk-failure.ts';
import { checkNotMounted, realOrGivenPath } from '../../fs/local-path.ts';
import { withLockFile } from '../../fs/lock.ts';
import { PERMISSION_BITS, setMode } from '../../fs/permissions.ts';
import type { PlaceState } from '../../table/place-state.ts';
import { EVENTS } from '../../table/tables.ts';
import type { PlaceOptions } from '../contract.ts';
import { checkExists, foreignTableNames, tablesOfFile, withLoadedFile } from './file-state.ts';

// A file written anew: a copy of all that it holds, without the bytes of removed rows, replaces it.

/** The copy as a database beside the file. */
const COPY_DATABASE = 'copy_of_file';

/**
 * Gives the space of removed rows back: a copy replaces the file once it is checked and synced. Returns the number of
 * rows of `events`, and the size of the file before and after. Throws UserError.
 */
export const compactFile = (options: PlaceOptions) =>
  withCopy(options, async (engine, copyPath) => {
    const rows = await engine.count(EVENTS.name);
    const bytesBefore = statSync(engine.file).size;
    await replaceDatabase(engine, copyPath);
    return { rows, bytesBefore, bytesAfter: statSync(engine.file).size };
  });

/**
 * Copies a file, and works on the file and its copy, which is removed unless `work` moves it. Meanwhile others may read
 * the file, but not write to it or replace it. Throws UserError.
 */
export async function withCopy<T>(
  options: PlaceOptions,
  work: (engine: Engine, copyPath: string, state: PlaceState) => Promise<T>,
): Promise<T> {
  const { address: file, lockWaitMs: waitMs, clock, signal } = options;
  checkExists(file);
  checkNotMounted(file);
  const copyPath = copyPathOf(realOrGivenPath(file));
  const lock = { subject: `the file ${file}`, waitMs, clock, signal };
  const copying = withLockFile(`${copyPath}.lock`, lock, async (checkHeld) => {
    // The write-ahead log of a file can only be emptied while the file is open for writing.
    await withLoadedFile(options, 'write', (engine) => engine.emptyWal());
    try {
      return await withLoadedFile(options, 'read_to_copy', async (engine, state) => {
        // From here on writers cannot open the file, and readers can.
        if (existsSync(`${engine.file}.wal`)) {
          throw transientError(`Another program has just written to ${file}: run again.`);
        }
        removeDatabase(copyPath);
        // A run that was killed while it made the file may have left it a second name: the bytes would stay under that.
        await removeTemporaries(engine.file);
        await copyDatabase(engine, state, copyPath);
        signal.throwIfAborted();
        checkHeld();
        return work(engine, copyPath, state);
      });
    } finally {
      removeDatabase(copyPath);
    }
  });
  return withDiskErrors({ path: file, consequence: 'the file was not written anew' }, copying);
}

/**
 * Puts a copy in the place of the file, which is open and so keeps writers away. Windows renames nothing over an open
 * file. There it is closed first, and stays if somebody wrote to it meanwhile.
 */
async function replaceDatabase(engine: Engine, copyPath: string): Promise<void> {
  if (process.platform === 'win32') {
    const { mtimeMs } = statSync(engine.file);
    await engine.close();
    if (statSync(engine.file).mtimeMs !== mtimeMs) throw transientError(`${engine.file} was written to: run again.`);
  }
  await replaceFile(engine.file, { finishedPath: copyPath });
}

/** Gives a copy the mode and the owner of the file that it is to replace. Throws UserError. */
function copyModeAndOwner(file: string, copyPath: string): void {
  const { mode, uid, gid } = statSync(file);
  const copyStat = statSync(copyPath);
  if (copyStat.uid !== uid || copyStat.gid !== gid) {
    try {
      chownSync(copyPath, uid, gid);
    } catch (error) {
      throw configError(
        `${file} belongs to another user or group, which a copy of it cannot be given: run as its owner. Nothing was changed.`,
        { cause: error },
      );
    }
  }
  setMode(copyPath, mode & PERMISSION_BITS);
}

/** Copies all that the file holds. A failure names the tables that DuckDB may refuse. */
async function copyDatabase(engine: Engine, state: PlaceState, copyPath: string): Promise<void> {
  await engine.run(`ATTACH ${literal(copyPath)} AS ${COPY_DATABASE} (${NEW_FILE_OPTIONS})`);
  try {
    copyModeAndOwner(engine.file, copyPath);
    await engine.keepOrder();
    await engine.run(`COPY FROM DATABASE ${MAIN_DATABASE} TO ${COPY_DATABASE}`);
    await checkCopied(engine);
  } catch (error) {
    if (tableRefusalOf(error) === undefined) throw error;
    const names = await foreignTableNames(engine, state);
    throw configError(
      `${engine.file} cannot be written anew: DuckDB refuses to copy its tables (${names.join(', ') || 'events'}), perhaps for a ` +
        'foreign key. Move such tables into another file. Nothing was changed.',
      { cause: error },
    );
  } finally {
    await engine.run(`DETACH ${COPY_DATABASE}`);
  }
}

/** Throws unless the copy has all rows of every table. */
async function checkCopied(engine: Engine): Promise<void> {
  for (const { name, qualifiedName } of await tablesOfFile(engine)) {
    const rows = await engine.count(`${MAIN_DATABASE}.${qualifiedName}`);
    const copiedRows = await engine.count(`${COPY_DATABASE}.${qualifiedName}`);
    if (copiedRows === rows) continue;
    throw systemError(
      `the copy of ${engine.file} has ${copiedRows} rows in ${name} instead of ${rows}: nothing was changed.`,
    );
  }
}
