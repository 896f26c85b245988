import { existsSync, statSync } from 'node:fs';
import { configError, internalError, messageOf, transientError } from '../../base/errors.ts';
import { EVENT_NAME } from '../../cells/columns/groups.ts';
import { asText } from '../../cells/types/sql.ts';
import { namesOf, namingObjects } from '../../engine/naming-objects.ts';
import { NEW_DATABASE, withNewDatabase } from '../../engine/new-database.ts';
import { findPeople, type Lookup } from '../../engine/people.ts';
import { rowsByWindow } from '../../engine/rows/counts.ts';
import { fileExists, REWRITING, realFile } from '../../engine/session/database-file.ts';
import type { Engine, EngineOptions } from '../../engine/session/engine.ts';
import { openEngine, withFile } from '../../engine/session/open.ts';
import { identifier } from '../../engine/session/quote.ts';
import { columnOfSource } from '../../engine/views.ts';
import { moveFile } from '../../fs/atomic-file.ts';
import { diskError } from '../../fs/disk-failure.ts';
import { withLockFile } from '../../fs/lock.ts';
import type { TableState } from '../../table/state.ts';
import { refuseCopy } from '../copies/mark.ts';
import { republish } from '../copies/republish.ts';
import { checkOnlyName, noTableError } from '../failures.ts';
import type { RewriteResult } from '../maintenance.ts';
import type { PeopleQuery, PurgeOptions, PurgeResult, PurgeTrial } from '../people.ts';
import { checkStore, STORE_TABLES } from './check.ts';
import { eventRowsIn } from './read.ts';
import { EVENT_NAMES } from './record-tables.ts';
import { COPIED, readStoredState } from './store.ts';

/** Copies a file's live rows into a new one, which replaces it once it is checked and synced. Throws UserError. */
export async function rewriteDuckDb(options: EngineOptions): Promise<RewriteResult> {
  return rewriteLocked(options, async () => undefined, replaceFile);
}

type DuckDbPurge = EngineOptions & Partial<Pick<PurgeOptions, 'onFound' | 'forgetCopies'>>;

/**
 * Rewrites a file without the rows of the people that are found while it is locked, then publishes its copies for
 * readers again. Throws UserError.
 */
export async function purgeDuckDb(options: DuckDbPurge, query: PeopleQuery): Promise<PurgeResult> {
  const find = async (engine: Engine, state: TableState) => {
    const lookup = await findInDatabase(engine, state, query);
    await options.onFound?.(lookup.found);
    return lookup;
  };
  const purged = await rewriteLocked(options, find, async (engine, newFile, { found }) => ({
    ...(await replaceFile(engine, newFile)),
    found,
  }));
  return { ...purged, unreached: await republish(COPIED, options) };
}

export function tryPurgeDuckDb(options: EngineOptions, query: PeopleQuery): Promise<PurgeTrial> {
  const find = (engine: Engine, state: TableState) => findInDatabase(engine, state, query);
  return rewriteLocked(options, find, async (engine, _newFile, { found }) => ({
    found,
    foreignTables: [...(await foreignTables(engine)), ...(await namingObjects(engine, namesOf(query, found)))],
  }));
}

async function findInDatabase(engine: Engine, state: TableState, query: PeopleQuery): Promise<Lookup> {
  await refuseCopy(COPIED, engine);
  return findPeople(await eventRowsIn(engine, state, query), query);
}

async function replaceFile(engine: Engine, { path, rows, rowsRemoved }: NewFile): Promise<RewriteResult> {
  const bytesBefore = statSync(engine.file).size;
  await moveFile(path, engine.file);
  return { rows, rowsRemoved, files: [engine.file], bytesBefore, bytesAfter: statSync(engine.file).size };
}

/** A new file at `path`, beside the one that it is to replace. */
interface NewFile extends Pick<RewriteResult, 'rows' | 'rowsRemoved'> {
  readonly path: string;
}

/**
 * Locks a file, finds the people to leave out, if any, copies the rest, and calls `then`. The file is open for reading
 * alone, so that a lock beside it must keep other rewrites from replacing it.
 */
