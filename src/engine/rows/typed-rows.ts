// This folder: from the CSV files of days to typed rows with keys, as SQL. All targets store what `storeTypedRows` of
// this file gives. `csv-sql.ts` has the SQL that reads files and their cells. Of stored rows `row-counts.ts` counts
// those of a day, `check-rows.ts` those that `verify` objects to, and `report-counts.ts` what a report shows.

import { groupBy } from '../../base/group.ts';
import { identifier, literal } from '../../base/sql.ts';
import { compareUtf8 } from '../../base/text.ts';
import { columnKey } from '../../cells/csv/header.ts';
import type { DuckDbColumn } from '../../cells/types/duckdb-types.ts';
import type { Zone } from '../../cells/types/zone.ts';
import { type CheckedDay, type CheckedFile, mayHaveDuplicateIds, type Receipt } from '../../extract/checked-day.ts';
import type { PlannedBatch } from '../../table/batch-plan.ts';
import type { ColumnForms, PlannedColumn } from '../../table/column-plan.ts';
import { type ProgramColumn, type StoredColumn, typedColumns } from '../../table/tables.ts';
import { castToTypeSql, dateSql } from '../column-sql.ts';
import type { Engine } from '../session/engine.ts';
import { MisreadFileError } from '../session/engine-errors.ts';
import {
  type ColumnReading,
  cellTypeOf,
  PATH_COLUMN,
  readCsvSql,
  readerColumn,
  readingOf,
  rescuedSql,
} from './csv-sql.ts';

/** The query of the typed rows of some files. */
interface RowsQuery {
  /**
   * A SELECT of the program's columns of the table, and of `filledColumns` in their types, under their names in the
   * table. `_rescued` is a JSON text or NULL, `_loaded_at` a TIMESTAMP in UTC.
   */
  readonly sql: string;
  /** The names of the columns of the table that have a value in these rows. */
  readonly filledColumns: ReadonlySet<string>;
}

/** What the rows of a batch are made of. */
type BatchInput = Pick<PlannedBatch, 'table' | 'columns' | 'downloads'>;

/** Stores the rows of a query, and returns their number. */
type RunQuery = (query: RowsQuery) => Promise<number>;

/**
 * Stores the rows of a batch. The caller has begun a transaction. Days whose ids are their keys have one query, since
 * each statement takes blocks for every column. Each other day has a query of its own. Throws unless all rows of the
 * files are stored.
 */
export async function storeTypedRows(
  engine: Engine,
  batch: BatchInput,
  zone: Zone | undefined,
  runQuery: RunQuery,
): Promise<void> {
  const daysWithRows = batch.downloads.filter(({ files }) => sumRows(files) > 0);
  const daysOfUniqueIds = daysWithRows.filter((day) => !mayHaveDuplicateIds(day));
  if (daysOfUniqueIds.length > 0) {
    const files = daysOfUniqueIds.flatMap(filesOf);
    const fileGroups = [...groupBy(files, (file) => readingKeyOf(file, batch.columns, zone)).values()];
    checkStored(daysOfUniqueIds, await runQuery(queryOfGroups(fileGroups, batch, zone)));
  }
  for (const day of daysWithRows.filter(mayHaveDuplicateIds)) {
    const fileGroups = filesOf(day).map((file) => [file]);
    checkStored([day], await storeNumbered(engine, queryOfGroups(fileGroups, batch, zone), runQuery));
  }
}

/** A file, and the receipt of its day. */
interface FileOfDay extends CheckedFile {
  readonly receipt: Receipt;
}

const filesOf = ({ files, receipt }: CheckedDay): FileOfDay[] => files.map((file) => ({ ...file, receipt }));

/** Equal for files that one query can read: of one header, whose texts and `null`s are read in one way. */
function readingKeyOf(file: FileOfDay, columns: readonly PlannedColumn[], zone: Zone | undefined): string {
  const textColumns = columns.filter(({ type }) => type === null || type === 'string');
  const readings = textColumns.map((column) => {
    const { forms, hasAbsentNull } = formsInDaysOf([file], column);
    return [column.type && cellTypeOf(column.type, forms, zone), hasAbsentNull];
  });
  return JSON.stringify([file.columns.map(({ headerName }) => headerName), readings]);
}

/** The query that gives the rows of the first group of files, then those of the next. */
function queryOfGroups(fileGroups: readonly FileOfDay[][], batch: BatchInput, zone: Zone | undefined): RowsQuery {
  const queries = fileGroups.map((files) => queryOfFiles(files, batch, zone));
  return {
    sql: queries.map(({ sql }) => sql).join(' UNION ALL BY NAME '),
    filledColumns: new Set(queries.flatMap(({ filledColumns }) => [...filledColumns])),
  };
}

