import { existsSync } from 'node:fs';
import type { Day } from '../../base/days.ts';
import { configError } from '../../base/errors.ts';
import { identifier } from '../../base/sql.ts';
import { countRowsByDay } from '../../engine/rows/row-counts.ts';
import type { Access, Engine } from '../../engine/session/engine.ts';
import { withEngine } from '../../engine/session/open-engine.ts';
import { parseState } from '../../extract/export-state.ts';
import { type PlaceState, type TableJson, tableFromJson, tableToJson } from '../../table/place-state.ts';
import { findRemovedDays, receiptsOf, type StoredReceipt, withPrunedDays } from '../../table/receipts.ts';
import { EVENTS, USER_PROFILES } from '../../table/tables.ts';
import type { PlaceOptions } from '../contract.ts';
import { notLoadedError } from '../refusals.ts';
import { EVENT_VIEWS } from './event-views.ts';
import {
  CHANGES_TABLE,
  COLUMNS_TABLE,
  createRecordTable,
  DAYS_TABLE,
  RECORD_TABLES,
  RUNS_TABLE,
  readRecords,
  replaceRecords,
} from './record-tables.ts';

// What a file holds beside its rows: whether it was loaded, its state, and the tables of other programs. The records of
// events are tables that a user can query. Those of profiles are one JSON text: a snapshot has a single receipt.

const FORMAT_VERSION = 3;
const STATE_TABLE = '_dfinery_state';
/** The names of the tables that the program makes in every file, and of the views, too. */
const PROGRAM_TABLES: readonly string[] = [EVENTS.name, STATE_TABLE, ...RECORD_TABLES.map(({ name }) => name)];
const PROGRAM_NAMES: readonly string[] = [...PROGRAM_TABLES, ...Object.keys(EVENT_VIEWS)];

/** Works on a file that was loaded, and on its state. Throws UserError for a file that was never loaded. */
export async function withLoadedFile<T>(
  options: PlaceOptions,
  access: Access,
  work: (engine: Engine, state: PlaceState) => Promise<T>,
): Promise<T> {
  checkExists(options.address);
  return withEngine(options.address, access, options, async (engine) => work(engine, await readLoadedState(engine)));
}

/** Throws UserError where no file is; to open one for writing would make it. */
export function checkExists(file: string): void {
  if (!existsSync(file)) throw notLoadedError(file);
}

/** The state of a file. Throws UserError if it was never loaded. */
export async function readLoadedState(engine: Engine): Promise<PlaceState> {
  const { state } = await readFileState(engine);
  if (state === undefined) throw notLoadedError(engine.file);
  return state;
}

export interface FileState {
  /** What the file holds beside its rows; undefined before the first load. In it `removedDays` are pruned. */
  readonly state: PlaceState | undefined;
  /** Days whose rows a user removed since the last commit. */
  readonly removedDays: readonly Day[];
}

/** What is stored as one row. `timezone` and `export_state` are of events, `profiles` is all of the other table. */
interface StateRow {
  readonly timezone: string | null;
  readonly export_state: unknown;
  readonly suppression_length: number | null;
  readonly profiles: TableJson | null;
}

/** Throws UserError for a file of another program. */
export async function readFileState(engine: Engine): Promise<FileState> {
  const names = await namesInFile(engine);
  const presentNames = PROGRAM_NAMES.filter((name) => names.has(name));
  if (presentNames.length === 0) return { state: undefined, removedDays: [] };
  await checkProgramTables(engine, presentNames);
  // In SQL the name of a table is also its row.
  const { stateJson } = await engine.row(`SELECT to_json(${STATE_TABLE}) AS "stateJson" FROM ${STATE_TABLE}`);
  const { timezone, export_state, suppression_length, profiles } = JSON.parse(String(stateJson)) as StateRow;
  const receipts = receiptsOf((await readRecords(engine, DAYS_TABLE)).map(receiptOf));
  const removedDays = findRemovedDays(receipts, await countRowsByDay(engine, EVENTS.name));
  // Somebody may have dropped the table of profiles.
  const hasProfiles = profiles !== null && names.has(USER_PROFILES.name);
  const state = {
    events: {
      timezone,
      columns: await readRecords(engine, COLUMNS_TABLE),
      receipts: withPrunedDays(receipts, removedDays, engine.clock.now()),
      exportState: parseState(export_state),
      changes: await readRecords(engine, CHANGES_TABLE),
    },
    lastRun: (await readRecords(engine, RUNS_TABLE)).at(-1),
    suppressionLength: suppression_length ?? undefined,
    user_profiles: hasProfiles ? tableFromJson(profiles) : undefined,
  };
  return { state, removedDays };
}

