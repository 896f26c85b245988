import { addDays, type Day } from '../../base/days.ts';
import { anyOfSql, identifier, literal } from '../../base/sql.ts';
import { codecOf, widenSql } from '../../cells/types/column-types.ts';
import { zoneOf } from '../../cells/types/zone.ts';
import { dateSql, dayOfRowSql, sharedRowIdSql } from '../../engine/column-sql.ts';
import { countRescuedByKey, countRowsByDay } from '../../engine/rows/row-counts.ts';
import { storeTypedRows } from '../../engine/rows/typed-rows.ts';
import type { Engine } from '../../engine/session/engine.ts';
import { mayShareRows } from '../../extract/checked-day.ts';
import type { PlannedBatch } from '../../table/batch-plan.ts';
import { isWidened, type PlannedColumn } from '../../table/column-plan.ts';
import type { StoredBatch } from '../../table/commit.ts';
import type { TableState } from '../../table/place-state.ts';
import { EVENTS, type Table, type TypedColumn, typedColumns } from '../../table/tables.ts';
import { createEventViews } from './event-views.ts';

// The tables with rows, `events` and `user_profiles`: their columns and comments, and how a batch is stored in them.
// Columns of the export have no comments: each would copy the table's whole list of columns, which may be long.

const TABLE_COMMENTS = {
  events: 'A row for each row of the export.',
  user_profiles: 'A profile each, as the last snapshot had them.',
};
const PROGRAM_COLUMN_COMMENTS = {
  _key: 'Identifies the row in its day: df_event_detail_log_id (of a profile df_unified_id), #2, #3… if that repeats, or a hash of the row without one.',
  event_date: 'The day under which the service exported the row.',
  _rescued: 'Cells that did not fit the type of their column, by column name.',
  _loaded_at: 'When the export that brought the row was requested, in UTC.',
};

/** The types of the columns that a table has in a file, by name and in their order. */
export const columnTypesInFile = (
  { programColumns }: Table,
  { columns, timezone }: TableState,
): ReadonlyMap<string, string> =>
  new Map<string, string>([
    ...programColumns.map(({ name, type }) => [name, name === '_rescued' ? 'JSON' : type] as const),
    ...typedColumns(columns).map((column) => [column.name, columnTypeSql(column, timezone)] as const),
  ]);

const columnTypeSql = ({ type }: TypedColumn, timezone: string | null): string =>
  codecOf(type, zoneOf(timezone)).duckdbType;

/** Creates a table, of events with its views. */
export async function createTable(engine: Engine, table: Table, state: TableState): Promise<void> {
  const { name, programColumns } = table;
  const columnsSql = [...columnTypesInFile(table, state)].map(([column, type]) => `${identifier(column)} ${type}`);
  await engine.run(`CREATE TABLE ${name} (${columnsSql.join(', ')})`);
  await engine.run(`COMMENT ON TABLE ${name} IS ${literal(TABLE_COMMENTS[name])}`);
  for (const column of programColumns) {
    await engine.run(`COMMENT ON COLUMN ${name}.${column.name} IS ${literal(PROGRAM_COLUMN_COMMENTS[column.name])}`);
  }
  if (name === EVENTS.name) await createEventViews(engine, state.columns);
}

/** Adds and alters the columns of a table as planned. DuckDB refuses it after a DELETE in the same transaction. */
export async function alterTable(engine: Engine, plan: PlannedBatch): Promise<void> {
  const { table, columns, tableBefore } = plan;
  const { timezone } = tableBefore;
  for (const column of typedColumns(columns)) {
    const columnSql = identifier(column.name);
    const typeSql = columnTypeSql(column, timezone);
    if (column.typeBefore === null) await engine.run(`ALTER TABLE ${table.name} ADD COLUMN ${columnSql} ${typeSql}`);
    if (!isWidened(column)) continue;
    const valueSql = widenSql(columnSql, column.typeBefore, column.type, zoneOf(timezone));
    await engine.run(`ALTER TABLE ${table.name} ALTER ${columnSql} SET DATA TYPE ${typeSql} USING (${valueSql})`);
  }
  if (table.name === EVENTS.name) await createEventViews(engine, columns);
}

/** A table with a condition: the rows that a commit of these days replaces. Of a snapshot that is all rows. */
export const rowsOfDaysSql = ({ name, isSnapshot }: Table, days: readonly Day[]): string =>
  `${name} WHERE ${isSnapshot ? 'true' : anyOfSql(days.map((day) => `event_date = ${dateSql(day)}`))}`;

/** Replaces the stored rows of the days of a batch by those of its downloads. Called inside a transaction. */
export async function storeBatch(engine: Engine, plan: PlannedBatch): Promise<StoredBatch> {
  const { table, tableBefore, columns, writtenDownloads } = plan;
  const days = writtenDownloads.map(({ receipt }) => receipt.day);
  // 1. The rows of the days.
  let rowsRemoved = await engine.run(`DELETE FROM ${rowsOfDaysSql(table, days)}`);
  await storeTypedRows(engine, { ...plan, zone: zoneOf(tableBefore.timezone) }, writtenDownloads, ({ sql }) =>
    engine.run(`INSERT INTO ${table.name} BY NAME ${sql}`),
  );
  // 2. The rows that neighbouring days share with them.
  const sharingDays = writtenDownloads.flatMap(({ receipt }) => (mayShareRows(receipt) ? [receipt.day] : []));
  for (const day of sharingDays) rowsRemoved += await separateNeighbours(engine, day, columns);
  if (rowsRemoved > 0) await engine.joinRowGroupsAtCheckpoint();
  // 3. What the table has now.
  const touchedDays = [...days, ...sharingDays.map((day) => addDays(day, -1))];
  const daySql = dayOfRowSql(table, days);
  const storedRowsByDay = await countRowsByDay(engine, rowsOfDaysSql(table, touchedDays), daySql);
  // The commit gives the receipts of these days a new `changed_at`: their stored values have another type now.
  const hasWidenedSql = anyOfSql(columns.filter(isWidened).map(({ name }) => `${identifier(name)} IS NOT NULL`));
  const widenedRowsByDay = await countRowsByDay(engine, `${table.name} WHERE ${hasWidenedSql}`, daySql);
  return {
    rowsByDay: new Map(touchedDays.map((day) => [day, storedRowsByDay.get(day) ?? 0])),
    rescuedCells: await countRescuedByKey(engine, `(FROM ${rowsOfDaysSql(table, days)})`),
    widenedDays: new Set(widenedRowsByDay.keys()),
  };
}

/**
 * For a day that may share rows with its neighbours. A row that is also stored under the day after stays there alone.
 * One that is stored under the day before is taken from it. Returns the number of removed rows.
 */
async function separateNeighbours(engine: Engine, day: Day, columns: readonly PlannedColumn[]): Promise<number> {
  const rowId = sharedRowIdSql(columns);
  const removeShared = (from: Day, neighbour: Day) =>
    engine.run(`
      DELETE FROM ${EVENTS.name}
      WHERE event_date = ${dateSql(from)}
        AND ${rowId} IN (SELECT ${rowId} FROM ${EVENTS.name} WHERE event_date = ${dateSql(neighbour)})`);
  return (await removeShared(day, addDays(day, 1))) + (await removeShared(addDays(day, -1), day));
}
