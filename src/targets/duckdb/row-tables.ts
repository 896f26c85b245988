import type { Day } from '../../base/days.ts';
import { anyOfSql, identifier, literal } from '../../base/sql.ts';
import { codecOf, widenSql } from '../../cells/types/column-types.ts';
import { zoneOf } from '../../cells/types/zone.ts';
import { dateSql } from '../../engine/column-sql.ts';
import type { Engine } from '../../engine/session/engine.ts';
import { isWidened, type PlannedColumn } from '../../table/column-plan.ts';
import type { TableState } from '../../table/place-state.ts';
import { EVENTS, type StoredColumn, type Table, type TypedColumn, typedColumns } from '../../table/tables.ts';
import { createEventViews } from './event-views.ts';

// The tables with the rows of an export, `events` and `user_profiles`: their columns and comments.

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
/** With more columns, comments take seconds: each costs as much as the table is wide. */
const COMMENTED_COLUMNS = 500;

/** The columns that a table has in a file, with their types. */
export const sqlColumns = (
  { programColumns }: Table,
  { columns, timezone }: TableState,
): [name: string, type: string][] => [
  ...programColumns.map(({ name, type }): [string, string] => [name, name === '_rescued' ? 'JSON' : type]),
  ...typedColumns(columns).map((column): [string, string] => [column.name, typeSql(column, timezone)]),
];

const typeSql = ({ type }: TypedColumn, timezone: string | null): string => codecOf(type, zoneOf(timezone)).duckdbType;

/** Makes a table for these columns. */
export async function makeTable(engine: Engine, table: Table, state: TableState): Promise<void> {
  const { name, programColumns } = table;
  const columnsSql = sqlColumns(table, state).map(([column, type]) => `${identifier(column)} ${type}`);
  await engine.run(`CREATE TABLE ${name} (${columnsSql.join(', ')})`);
  await engine.run(`COMMENT ON TABLE ${name} IS ${literal(TABLE_COMMENTS[name])}`);
  for (const column of programColumns) await commentColumn(engine, name, column.name, OWN_COMMENTS[column.name]);
  await commentColumns(engine, name, state.columns);
}

/**
 * Adds and alters the columns of a table as planned. Called first of all in a transaction: DuckDB refuses it after a
 * DELETE.
 */
export async function alterTable(
  engine: Engine,
  { name: table }: Table,
  { columns: plan, timezone }: { readonly columns: readonly PlannedColumn[]; readonly timezone: string | null },
): Promise<void> {
  for (const column of typedColumns(plan)) {
    const name = identifier(column.name);
    const type = typeSql(column, timezone);
    if (column.typeBefore === null) await engine.run(`ALTER TABLE ${table} ADD COLUMN ${name} ${type}`);
    if (!isWidened(column)) continue;
    const value = widenSql(name, column.typeBefore, column.type, zoneOf(timezone));
    await engine.run(`ALTER TABLE ${table} ALTER ${name} SET DATA TYPE ${type} USING (${value})`);
  }
  await commentColumns(engine, table, plan, isAltered);
  if (table === EVENTS.name) await createEventViews(engine, plan);
}

/** True for a column that a batch adds or re-types. */
export const isAltered = ({ typeBefore, type }: PlannedColumn): boolean => type !== typeBefore;

async function commentColumns<C extends StoredColumn>(
  engine: Engine,
  table: Table['name'],
  columns: readonly C[],
  isCommented: (column: C) => boolean = () => true,
): Promise<void> {
  const tableColumns = typedColumns(columns);
  if (tableColumns.length > COMMENTED_COLUMNS) return;
  for (const column of tableColumns.filter(isCommented)) {
    const { name, source, group, type } = column;
    const text = `${source} of the export (${group.replaceAll('_', ' ')} column, ${type}).`;
    await commentColumn(engine, table, name, text);
  }
}

async function commentColumn(engine: Engine, table: Table['name'], column: string, text: string): Promise<void> {
  await engine.run(`COMMENT ON COLUMN ${table}.${identifier(column)} IS ${literal(text.replaceAll('\0', ''))}`);
}

/** A table with a condition: the rows that a commit of these days replaces. */
export const rowsOfDaysSql = ({ name, isSnapshot }: Table, days: readonly Day[]): string =>
  `${name} WHERE ${isSnapshot ? 'true' : anyOfSql(days.map((day) => `event_date = ${dateSql(day)}`))}`;