/** The receipt in a record, which lacks its version, and has null for a member that is absent. */
const receiptOf = ({ pruned, source, ...receipt }: StoredReceipt): StoredReceipt => ({
  ...receipt,
  v: 1,
  ...(pruned && { pruned }),
  ...(source && { source }),
});

/** The names of tables and views, in lower case. */
async function namesInFile(engine: Engine): Promise<ReadonlySet<string>> {
  const rows = await engine.rows(`
    SELECT lower(table_name) AS name
    FROM information_schema.tables
    WHERE table_catalog = current_database() AND table_schema = 'main'`);
  return new Set(rows.map(({ name }) => String(name)));
}

/** Throws UserError unless the tables and views of these names are this program's, complete, and of its version. */
async function checkProgramTables(engine: Engine, presentNames: readonly string[]): Promise<void> {
  const { file } = engine;
  if (!presentNames.includes(STATE_TABLE))
    throw configError(`${file} has a table "${presentNames[0]}" that is not ours: give another file.`);
  const { v } = await engine.row(`SELECT max(v) AS v FROM ${STATE_TABLE}`);
  if (Number(v) !== FORMAT_VERSION)
    throw configError(
      `${file} has version ${v}, this program knows ${FORMAT_VERSION}: use the newer program, or load into another file.`,
    );
  const missingNames = PROGRAM_NAMES.filter((name) => !presentNames.includes(name));
  if (missingNames.length === 0) return;
  throw configError(`${file} lacks ${missingNames.join(', ')}: restore it from a copy, or load into another file.`);
}

/** Throws UserError for a file with a table of profiles that is not this program's. */
export async function refuseForeignProfiles(engine: Engine, state: PlaceState | undefined): Promise<void> {
  const { name } = USER_PROFILES;
  if (state?.user_profiles !== undefined || !(await namesInFile(engine)).has(name)) return;
  throw configError(
    `${engine.file} has a table "${name}" that is not ours: rename it, set user_profiles to false, or give another file.`,
  );
}

/** All tables of a file, also those of other programs. `name`: for messages, with its schema unless that is `main`. */
export async function tablesOfFile(engine: Engine) {
  const rows = await engine.rows(`
    SELECT schema_name AS schema, table_name AS name, list(column_name ORDER BY column_index) AS columns
    FROM duckdb_columns()
    JOIN duckdb_tables() USING (database_name, schema_name, table_name)
    WHERE database_name = current_database() AND NOT duckdb_columns.internal
    GROUP BY ALL
    ORDER BY ALL`);
  return rows.map(({ schema, name, columns }) => ({
    name: schema === 'main' ? String(name) : `${schema}.${name}`,
    qualifiedName: `${identifier(String(schema))}.${identifier(String(name))}`,
    columns: columns as readonly string[],
  }));
}

/** The names of the tables of a file that this program did not make. */
export async function foreignTableNames(engine: Engine, state: PlaceState): Promise<string[]> {
  const programTables = state.user_profiles ? [...PROGRAM_TABLES, USER_PROFILES.name] : PROGRAM_TABLES;
  return (await tablesOfFile(engine)).map(({ name }) => name).filter((name) => !programTables.includes(name));
}

/** Creates the tables of the state. Called inside the transaction of a commit. */
export async function createStateTables(engine: Engine, timezone: string | null): Promise<void> {
  await engine.run(
    `CREATE TABLE ${STATE_TABLE} ` +
      '(v INTEGER, timezone VARCHAR, export_state JSON, suppression_length INTEGER, profiles JSON)',
  );
  await engine.run(`COMMENT ON TABLE ${STATE_TABLE} IS 'The cursor and what belongs to it.'`);
  await engine.run(`INSERT INTO ${STATE_TABLE} (v, timezone) VALUES (${FORMAT_VERSION}, $timezone)`, { timezone });
  for (const table of RECORD_TABLES) await createRecordTable(engine, table);
}

/**
 * Stores a state, but for its time zone, which never changes, and its runs. What is as before is not written. Called
 * inside the transaction of a commit.
 */
export async function writeState(engine: Engine, state: PlaceState): Promise<void> {
  const { events, user_profiles, suppressionLength } = state;
  const columns = '(export_state, suppression_length, profiles)';
  const values = '($export_state, $length, $profiles)';
  await engine.run(`UPDATE ${STATE_TABLE} SET ${columns} = ${values} WHERE ${columns} IS DISTINCT FROM ${values}`, {
    export_state: JSON.stringify(events.exportState ?? null),
    length: suppressionLength ?? null,
    profiles: user_profiles === undefined ? null : JSON.stringify(tableToJson(user_profiles)),
  });
  await replaceRecords(engine, COLUMNS_TABLE, events.columns);
  await replaceRecords(engine, DAYS_TABLE, [...events.receipts.values()]);
  await replaceRecords(engine, CHANGES_TABLE, events.changes);
}
