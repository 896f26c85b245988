import { groupBy } from '../../base/group.ts';
import { anyOfSql, identifier, literal } from '../../base/sql.ts';
import { compareUtf8 } from '../../base/text.ts';
import { columnKey } from '../../cells/header.ts';
import type { DuckDbColumn } from '../../cells/types/duckdb-types.ts';
import type { Zone } from '../../cells/types/zone.ts';
import { type CheckedDay, type CheckedFile, mayHaveDuplicateIds, type Receipt } from '../../extract/checked-day.ts';
import type { DayCells, PlannedColumn } from '../../table/column-plan.ts';
import { type ProgramColumn, rescueKey, type StoredColumn, type Table, typedColumns } from '../../table/tables.ts';
import { castToTypeSql, dateSql, PATH_COLUMN } from '../column-sql.ts';
import { type CellSql, cellSqlOf, readCsvSql, readerColumn, textKeyOf } from './csv-sql.ts';

/**
 * The query of the typed rows of some files. Of a day whose rows have ids, and a `price` that is once no number:
 *
 *     SELECT c0 AS _key, DATE '2026-01-01' AS event_date, CASE WHEN … THEN '{' || … || '}' END AS _rescued,
 *       TIMESTAMP '2026-01-02T03:00:00.000' AS _loaded_at, c0 AS df_event_detail_log_id, CASE … END AS price
 *     FROM read_csv(['…'], …, columns = {'c0': 'VARCHAR', 'c1': 'VARCHAR'})
 */
export interface RowsQuery {
  /** It gives the program's columns of the table, and `filledColumns` in their types. `_rescued` is JSON or NULL. */
  readonly sql: string;
  /** The names of the columns of the table that have a value in these rows. */
  readonly filledColumns: ReadonlySet<string>;
}

/** The table that gets the rows, with its columns after the batch. */
export interface PlannedTable {
  readonly table: Table;
  readonly columns: readonly PlannedColumn[];
  readonly zone: Zone | undefined;
}

/**
 * The query of the rows of some downloads. Files that are read in one way are read together, in any order. Where an id
 * may occur twice, each file is read alone; the caller has the engine keep the order of its rows.
 */
export function queryOfDownloads(downloads: readonly CheckedDay[], plannedTable: PlannedTable): RowsQuery {
  const files = downloads.flatMap(({ files, receipt }) => files.map((file) => ({ ...file, receipt })));
  const readsFilesAlone = downloads.some(mayHaveDuplicateIds);
  const fileGroups = groupBy(files, (file) => (readsFilesAlone ? file.path : queryKeyOf(file, plannedTable)));
  const queries = Array.from(fileGroups.values(), (group) => queryOfFiles(group, plannedTable));
  return {
    sql: queries.map(({ sql }) => sql).join(' UNION ALL BY NAME '),
    filledColumns: new Set(queries.flatMap(({ filledColumns }) => [...filledColumns])),
  };
}

/** A file, and the receipt of its day. */
interface FileOfDay extends CheckedFile {
  readonly receipt: Receipt;
}

/** Equal for files that one query can read: they have one header, and the same cell gives the same text. */
function queryKeyOf(file: FileOfDay, { columns, zone }: PlannedTable): string {
  const textKeys = columns.map((column) => textKeyOf(column, cellsInDaysOf([file], column), zone));
  return JSON.stringify([file.columns.map(({ headerName }) => headerName), textKeys]);
}

/** The query of files with one header, whose texts are read in one way. The key of a row is its id, else its hash. */
function queryOfFiles(files: readonly FileOfDay[], { table, columns, zone }: PlannedTable): RowsQuery {
  const header = files[0].columns;
  const idIndex = header.findIndex(({ source }) => source === table.idColumn);
  const everyRowHasId = idIndex >= 0 && files.every((file) => file.columns[idIndex].filledCount === file.keptRows);
  const columnsByKey = new Map(columns.map((column) => [columnKey(column), column]));
  const cellSqls = header.map(({ key, source }, index) => {
    const column = columnsByKey.get(key);
    if (column === undefined) throw new TypeError(`no plan of the column ${source}`);
    return cellSqlOf(column, cellsInDaysOf(files, column), readerColumn(index), zone);
  });
  const programColumnSqls: Readonly<Record<ProgramColumn['name'], string>> = {
    _key: everyRowHasId ? readerColumn(idIndex) : keySql(header, idIndex),
    event_date: perFileSql(files, ({ day }) => dateSql(day)),
    _rescued: rescuedSql(cellSqls),
    _loaded_at: perFileSql(files, ({ requested_at }) => `TIMESTAMP ${literal(requested_at.replace('Z', ''))}`),
  };
  const cellsWithValue = cellSqls.filter(({ valueSql }) => valueSql !== undefined);
  const select = [
    ...table.programColumns.map(({ name }) => `${programColumnSqls[name]} AS ${name}`),
    ...cellsWithValue.map(({ valueSql, column }) => `${valueSql} AS ${identifier(column.name)}`),
  ];
  return {
    sql: `SELECT ${select.join(', ')} FROM ${readCsvSql(files, header.length)}`,
    filledColumns: new Set(cellsWithValue.map(({ column }) => column.name)),
  };
}

