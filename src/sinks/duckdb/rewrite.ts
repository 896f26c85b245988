import { chmodSync, closeSync, existsSync, fsyncSync, openSync, renameSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { configFailure, defect, transientFailure } from '../../base/errors.ts';
import { literal } from '../../types/sql.ts';
import { type Engine, type EngineOptions, fileExists, openEngine, REWRITING, sweep } from '../sql/engine/engine.ts';
import { engineFailure } from '../sql/engine/faults.ts';
import { NEW_FILE } from '../sql/engine/new-file.ts';
import { identifier } from '../sql/engine/quote.ts';
import { createLeftOut, isLeftOut } from '../sql/people.ts';
import type { LeaveOut, Rewritten } from '../target.ts';
import { readColumns } from './columns-table.ts';
import { checkStore } from './store.ts';

export interface RewriteOptions extends Omit<EngineOptions, 'readOnly'> {
  readonly leaveOut?: LeaveOut | undefined;
}

interface Table {
  readonly schema: string;
  readonly name: string;
}

const PERMISSIONS = 0o777;
const MOST_TRIES = 3;

/**
 * Copies a file's live rows into a new one beside it, checks and fsyncs it, and renames it into place: whatever instant
 * it stops at, one whole file is there. The old file is locked all the while. Throws Failure.
 */
export async function rewriteDuckDb(options: RewriteOptions): Promise<Rewritten> {
  if (!fileExists(options.file)) throw configFailure(`${options.file} does not exist: nothing was done.`);
  const engine = await openSettled(options);
  try {
    await checkStore(engine);
    return await copyAndReplace(engine, options);
  } catch (error) {
    options.signal?.throwIfAborted();
    throw engineFailure(error, engine.file);
  } finally {
    await engine.close();
    sweep(`${engine.file}${REWRITING}`);
  }
}

/** Opens the file for reading, which keeps writers away, once nothing is left in its write-ahead log. */
async function openSettled(options: RewriteOptions): Promise<Engine> {
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const writer = await openEngine(options);
    await writer.close();
    const reader = await openEngine({ ...options, readOnly: true });
    if (!existsSync(`${reader.file}.wal`)) return reader;
    await reader.close();
  }
  throw transientFailure(`${options.file} is being written to all the time: run again when it is not.`);
}

async function copyAndReplace(engine: Engine, { leaveOut, signal }: RewriteOptions): Promise<Rewritten> {
  const { file } = engine;
  const fresh = `${file}${REWRITING}`;
  sweep(fresh);
  await engine.run('SET preserve_insertion_order = true');
  await engine.run(`ATTACH ${literal(fresh)} AS rewritten (${NEW_FILE})`);
  chmodSync(fresh, statSync(file).mode & PERMISSIONS);
  const stop = () => engine.interrupt();
  signal?.addEventListener('abort', stop);
  try {
    signal?.throwIfAborted();
    const rowsLeftOut = leaveOut === undefined ? await copyAll(engine) : await copyWithout(engine, leaveOut);
    await checkCounts(engine, rowsLeftOut);
    const rows = await countOf(engine, 'rewritten', { schema: 'main', name: 'events' });
    await engine.run('DETACH rewritten');
    signal?.throwIfAborted();
    const bytesBefore = statSync(file).size;
    replace(fresh, file);
    return { rows, rowsLeftOut, bytesBefore, bytesAfter: statSync(file).size };
  } finally {
    signal?.removeEventListener('abort', stop);
  }
}

async function copyAll(engine: Engine): Promise<number> {
  await engine.run('COPY FROM DATABASE target TO rewritten');
  return 0;
}

/** The tables first, then their rows, so that what is left out is never written. */
async function copyWithout(engine: Engine, { column, values }: LeaveOut): Promise<number> {
  const condition = isLeftOut({ columns: await readColumns(engine), place: engine.file }, column);
  await createLeftOut(engine, values);
  await engine.run('COPY FROM DATABASE target TO rewritten (SCHEMA)');
  for (const table of await tablesOf(engine)) {
    const isEvents = table.schema === 'main' && table.name === 'events';
    const where = isEvents ? ` WHERE NOT (${condition})` : '';
    await engine.run(`INSERT INTO ${named('rewritten', table)} SELECT * FROM ${named('target', table)}${where}`);
  }
  const gone = await engine.rows(
    `SELECT _dfinery_window AS w, count(*) AS n FROM events WHERE ${condition} GROUP BY 1`,
  );
  for (const { w, n } of gone) {
    await engine.run(`UPDATE rewritten._dfinery_windows SET rows_live = rows_live - ${n} WHERE number = ${w}`);
  }
  return gone.reduce((sum, { n }) => sum + Number(n), 0);
}

async function tablesOf(engine: Engine): Promise<Table[]> {
  const rows = await engine.rows(
    `SELECT schema_name AS schema, table_name AS name FROM duckdb_tables() WHERE database_name = 'target' AND NOT internal`,
  );
  return rows.map((row) => ({ schema: String(row.schema), name: String(row.name) }));
}

async function checkCounts(engine: Engine, rowsLeftOut: number): Promise<void> {
  for (const table of await tablesOf(engine)) {
    const isEvents = table.schema === 'main' && table.name === 'events';
    const wanted = (await countOf(engine, 'target', table)) - (isEvents ? rowsLeftOut : 0);
    const found = await countOf(engine, 'rewritten', table);
    if (found === wanted) continue;
    throw defect(
      `the copy of ${engine.file} has ${found} rows in ${table.name} instead of ${wanted}: nothing was changed.`,
    );
  }
}

async function countOf(engine: Engine, database: string, table: Table): Promise<number> {
  return Number((await engine.row(`SELECT count(*) AS n FROM ${named(database, table)}`)).n);
}

const named = (database: string, { schema, name }: Table) => `${database}.${identifier(schema)}.${identifier(name)}`;

function replace(fresh: string, file: string): void {
  sync(fresh);
  renameSync(fresh, file);
  sync(dirname(file));
}

function sync(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
