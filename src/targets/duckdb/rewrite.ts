import { existsSync, statSync } from 'node:fs';
import { configError, internalError, messageOf, transientError } from '../../base/errors.ts';
import { identifier, literal } from '../../cells/types/sql.ts';
import { copyOwner, newFile, REWRITING, realFile, removeDatabase } from '../../engine/session/database-file.ts';
import type { Engine, EngineOptions } from '../../engine/session/engine.ts';
import { openEngine, withFile } from '../../engine/session/open.ts';
import { moveFile, removeTemporaries } from '../../fs/atomic-file.ts';
import { diskError } from '../../fs/disk-failure.ts';
import { withLockFile } from '../../fs/lock.ts';
import { USER_PROFILES } from '../../table/tables.ts';
import type { RewriteResult } from '../contract.ts';
import { noTableError } from '../failures.ts';
import { OWN_NAMES, readOnly, readStored } from './store.ts';

// A file written anew: a copy of all that it holds, without the bytes of removed rows, replaces it.

const COPY = 'new_database';

/** Copies a file into a new one, which replaces it once it is checked and synced. Throws UserError. */
export const rewriteDuckDb = (options: EngineOptions): Promise<RewriteResult> =>
  withCopy(options, async (engine, path) => {
    const rows = await engine.count('events');
    const bytesBefore = statSync(engine.file).size;
    await replaceDatabase(engine, path);
    return { rows, rowsRemoved: 0, bytesBefore, bytesAfter: statSync(engine.file).size };
  });

/**
 * Copies a file, and calls `then` with the path of the copy, which is removed unless `then` moves it. The file is open
 * for reading alone. A lock beside it keeps other rewrites from replacing it.
 */
export async function withCopy<T>(
  options: EngineOptions,
  then: (engine: Engine, path: string) => Promise<T>,
): Promise<T> {
  const { file, lockWaitMs: waitMs, clock, signal } = options;
  readOnly(options);
  const locked = async (checkHeld: () => void) => {
    const engine = await openFinished(options);
    const path = `${engine.file}${REWRITING}`;
    try {
      return await engine.guarded(async () => {
        removeDatabase(path);
        await removeTemporaries(engine.file, 0, 0);
        await copyDatabase(engine, path);
        signal?.throwIfAborted();
        checkHeld();
        return then(engine, path);
      });
    } finally {
      await engine.close();
      removeDatabase(path);
    }
  };
  try {
    const lock = { what: `the file ${file}`, waitMs, clock, signal };
    return await withLockFile(`${realFile(file)}${REWRITING}.lock`, lock, locked);
  } catch (error) {
    throw diskError(error, { what: file, path: file, consequence: 'the file was not written anew' });
  }
}

/**
 * Puts a copy in the place of the file, which is open and so keeps writers away. Windows renames nothing over an open
 * file: there it is closed first, and a file that somebody wrote to meanwhile stays.
 */
async function replaceDatabase(engine: Engine, copy: string): Promise<void> {
  if (process.platform === 'win32') {
    const { mtimeMs } = statSync(engine.file);
    await engine.close();
    if (statSync(engine.file).mtimeMs !== mtimeMs) throw transientError(`${engine.file} was written to: run again.`);
  }
  await moveFile(copy, engine.file);
}

/** Opens the file for reading once nothing is left in its write-ahead log; writers cannot open it meanwhile. */
async function openFinished(options: EngineOptions): Promise<Engine> {
  await withFile(options, async (writer) => {
    if ((await readStored(writer)) === undefined) throw noTableError(writer.file);
    await writer.emptyWal();
  });
  const reader = await openEngine({ ...options, readOnly: true, mayAttach: true });
  if (!existsSync(`${reader.file}.wal`)) return reader;
  await reader.close();
  throw transientError(`Another program has just written to ${options.file}: run again.`);
}

/** Copies all that the file holds. A failure names the tables that DuckDB may refuse. */
async function copyDatabase(engine: Engine, path: string): Promise<void> {
  const columns = await engine.count(
    "duckdb_columns() WHERE database_name = current_database() AND table_name = 'events'",
  );
  await engine.run('SET preserve_insertion_order = true');
  await engine.run(`ATTACH ${literal(path)} AS ${COPY} (${newFile(columns)})`);
  try {
    copyOwner(engine.file, path);
    await engine.run(`COPY FROM DATABASE ${engine.database} TO ${COPY}`);
    for (const sql of await tablesOf(engine)) {
      const [wanted, found] = [await engine.count(`${engine.database}.${sql}`), await engine.count(`${COPY}.${sql}`)];
      if (found === wanted) continue;
      throw internalError(
        `the copy of ${engine.file} has ${found} rows in ${sql} instead of ${wanted}: nothing was changed.`,
      );
    }
  } catch (error) {
    if (!/^(Binder|Catalog|Constraint|Dependency|Not implemented) Error/.test(messageOf(error))) throw error;
    const names = await foreignTables(engine);
    throw configError(
      `${engine.file} cannot be written anew: DuckDB refuses to copy its tables (${names.join(', ') || 'events'}), perhaps for a ` +
        'foreign key. Move such tables into another file. Nothing was changed.',
      { cause: error },
    );
  } finally {
    await engine.run(`DETACH ${COPY}`);
  }
}

/** The tables of the file as SQL. */
async function tablesOf(engine: Engine): Promise<string[]> {
  const rows = await engine.rows(`
    SELECT schema_name AS schema, table_name AS name
    FROM duckdb_tables()
    WHERE database_name = current_database() AND NOT internal`);
  return rows.map(({ schema, name }) => `${identifier(String(schema))}.${identifier(String(name))}`);
}

/** The tables of the file that this program did not make. */
export async function foreignTables(engine: Engine): Promise<string[]> {
  const stored = await readStored(engine);
  const own = new Set([...OWN_NAMES, ...(stored?.state.profiles === undefined ? [] : [USER_PROFILES.name])]);
  const rows = await engine.rows(`
    SELECT CASE schema_name WHEN 'main' THEN table_name ELSE schema_name || '.' || table_name END AS name
    FROM duckdb_tables()
    WHERE database_name = current_database() AND NOT internal
    ORDER BY 1`);
  return rows.map(({ name }) => String(name)).filter((name) => !own.has(name));
}