/** The cells of a column in the days of these files. */
function cellsInDaysOf(files: readonly FileOfDay[], { cellsByDay }: PlannedColumn): DayCells {
  const cellsOfDays = files.flatMap(({ receipt }) => cellsByDay.get(receipt.day) ?? []);
  return {
    forms: cellsOfDays.reduce((union, { forms }) => union | forms, 0),
    hasAbsentNull: cellsOfDays.some(({ hasAbsentNull }) => hasAbsentNull),
  };
}

/**
 * SQL of the key of a row: its id, else `hash:` and the SHA-256 in hex over its non-empty cells, each with the lengths of
 * its name and text in bytes: `4:city5:Seoul` of `Seoul` in `city`. They stand in byte order of their names. Cells of
 * equal names keep their order.
 */
function keySql(header: CheckedFile['columns'], idIndex: number): string {
  const cells = header
    .map(({ source }, index) => ({ source, expr: readerColumn(index) }))
    .sort((a, b) => compareUtf8(a.source, b.source))
    .map(({ source, expr }) => {
      const prefix = literal(`${Buffer.byteLength(source)}:${source}`);
      return `${prefix} || strlen(${expr}) || ':' || ${expr}`;
    });
  const hashSql = `'hash:' || sha256(concat('', ${cells.join(', ')}))`;
  return idIndex < 0 ? hashSql : `coalesce(${readerColumn(idIndex)}, ${hashSql})`;
}

/** SQL of a value that all rows of a file share. */
function perFileSql(files: readonly FileOfDay[], sqlOf: (receipt: Receipt) => string): string {
  if (files.length === 1) return sqlOf(files[0].receipt);
  const cases = files.map(({ path, receipt }) => `WHEN ${literal(path)} THEN ${sqlOf(receipt)}`);
  return `CASE ${PATH_COLUMN} ${cases.join(' ')} END`;
}

/** SQL of `_rescued` of a row: one JSON object of all cells that did not fit, or NULL. */
function rescuedSql(cellSqls: readonly CellSql[]): string {
  const cellsWithMisfit = cellSqls.filter(({ misfitSql }) => misfitSql !== undefined);
  if (cellsWithMisfit.length === 0) return 'CAST(NULL AS VARCHAR)';
  const members = cellsWithMisfit.map(({ column, expr, misfitSql }) => {
    const name = literal(`${JSON.stringify(rescueKey(column))}:`);
    return `CASE WHEN ${misfitSql} THEN ${name} || to_json(${expr}) END`;
  });
  const isRescued = anyOfSql(cellsWithMisfit.flatMap(({ misfitSql }) => misfitSql ?? []));
  return `CASE WHEN ${isRescued} THEN '{' || concat_ws(',', ${members.join(', ')}) || '}' END`;
}

/** The SELECT of typed rows: the program's columns as asked for, then each typed one of `columns` in its type. */
export function selectRowsSql(
  { sql, filledColumns }: RowsQuery,
  columns: readonly StoredColumn[],
  programColumns: readonly DuckDbColumn[],
  zone: Zone | undefined,
): string {
  const select = [
    // The query has TIMESTAMPs in UTC: for a place with instants they become such.
    ...programColumns.map(({ name, type }) => (type === 'TIMESTAMPTZ' ? `timezone('UTC', ${name}) AS ${name}` : name)),
    ...typedColumns(columns).map(({ name, type }) => {
      const valueSql = filledColumns.has(name) ? identifier(name) : 'NULL';
      return `${castToTypeSql(valueSql, type, zone)} AS ${identifier(name)}`;
    }),
  ];
  return `SELECT ${select.join(', ')} FROM (${sql})`;
}
