import { configError } from '../../base/errors.ts';
import type { Engine } from '../../engine/session/engine.ts';
import { typedColumns } from '../../table/columns.ts';
import type { TableState } from '../../table/state.ts';
import { COPIES_COLUMNS, COPIES_TABLE } from '../copies/publish.ts';
import { noTableError } from '../failures.ts';
import { OWN_TYPES_IN_DUCKDB } from './alter.ts';
import { RECORDS } from './record-tables.ts';

// Whether a file is one that this program has loaded, and whole.

export const STORE_VERSION = 2;

export const STATE = '_dfinery_state';
/** The columns of the state's one row: the last three are the mark (`Mark`). */
export const STATE_COLUMNS = {
  v: 'INTEGER',
  timezone: 'VARCHAR',
  state: 'JSON',
  database: 'VARCHAR',
  file: 'VARCHAR',
  copy_of: 'VARCHAR',
};

/** This program's tables, each with the columns that every file has there; those of `events` differ. */
const STORED: ReadonlyMap<string, readonly string[]> = new Map([
  ['events', []],
  [STATE, Object.keys(STATE_COLUMNS)],
  [COPIES_TABLE, COPIES_COLUMNS],
  ...RECORDS.map(({ name, columns }): [string, string[]] => [name, Object.keys(columns)]),
]);
export const STORE_TABLES: ReadonlySet<string> = new Set(STORED.keys());
export const VIEWS = ['event_logs', 'event_items'] as const;

/** True for a file with this program's tables; false for one that may get them. Throws UserError for any other. */
export async function isPrepared(engine: Engine): Promise<boolean> {
  const { file } = engine;
  const found = await namesIn(engine);
  if (!found.has(`table ${STATE}`)) {
    const foreign = [...STORED.keys(), ...VIEWS].find(
      (name) => found.has(`table ${name}`) || found.has(`view ${name}`),
    );
    if (foreign === undefined) return false;
    throw configError(`${file} has a table "${foreign}" that is not ours: give another file.`);
  }
  const { v } = found.has(`column ${STATE}.v`) ? await engine.row(`SELECT max(v) AS v FROM ${STATE}`) : { v: null };
  if (v !== null && Number(v) !== STORE_VERSION) {
    const [which, advice] =
      Number(v) > STORE_VERSION ? ['a later', 'update it'] : ['an earlier', 'load into another file'];
    throw configError(`${file} was written by ${which} version (${v}) of this program: ${advice}.`);
  }
  // A file that lacks a part of this program's tables is not repaired by guessing.
  const missing = [...STORED].flatMap(([table, columns]) => {
    if (!found.has(`table ${table}`)) return [`table ${table}`];
    return columns.map((column) => `column ${table}.${column}`).filter((name) => !found.has(name));
  });
  if (v !== null && missing.length === 0) return true;
  const lacking = missing.length === 0 ? `the row of ${STATE}, a table` : `the ${missing.join(', the ')}`;
  throw configError(`${file} lacks ${lacking} of ours: restore it from a copy, or load into another file.`);
}

/** The tables, views and columns of a file: `table events`, `view event_logs`, `column events._key`. */
export async function namesIn(engine: Engine): Promise<ReadonlySet<string>> {
  const here = "database_name = current_database() AND schema_name = 'main'";
  const rows = await engine.rows(
    `SELECT 'table ' || lower(table_name) AS name FROM duckdb_tables() WHERE ${here}
    UNION ALL
    SELECT 'view ' || lower(view_name) FROM duckdb_views() WHERE ${here}
    UNION ALL
    SELECT 'column ' || lower(table_name || '.' || column_name) FROM duckdb_columns() WHERE ${here}`,
  );
  return new Set(rows.map(({ name }) => String(name)));
}

/** Throws UserError for a file without this program's tables, or with those of another version. */
export async function checkStore(engine: Engine): Promise<void> {
  if (await isPrepared(engine)) return;
  throw noTableError(engine.file);
}

/**
 * Throws UserError if somebody removed or renamed a column of `events` that statements name (unless given, any), or
 * gave one of this program's own another type.
 */
export async function checkColumns(
  engine: Engine,
  { columns }: TableState,
  needed: readonly { readonly name: string }[] = typedColumns(columns),
): Promise<void> {
  const rows = await engine.rows('DESCRIBE events');
  const found = new Map(rows.map((row) => [String(row.column_name).toLowerCase(), row.column_type]));
  const missing = [
    ...Object.entries(OWN_TYPES_IN_DUCKDB).flatMap(([name, type]) => {
      if (found.get(name) === type) return [];
      return found.has(name) ? [`${name} ${type}`] : [name];
    }),
    ...needed.map(({ name }) => name).filter((name) => !found.has(name.toLowerCase())),
  ];
  if (missing.length === 0) return;
  throw configError(
    `${engine.file}: the table events lacks columns that were loaded (${missing.join(', ')}): give them back their names, or restore ` +
      'the file from a copy, or load into another file. verify names every difference.',
  );
}
