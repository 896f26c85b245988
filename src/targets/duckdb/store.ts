import type { Day } from '../../base/days.ts';
import { configError } from '../../base/errors.ts';
import { jsonOf } from '../../base/json.ts';
import { identifier, literal } from '../../cells/types/sql.ts';
import type { ColumnType } from '../../cells/types/type.ts';
import type { SearchedPlace } from '../../engine/people/find.ts';
import { rowsByDay } from '../../engine/rows/counts.ts';
import { fileExists } from '../../engine/session/database-file.ts';
import type { Engine, EngineOptions } from '../../engine/session/engine.ts';
import { withFile } from '../../engine/session/open.ts';
import { eventItems, eventLogs } from '../../engine/views.ts';
import { parseState } from '../../extract/export-state.ts';
import type { ColumnChange } from '../../table/changes.ts';
import { profilesOf, type RunRecord, type StoredProfiles, type TableState } from '../../table/place-state.ts';
import { nextChange, receiptsOf, removedDays, type StoredReceipt, withPruned } from '../../table/receipts.ts';
import { EVENTS, type StoredColumn, type Table, typedColumns, USER_PROFILES } from '../../table/tables.ts';
import { noTableError } from '../failures.ts';
import { createTable } from './alter.ts';
import {
  addRecords,
  CHANGES,
  COLUMNS,
  createRecords,
  DAYS,
  RECORDS,
  RUNS,
  readRecords,
  replaceRecords,
} from './side-tables.ts';

// The tables of a file beside `events`: made, checked, read as the state, written with a commit.

const STORE_VERSION = 3;

const STATE = '_dfinery_state';
const VIEWS = {
  event_logs: 'An event each, without item columns: of its rows the one of the lowest item position.',
  event_items: 'An item each, with the short names of item columns.',
};
/** The names that the program gives to tables and views of a file. */
export const OWN_NAMES: readonly string[] = [
  'events',
  STATE,
  ...RECORDS.map(({ name }) => name),
  ...Object.keys(VIEWS),
];

/**
 * Works on a file that was loaded, and its state; the file is opened for reading alone, and nothing that others left in
 * it can reach another file. Throws UserError for a file that was never loaded.
 */
export function reading<T>(
  options: EngineOptions,
  work: (engine: Engine, state: TableState) => Promise<T>,
): Promise<T> {
  return withFile(readOnly(options), async (engine) => {
    const stored = await readStored(engine);
    if (stored === undefined) throw noTableError(engine.file);
    return work(engine, stored.state);
  });
}

/** The options that open a file for reading. Throws UserError where no file is. */
export function readOnly(options: EngineOptions): EngineOptions {
  if (!fileExists(options.file)) throw noTableError(options.file);
  return { ...options, readOnly: true };
}

export interface Stored {
  /** Days whose rows are gone are marked as pruned. */
  readonly state: TableState;
  /** Days whose rows a user removed since the last commit. */
  readonly removed: readonly Day[];
}

/** Reads what a file holds beside its rows; undefined before the first load. Throws UserError for a foreign file. */
export async function readStored(engine: Engine): Promise<Stored | undefined> {
  const tables = await tableNames(engine);
  if (!(await isLoaded(engine, tables))) return undefined;
  const { timezone, state, suppression_length, profiles } = await engine.row(
    `SELECT * REPLACE (CAST(state AS VARCHAR) AS state, CAST(profiles AS VARCHAR) AS profiles) FROM ${STATE}`,
  );
  const receipts = receiptsOf(
    (await readRecords<StoredReceipt>(engine, DAYS)).map(({ pruned, source, ...receipt }) => ({
      ...receipt,
      v: 1,
      ...(pruned && { pruned }),
      ...(source && { source }),
    })),
  );
  const removed = removedDays(receipts, await rowsByDay(engine, 'events'));
  const read = {
    timezone: timezone === null ? null : String(timezone),
    columns: await readRecords<StoredColumn>(engine, COLUMNS),
    receipts: withPruned(receipts, removed, nextChange(receipts, engine.options.clock.now())),
    exportState: parseState(jsonOf(String(state))),
    changes: await readRecords<ColumnChange>(engine, CHANGES),
    lastRun: (await readRecords<RunRecord>(engine, RUNS)).at(-1),
    suppressionLength: suppression_length === null ? undefined : Number(suppression_length),
    // Somebody may have dropped the table.
    profiles: tables.has(USER_PROFILES.name)
      ? ((jsonOf(String(profiles)) as StoredProfiles | null) ?? undefined)
      : undefined,
  };
  return { state: read, removed };
}

/** The names of tables and views, in lower case. */
async function tableNames(engine: Engine): Promise<ReadonlySet<string>> {
  const rows = await engine.rows(`
    SELECT lower(table_name) AS name
    FROM information_schema.tables
    WHERE table_catalog = current_database() AND table_schema = 'main'`);
  return new Set(rows.map(({ name }) => String(name)));
}

/** Throws UserError for a file with a table of profiles that is not this program's. */
export async function refuseForeignProfiles(engine: Engine, state: TableState | undefined): Promise<void> {
  const { name } = USER_PROFILES;
  if (state?.profiles !== undefined || !(await tableNames(engine)).has(name)) return;
  throw configError(
    `${engine.file} has a table "${name}" that is not ours: rename it, set user_profiles to false, or give another file.`,
  );
}