/** The query of files with one header, whose texts are read in one way. The key of a row is its id, else its hash. */
function queryOfFiles(files: readonly FileOfDay[], { table, columns }: BatchInput, zone: Zone | undefined): RowsQuery {
  const header = files[0].columns;
  const idIndex = header.findIndex(({ source }) => source === table.idColumn);
  const everyRowHasId = idIndex >= 0 && files.every((file) => file.columns[idIndex].filledCells === file.rows);
  const columnsByKey = new Map(columns.map((column) => [columnKey(column), column]));
  const columnReadings = header.map(({ key }, index): ColumnReading => {
    const column = columnsByKey.get(key);
    if (column === undefined) return {};
    // Hashes, and the key, are made of texts.
    const needsText = !everyRowHasId || index === idIndex;
    return readingOf(column, formsInDaysOf(files, column), readerColumn(index), { zone, needsText });
  });
  const values = columnReadings.flatMap(({ value }) => value ?? []);
  const programSql: Readonly<Record<ProgramColumn['name'], string>> = {
    _key: everyRowHasId ? readerColumn(idIndex) : keySql(header, idIndex),
    event_date: perDaySql(files, ({ day }) => dateSql(day)),
    _rescued: rescuedSql(columnReadings),
    _loaded_at: perDaySql(files, ({ requested_at }) => `TIMESTAMP ${literal(requested_at.replace('Z', ''))}`),
  };
  const select = [
    ...table.programColumns.map(({ name }) => `${programSql[name]} AS ${name}`),
    ...values.map(({ name, sql }) => `${sql} AS ${identifier(name)}`),
  ];
  const readerTypes = columnReadings.map(({ readerType = 'VARCHAR' }) => readerType);
  return {
    sql: `SELECT ${select.join(', ')} FROM ${readCsvSql(files, readerTypes)}`,
    filledColumns: new Set(values.map(({ name }) => name)),
  };
}

/** The forms of the cells of a column in the days of these files. */
function formsInDaysOf(files: readonly FileOfDay[], { formsByDay }: PlannedColumn): ColumnForms {
  const formsOfDays = files.flatMap(({ receipt }) => formsByDay.get(receipt.day) ?? []);
  return {
    forms: formsOfDays.reduce((union, { forms }) => union | forms, 0),
    hasAbsentNull: formsOfDays.some(({ hasAbsentNull }) => hasAbsentNull),
  };
}

/**
 * SQL of the key of a row: its id, else `hash:` and the SHA-256 in hex over its non-empty cells. They stand in byte
 * order of their names, each as `<bytes of name>:<name><bytes of text>:<text>`. Cells of equal names keep their order.
 */
function keySql(header: CheckedFile['columns'], idIndex: number): string {
  const cells = header
    .map(({ source }, index) => ({ source, text: readerColumn(index) }))
    .sort((a, b) => compareUtf8(a.source, b.source))
    .map(({ source, text }) => {
      const prefix = literal(`${Buffer.byteLength(source)}:${source}`);
      return `${prefix} || strlen(${text}) || ':' || ${text}`;
    });
  const hashSql = `'hash:' || sha256(concat('', ${cells.join(', ')}))`;
  return idIndex < 0 ? hashSql : `coalesce(${readerColumn(idIndex)}, ${hashSql})`;
}

/** SQL of a value that all rows of a day share. */
function perDaySql(files: readonly FileOfDay[], sqlOf: (receipt: Receipt) => string): string {
  if (files.length === 1) return sqlOf(files[0].receipt);
  const cases = files.map(({ path, receipt }) => `WHEN ${literal(path)} THEN ${sqlOf(receipt)}`);
  return `CASE ${PATH_COLUMN} ${cases.join(' ')} END`;
}

/** Temporary table: the rows of a day in their order, with their ids as keys. */
const STAGE_TABLE = '_dfinery_stage';

/** Stores the rows of a day in their order. The second, third … row of an id gets the key `<id>#2`, `<id>#3` …. */
async function storeNumbered(engine: Engine, query: RowsQuery, runQuery: RunQuery): Promise<number> {
  await engine.keepOrder();
  await engine.run(`CREATE OR REPLACE TEMP TABLE ${STAGE_TABLE} AS ${query.sql}`);
  // Windows hold the keys of repeated ids alone, since those of whole rows take more memory.
  const sql = `
    SELECT stage.* REPLACE (coalesce(numbered.key, stage._key) AS _key)
    FROM ${STAGE_TABLE} stage
    LEFT JOIN (
      SELECT rowid AS stage_rowid, _key || '#' || row_number() OVER by_key AS key
      FROM ${STAGE_TABLE}
      WHERE _key IN (SELECT _key FROM ${STAGE_TABLE} GROUP BY _key HAVING count(*) > 1)
      WINDOW by_key AS (PARTITION BY _key ORDER BY rowid)
      QUALIFY row_number() OVER by_key > 1
    ) numbered ON stage.rowid = numbered.stage_rowid
    ORDER BY stage.rowid`;
  const storedRows = await runQuery({ ...query, sql });
  await engine.run(`DROP TABLE ${STAGE_TABLE}`);
  return storedRows;
}

function checkStored(days: readonly CheckedDay[], storedRows: number): void {
  const expectedRows = sumRows(days.flatMap(({ files }) => files));
  if (storedRows === expectedRows) return;
  const dayList = days.map(({ receipt }) => receipt.day).join(', ');
  throw new MisreadFileError(
    `${expectedRows} rows of ${dayList} came to ${storedRows}: nothing was kept. Please report it.`,
  );
}

/** Number of rows of these files. */
export const sumRows = (files: readonly CheckedFile[]): number => files.reduce((sum, { rows }) => sum + rows, 0);

/** The SELECT of typed rows: the program's columns as asked for, then each typed one of `columns` in its type. */
export function selectRowsSql(
  { sql, filledColumns }: RowsQuery,
  columns: readonly StoredColumn[],
  programColumns: readonly DuckDbColumn[],
  zone: Zone | undefined,
): string {
  const select = [
    // A TIMESTAMP in UTC where the place has instants.
    ...programColumns.map(({ name, type }) => (type === 'TIMESTAMPTZ' ? `timezone('UTC', ${name}) AS ${name}` : name)),
    ...typedColumns(columns).map(({ name, type }) => {
      const value = filledColumns.has(name) ? identifier(name) : 'NULL';
      return `${castToTypeSql(value, type, zone)} AS ${identifier(name)}`;
    }),
  ];
  return `SELECT ${select.join(', ')} FROM (${sql})`;
}
