// This folder: the tables of a DuckDB file: `events` and the program's own `_dfinery_…`.

import { configFailure } from '../../../base/errors.ts';
import type { SpoolFile, State } from '../../../extract/window.ts';
import { FIRST_COLUMNS } from '../../../table/columns.ts';
import { MAX_EVENT_NAMES, scannedEventNames } from '../../../table/state.ts';
import { otherTimezone } from '../../files/failures.ts';
import type { Engine } from '../../sql/engine/engine.ts';
import { createEvents } from './alter.ts';
import { CREATE_COLUMNS, writeColumns } from './columns.ts';
import { CREATE_WINDOWS, upgradeWindows } from './receipts.ts';
import { createViews } from './views.ts';

/** Of everything that `_dfinery_…` tables hold. */
const VERSION = 1;
const TABLES = ['events', '_dfinery_windows', '_dfinery_columns', '_dfinery_event_names'];
const OURS = [...TABLES, 'event_logs', 'event_items'];

const CREATE_STATE = 'CREATE TABLE _dfinery_state (v INTEGER, timezone VARCHAR, state JSON)';
const CREATE_EVENT_NAMES = 'CREATE TABLE _dfinery_event_names (name VARCHAR)';

/**
 * Makes our tables in a file that has none, else checks that they are ours, of our version and of the same time zone.
 * Throws Failure and changes nothing.
 */
export async function prepareStore(engine: Engine, timezone: string | undefined): Promise<void> {
  if (await isPrepared(engine)) {
    await checkTimezone(engine, timezone);
    await upgradeWindows(engine);
  } else await engine.transaction(() => createTables(engine, timezone));
}

/** True for a file with our tables; false for one that may get them. Throws Failure for any other, changes nothing. */
export async function isPrepared(engine: Engine): Promise<boolean> {
  const names = await tableNames(engine);
  if (names.has('_dfinery_state')) {
    await checkVersion(engine);
    checkTables(engine, names);
    return true;
  }
  const foreign = OURS.find((name) => names.has(name));
  if (foreign === undefined) return false;
  throw configFailure(`${engine.file} has a table "${foreign}" that is not ours: give another file.`);
}

/** Refuses a file without our tables, or with those of a later version. For those who only read. */
export async function checkStore(engine: Engine): Promise<void> {
  const names = await tableNames(engine);
  if (!names.has('_dfinery_state'))
    throw configFailure(`${engine.file} holds no events loaded by this program: nothing was done.`);
  await checkVersion(engine);
  checkTables(engine, names);
}

/** The failure for a file that lacks a part of the program's own tables: it is not repaired by guessing. */
function checkTables(engine: Engine, names: ReadonlySet<string>): void {
  const missing = TABLES.filter((name) => !names.has(name));
  if (missing.length > 0) throw damaged(engine, `lacks the table ${missing.join(', ')}`);
}

const damaged = (engine: Engine, how: string) =>
  configFailure(`${engine.file} ${how} of ours: restore it from a copy, or load into another file.`);

export async function readState(engine: Engine): Promise<State | undefined> {
  const { state } = await engine.row('SELECT CAST(state AS VARCHAR) AS state FROM _dfinery_state');
  return typeof state === 'string' ? (JSON.parse(state) as State) : undefined;
}

/** The zone of the file's datetimes; null: they have none. */
export async function readTimezone(engine: Engine): Promise<string | null> {
  const { timezone } = await engine.row('SELECT timezone FROM _dfinery_state');
  return typeof timezone === 'string' ? timezone : null;
}

/** Inside a transaction. */
export async function writeState(engine: Engine, state: State): Promise<void> {
  await engine.run('UPDATE _dfinery_state SET state = $1', [JSON.stringify(state)]);
}

export async function readEventNames(engine: Engine): Promise<string[]> {
  const rows = await engine.rows('SELECT name FROM _dfinery_event_names ORDER BY name');
  return rows.map((row) => String(row.name));
}

/**
 * Adds the event names of a window that are new; gives all. `known`: those of the windows before. Inside a transaction.
 */
export async function addEventNames(
  engine: Engine,
  files: readonly SpoolFile[],
  number: number,
  known: ReadonlySet<string>,
): Promise<ReadonlySet<string>> {
  if (scannedEventNames(files)?.every((name) => known.has(name)) === true) return known;
  await engine.run(
    `INSERT INTO _dfinery_event_names SELECT seen.name FROM (SELECT DISTINCT CAST(df_event_name AS VARCHAR) AS name
    FROM events WHERE _dfinery_window = ${number}) AS seen
    WHERE seen.name IS NOT NULL AND seen.name NOT IN (SELECT known.name FROM _dfinery_event_names AS known)
    LIMIT greatest(0, ${MAX_EVENT_NAMES} - (SELECT count(*) FROM _dfinery_event_names))`,
  );
  return new Set(await readEventNames(engine));
}

async function createTables(engine: Engine, timezone: string | undefined): Promise<void> {
  await engine.run(createEvents('events', FIRST_COLUMNS, timezone !== undefined));
  for (const create of [CREATE_WINDOWS, CREATE_COLUMNS, CREATE_STATE, CREATE_EVENT_NAMES]) await engine.run(create);
  await engine.run('INSERT INTO _dfinery_state VALUES ($1, $2, NULL)', [VERSION, timezone ?? null]);
  await writeColumns(engine, FIRST_COLUMNS);
  await createViews(engine, FIRST_COLUMNS);
}

/** True for a file that has a table of this name. */
export const hasTable = async (engine: Engine, name: string): Promise<boolean> => (await tableNames(engine)).has(name);

async function tableNames(engine: Engine): Promise<Set<string>> {
  const rows = await engine.rows(
    `SELECT lower(table_name) AS name FROM information_schema.tables
    WHERE table_catalog = current_database() AND table_schema = 'main'`,
  );
  return new Set(rows.map((row) => String(row.name)));
}

async function checkVersion(engine: Engine): Promise<void> {
  const { v } = await engine.row('SELECT max(v) AS v FROM _dfinery_state');
  if (v === null) throw damaged(engine, 'lacks the row of _dfinery_state, a table');
  if (Number(v) > VERSION) {
    throw configFailure(`${engine.file} was written by a later version (${v}) of this program: update it.`);
  }
}

/** The first load fixes the zone; before it, the tables are recreated for another one. */
async function checkTimezone(engine: Engine, timezone: string | undefined): Promise<void> {
  const stored = await readTimezone(engine);
  if (stored === (timezone ?? null)) return;
  const { n } = await engine.row('SELECT count(*) AS n FROM _dfinery_windows');
  if (Number(n) === 0) return engine.transaction(() => changeTimezone(engine, timezone));
  throw otherTimezone(engine.file, 'file', timezone ?? null, stored);
}

async function changeTimezone(engine: Engine, timezone: string | undefined): Promise<void> {
  await engine.run('UPDATE _dfinery_state SET timezone = $1', [timezone ?? null]);
  await engine.run(createEvents('events', FIRST_COLUMNS, timezone !== undefined));
  await createViews(engine, FIRST_COLUMNS);
}