/** True for a file that was loaded, false for one that may be. Throws UserError for any other. */
async function isLoaded(engine: Engine, tables: ReadonlySet<string>): Promise<boolean> {
  const { file } = engine;
  const own = OWN_NAMES.filter((name) => tables.has(name));
  if (own.length === 0) return false;
  if (!tables.has(STATE)) throw configError(`${file} has a table "${own[0]}" that is not ours: give another file.`);
  const { v } = await engine.row(`SELECT max(v) AS v FROM ${STATE}`);
  if (Number(v) !== STORE_VERSION) {
    const [which, advice] =
      Number(v) > STORE_VERSION ? ['a later', 'update it'] : ['an earlier', 'load into another file'];
    throw configError(`${file} was written by ${which} version (${v}) of this program: ${advice}.`);
  }
  const missing = OWN_NAMES.filter((name) => !tables.has(name));
  if (missing.length === 0) return true;
  throw configError(`${file} lacks ${missing.join(', ')}: restore it from a copy, or load into another file.`);
}

/** Makes the tables of the program in a file that has none. */
export async function createTables(engine: Engine, columns: readonly StoredColumn[], timezone: string | null) {
  await engine.run(createTable(EVENTS, columns, timezone !== null));
  await engine.run(
    `CREATE TABLE ${STATE} (v INTEGER, timezone VARCHAR, state JSON, suppression_length INTEGER, profiles JSON)`,
  );
  await engine.run(`COMMENT ON TABLE ${STATE} IS 'The cursor and what belongs to it.'`);
  await engine.run(`INSERT INTO ${STATE} VALUES ($1, $2, NULL, NULL, NULL)`, [STORE_VERSION, timezone]);
  for (const table of RECORDS) {
    await engine.run(createRecords(table));
    await engine.run(`COMMENT ON TABLE ${table.name} IS ${literal(table.comment)}`);
  }
}

/** Stores what a commit changes in the state. Called inside its transaction. */
export async function writeState(engine: Engine, before: TableState, after: TableState): Promise<void> {
  await engine.run(`UPDATE ${STATE} SET state = $1, suppression_length = $2`, [
    JSON.stringify(after.exportState ?? null),
    after.suppressionLength ?? null,
  ]);
  await replaceRecords(engine, COLUMNS, await readRecords(engine, COLUMNS), after.columns);
  await replaceRecords(engine, DAYS, await readRecords(engine, DAYS), [...after.receipts.values()]);
  const known = new Set(before.changes);
  await addRecords(
    engine,
    CHANGES,
    after.changes.filter((change) => !known.has(change)),
  );
}

/** The tables of a file in which people are looked for. */
export function searchedTables(engine: Engine, state: TableState): SearchedPlace {
  const place = engine.file;
  const profiles = profilesOf(state);
  return {
    events: { engine, table: EVENTS.name, from: EVENTS.name, state, place },
    profiles: profiles && { engine, table: USER_PROFILES.name, from: USER_PROFILES.name, state: profiles, place },
  };
}

/** Stores what the file holds of profiles. Called inside a transaction. */
export const writeProfiles = (engine: Engine, profiles: StoredProfiles): Promise<number> =>
  engine.run(`UPDATE ${STATE} SET profiles = $1`, [JSON.stringify(profiles)]);

/** Recreates `event_logs` and `event_items` over the columns that the table now has. */
export async function createViews(engine: Engine, columns: readonly StoredColumn[]): Promise<void> {
  const typed = typedColumns(columns);
  const queries = { event_logs: eventLogs(typed), event_items: eventItems(typed) };
  for (const view of ['event_logs', 'event_items'] as const) {
    await engine.run(`CREATE OR REPLACE VIEW ${view} AS ${queries[view]}`);
    await engine.run(`COMMENT ON VIEW ${view} IS ${literal(VIEWS[view])}`);
  }
}

/** With more columns, comments take seconds: each costs as much as the table is wide. */
const COMMENTED_COLUMNS = 500;
const TABLE_COMMENTS = {
  events: 'A row for each row of the export.',
  user_profiles: 'A profile each, as the last snapshot had them.',
};
const OWN_COMMENTS = {
  _key: 'Identifies the row in its day: df_event_detail_log_id (of a profile df_unified_id), #2, #3… if that repeats, or a hash of the row without one.',
  event_date: 'The day under which the service exported the row.',
  _rescued: 'Cells that did not fit the type of their column, by column name.',
  _loaded_at: 'When the export that brought the row was requested, in UTC.',
};

/** Comments a table: all of its columns if it `isMade`, else those that were added or changed. */
export async function commentTable(
  engine: Engine,
  { name: table, ownColumns }: Table,
  columns: readonly (StoredColumn & { readonly before: ColumnType | null })[],
  isMade: boolean,
): Promise<void> {
  if (isMade) await engine.run(`COMMENT ON TABLE ${table} IS ${literal(TABLE_COMMENTS[table])}`);
  const typed = typedColumns(columns);
  if (typed.length > COMMENTED_COLUMNS) return;
  const comments = [
    ...(isMade ? ownColumns.map((column) => [column, OWN_COMMENTS[column]]) : []),
    ...typed
      .filter(({ before, type }) => isMade || type !== before)
      .map(({ name, source, group, type }) => [
        name,
        `${source} of the export (${group.replaceAll('_', ' ')} column, ${type}).`,
      ]),
  ];
  for (const [column, text] of comments) {
    await engine.run(`COMMENT ON COLUMN ${table}.${identifier(column)} IS ${literal(text.replaceAll('\0', ''))}`);
  }
}