async function rewriteLocked<L extends Lookup | undefined, T>(
  options: EngineOptions,
  find: (engine: Engine, state: TableState) => Promise<L>,
  then: (engine: Engine, newFile: NewFile, lookup: L) => Promise<T>,
): Promise<T> {
  const { file, lockWaitMs: waitMs, clock, signal } = options;
  if (!fileExists(file)) throw noTableError(file);
  const rewrite = async (engine: Engine, checkHeld: () => void) => {
    await checkOnlyName(engine.file);
    const state = await readStoredState(engine);
    const lookup = await find(engine, state);
    const fill = async () => {
      const rowsRemoved = await copyTables(engine, state, lookup);
      await checkCounts(engine, rowsRemoved);
      return { rows: await engine.count(`${NEW_DATABASE}.main.events`), rowsRemoved };
    };
    return withNewDatabase(COPIED, engine, fill, (path, counts) => {
      signal?.throwIfAborted();
      checkHeld();
      return then(engine, { ...counts, path }, lookup);
    });
  };
  const locked = async (checkHeld: () => void) => {
    const engine = await openFinished(options);
    try {
      return await engine.guarded(() => rewrite(engine, checkHeld));
    } finally {
      await engine.close();
    }
  };
  try {
    const lock = { what: `the file ${file}`, waitMs, clock, signal };
    return await withLockFile(`${realFile(file)}${REWRITING}.lock`, lock, locked);
  } catch (error) {
    throw diskError(error, { what: file, path: file, consequence: 'nothing was changed' });
  }
}

/** Opens the file for reading once nothing is left in its write-ahead log; writers cannot open it meanwhile. */
async function openFinished(options: EngineOptions): Promise<Engine> {
  await withFile(options, async (writer) => {
    await checkStore(writer);
    await writer.emptyWal();
  });
  const reader = await openEngine({ ...options, readOnly: true });
  if (!existsSync(`${reader.file}.wal`)) return reader;
  await reader.close();
  throw transientError(`Another program has just written to ${options.file}: run again.`);
}

/** Copies all tables; returns the number of rows left out. A failure names the tables that DuckDB may refuse. */
async function copyTables(engine: Engine, state: TableState, lookup: Lookup | undefined): Promise<number> {
  try {
    if (lookup !== undefined) return await copyWithout(engine, state, lookup);
    await engine.run(`COPY FROM DATABASE ${engine.database} TO ${NEW_DATABASE}`);
    return 0;
  } catch (error) {
    if (!/^(Binder|Catalog|Constraint|Dependency|Not implemented) Error/.test(messageOf(error))) throw error;
    const names = await foreignTables(engine);
    throw configError(
      `${engine.file} cannot be written anew: DuckDB refuses to copy its tables (${names.join(', ') || 'events'}), perhaps for a ` +
        'generated column or a foreign key. Move such tables into another file. Nothing was changed.',
      { cause: error },
    );
  }
}

async function foreignTables(engine: Engine): Promise<string[]> {
  const names = (await tablesOf(engine)).map(({ name }) => name);
  return names.filter((name) => !STORE_TABLES.has(name)).sort();
}

/** Copies the empty tables, then the rows without those left out, so that these are never written. */
async function copyWithout(engine: Engine, { columns }: TableState, { condition }: Lookup): Promise<number> {
  await engine.run(`COPY FROM DATABASE ${engine.database} TO ${NEW_DATABASE} (SCHEMA)`);
  const name = columnOfSource(columns, EVENT_NAME);
  const kept = new Map([
    ['events', ` WHERE NOT (${condition})`],
    // The name of an event that only these people had is left out with their rows.
    [EVENT_NAMES.name, ` WHERE name IN (SELECT ${asText(name)} FROM events WHERE NOT (${condition}))`],
  ]);
  for (const { name: table, sql } of await tablesOf(engine)) {
    await engine.run(
      `INSERT INTO ${NEW_DATABASE}.${sql} SELECT * FROM ${engine.database}.${sql}${kept.get(table) ?? ''}`,
    );
  }
  const gone = await rowsByWindow(engine, `events WHERE ${condition}`);
  for (const [windowNumber, rows] of gone) {
    await engine.run(`
      UPDATE ${NEW_DATABASE}._dfinery_windows
      SET rows_live = rows_live - ${rows}
      WHERE number = ${windowNumber}`);
  }
  return [...gone.values()].reduce((sum, rows) => sum + rows, 0);
}

/** The tables of the file, each by its name, with its schema unless that is `main`, and as SQL. */
async function tablesOf(engine: Engine): Promise<{ readonly name: string; readonly sql: string }[]> {
  const rows = await engine.rows(`
    SELECT schema_name AS schema, table_name AS name
    FROM duckdb_tables()
    WHERE database_name = current_database() AND NOT internal`);
  return rows.map(({ schema, name }) => ({
    name: schema === 'main' ? String(name) : `${schema}.${name}`,
    sql: `${identifier(String(schema))}.${identifier(String(name))}`,
  }));
}

async function checkCounts(engine: Engine, rowsRemoved: number): Promise<void> {
  for (const { name, sql } of await tablesOf(engine)) {
    const wanted = (await engine.count(`${engine.database}.${sql}`)) - (name === 'events' ? rowsRemoved : 0);
    const found = await engine.count(`${NEW_DATABASE}.${sql}`);
    if (found === wanted || (name === EVENT_NAMES.name && found < wanted)) continue;
    throw internalError(
      `the copy of ${engine.file} has ${found} rows in ${name} instead of ${wanted}: nothing was changed.`,
    );
  }
}
