// This folder: DuckDB, as all targets use it. `session/` opens files and runs statements. `rows/` reads the CSV of days
// as typed rows with keys, and counts stored rows. `people/` finds people. Beside them: SQL of stored columns.

import type { Day } from '../base/days.ts';
import { castSql, identifier, literal, varcharSql } from '../base/sql.ts';
import { CORRECTION_DATETIME, DETAIL_LOG_ID, SERVER_DATETIME } from '../cells/header.ts';
import { type ColumnType, codecOf } from '../cells/types/column-types.ts';
import { toWallTimeSql, type Zone } from '../cells/types/zone.ts';
import { findColumn, type StoredColumn, type Table } from '../table/tables.ts';

/** The column that a reader of several files adds: the path of the row's file. */
export const PATH_COLUMN = '_dfinery_path';

/** SQL of a column that every table has, by its name in the export. */
export const columnOfSourceSql = (columns: readonly StoredColumn[], source: string): string =>
  identifier(findColumn(columns, source)?.name ?? source);

export const dateSql = (day: Day): string => `DATE ${literal(day)}`;

/** SQL of the day of a row of a table. `days`: those of its receipts; a snapshot has one, which its rows lack. */
export const dayOfRowSql = ({ isSnapshot }: Table, [snapshotDay]: Iterable<Day>): string =>
  isSnapshot ? dateSql(snapshotDay) : 'event_date';

/** SQL of what is the same for a row that two neighbouring days have: its id, else its key. */
export const sharedRowIdSql = (columns: readonly StoredColumn[]): string =>
  `coalesce(${varcharSql(columnOfSourceSql(columns, DETAIL_LOG_ID))}, _key)`;

/** SQL of a value in a column's own type, which a file of a dataset must have. */
export const castToTypeSql = (value: string, type: ColumnType, zone: Zone | undefined): string =>
  castSql(value, codecOf(type, zone).duckdbType);

/** The type that DESCRIBE gives, under its name among the `DuckDbType`s. */
export const duckDbTypeOf = (described: unknown): string =>
  String(described).replace(/^TIMESTAMP WITH TIME ZONE/, 'TIMESTAMPTZ');

/** SQL of a column in a type. It is NULL without the column, and where what is stored does not fit. */
export function columnValueSql(
  columns: readonly StoredColumn[],
  source: string,
  type: ColumnType,
  zone: Zone | undefined,
): string {
  const codec = codecOf(type, zone);
  const column = findColumn(columns, source);
  if (column === undefined || column.type === null) return castSql('NULL', codec.duckdbType);
  const name = identifier(column.name);
  if (column.type === type) return name;
  // A cast would read a time by the zone of the session.
  return type === 'datetime' ? codec.checkedSql(varcharSql(name)) : `TRY_CAST(${name} AS ${codec.duckdbType})`;
}

/** SQL of the time at which an event occurred; if that is unknown, of the time at which it arrived. */
export function occurredAtSql(columns: readonly StoredColumn[], zone: Zone | undefined): string {
  const valueSql = (source: string) => columnValueSql(columns, source, 'datetime', zone);
  return `coalesce(${valueSql(CORRECTION_DATETIME)}, ${valueSql(SERVER_DATETIME)})`;
}

/** SQL of a stored time as clocks of a zone show it. Without a zone it is stored as it was written. */
export const localTimeSql = (time: string, zone: Zone | undefined): string =>
  zone === undefined ? time : toWallTimeSql(time, zone);
