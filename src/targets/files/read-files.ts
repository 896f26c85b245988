import type { Day } from '../../base/days.ts';
import { groupBy } from '../../base/group.ts';
import { castSql, identifier, literal } from '../../base/sql.ts';
import { COLUMN_TYPES, codecOf, widenSql } from '../../cells/types/column-types.ts';
import type { DuckDbType } from '../../cells/types/duckdb-types.ts';
import { type Zone, zoneOf } from '../../cells/types/zone.ts';
import { castToTypeSql, PATH_COLUMN } from '../../engine/column-sql.ts';
import { isEngineFailure } from '../../engine/session/engine-errors.ts';
import { mapConcurrently } from '../../storage/concurrently.ts';
import type { TableState } from '../../table/place-state.ts';
import { EVENTS, type TableName, type TypedColumn, typedColumns } from '../../table/tables.ts';
import { type FileColumns, fileProgramColumns, PARTITION_COLUMN, tableColumnsOf } from './file-layout.ts';
import type { LocalFiles } from './local-files.ts';
import { countRowsOfFile, readParquetSql } from './parquet-file.ts';
import type { PlaceVersion, TableFile } from './place-version.ts';

// The rows of stored files.

const COPY_CONCURRENCY = 4;

/**
 * SQL of the rows of a table in these files: all columns of its state in their types, and `event_date` of events. A
 * column that a file lacks is NULL. Values of an earlier type are widened: a killed run leaves a folder with some.
 */
export async function relationSqlOf(
  localFiles: LocalFiles,
  tableName: TableName,
  tableState: TableState,
  files: readonly TableFile[],
): Promise<string> {
  const tableFiles = files.filter((file) => file.tableName === tableName);
  const tableColumns = tableColumnsOf(localFiles.layout, tableState);
  const earlierTypesOf = ({ columns }: TableFile) =>
    JSON.stringify([...columns].filter(([name, type]) => tableColumns.get(name) !== type));
  // Each SELECT reads files in which the same columns have the same earlier types.
  const groups = tableFiles.length === 0 ? [[]] : groupBy(tableFiles, earlierTypesOf).values();
  const queries: string[] = [];
  for (const group of groups) queries.push(await selectFilesSql(localFiles, tableName, tableState, group));
  return `(${queries.join(' UNION ALL ')})`;
}

/** SQL of the day of a row: the last folder of this form has it, not one above the place. NULL for a new file. */
const DAY_SQL = `TRY_CAST(regexp_extract(${PATH_COLUMN}, '${PARTITION_COLUMN}=([0-9-]{10})[^=]*$', 1) AS DATE)`;

/** The SELECT of the rows of files in which no column has two types; without a file it has no row. */
async function selectFilesSql(
  localFiles: LocalFiles,
  tableName: TableName,
  tableState: TableState,
  files: readonly TableFile[],
) {
  const { columns, timezone } = tableState;
  const zone = zoneOf(timezone);
  const typesInFiles: FileColumns = new Map(files.flatMap((file) => [...file.columns]));
  const programSqls = fileProgramColumns(localFiles.layout, timezone).map(({ name, type }) => {
    return `${castSql(typesInFiles.has(name) ? name : 'NULL', type)} AS ${name}`;
  });
  const columnSqls = typedColumns(columns).map((column) => {
    const valueSql = widenedSql(column, typesInFiles.get(column.name), zone);
    return `${castToTypeSql(valueSql, column.type, zone)} AS ${identifier(column.name)}`;
  });
  const daySqls = tableName === EVENTS.name ? [`${DAY_SQL} AS ${PARTITION_COLUMN}`] : [];
  const select = [...daySqls, ...programSqls, ...columnSqls].join(', ');
  if (files.length === 0) return `SELECT ${select} FROM (SELECT '' AS ${PATH_COLUMN} WHERE false)`;
  const paths = await mapConcurrently(files, COPY_CONCURRENCY, (file) => localFiles.localPathOf(file));
  const relation = readParquetSql(paths, literal(PATH_COLUMN));
  return `SELECT ${select} FROM ${relation}`;
}

/** SQL of the value of a column that files have in this type of DuckDB; NULL if they lack it. */
function widenedSql({ name, type }: TypedColumn, typeInFiles: DuckDbType | undefined, zone: Zone | undefined): string {
  const typeBefore = COLUMN_TYPES.find((candidate) => codecOf(candidate, zone).duckdbType === typeInFiles);
  return typeBefore === undefined ? 'NULL' : widenSql(identifier(name), typeBefore, type, zone);
}

/** The rows of days by the footers of their files. A day without a file, or with a damaged one, is left out. */
export async function countRowsInFiles(
  localFiles: LocalFiles,
  { files }: PlaceVersion,
  days: readonly Day[],
): Promise<Map<Day, number>> {
  const rowsByDay = new Map<Day, number>();
  for (const file of files) {
    if (file.tableName !== EVENTS.name || !days.includes(file.day)) continue;
    const localPath = await localFiles.localPathOf(file);
    try {
      rowsByDay.set(file.day, await countRowsOfFile(localFiles.engine, localPath));
    } catch (error) {
      if (!isEngineFailure(error, 'parquetDamaged')) throw error;
    }
    await localFiles.removeCopy(file);
  }
  return rowsByDay;
}
