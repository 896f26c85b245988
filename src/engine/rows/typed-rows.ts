// This folder: from the CSV files of days to typed rows with keys, as SQL, and counts of stored rows. All targets store
// what `withTypedRows` of this file gives. `filesQuery` reads files with one header. `withNumberedRows` reads a day
// whose rows have to be numbered first. `csv-sql.ts` has the SQL of a file and of a cell.

import type { Day } from '../../base/days.ts';
import { groupBy } from '../../base/group.ts';
import { columnKey, compareBytes, headerColumns } from '../../cells/columns/groups.ts';
import { asText, identifier, literal } from '../../cells/types/sql.ts';
import { TYPES } from '../../cells/types/types.ts';
import { type Zone, zoneOf } from '../../cells/types/zone.ts';
import { mayHaveDuplicateIds, type SpoolFile } from '../../extract/checked-day.ts';
import { type CellReading, type PlannedBatch, type PlannedDay, readingOf } from '../../table/batch-plan.ts';
import type { PlannedColumn } from '../../table/column-plan.ts';
import { OWN_COLUMNS } from '../../table/names.ts';
import { typedColumns } from '../../table/tables.ts';
import { castToColumn, type DescribedColumn } from '../conversions.ts';
import type { Engine } from '../session/engine.ts';
import { MisreadFile } from '../session/faults.ts';
import { type CellSql, cellName, cellSql, PATH_COLUMN, readCsv, rescuedSql } from './csv-sql.ts';

/** Typed rows of days; the expressions are over `from`. */
export interface TypedRows {
  readonly from: string;
  /** SQL of this program's own columns: `_rescued` is a JSON text or NULL, `_loaded_at` a TIMESTAMP in UTC. */
  readonly ownSql: Readonly<Record<(typeof OWN_COLUMNS)[number], string>>;
  /** The columns that have a value in these days. */
  readonly columns: readonly PlannedColumn[];
  /** SQL of a value for each of `columns`, in its type. */
  readonly values: readonly string[];
  readonly days: readonly PlannedDay[];
}

const sumRows = (files: readonly SpoolFile[]): number => files.reduce((sum, { rows }) => sum + rows, 0);

/** Rows that the files of these days have. */
export const rowsIn = (days: readonly PlannedDay[]): number => sumRows(days.flatMap(({ download }) => download.files));

/** Throws unless as many rows were stored as the files of these days have. `place` is where they were to be stored. */
export function checkRowCount(days: readonly PlannedDay[], stored: number, place: string): void {
  const rows = rowsIn(days);
  if (stored === rows) return;
  const dayNames = days.map(({ download }) => download.receipt.day);
  throw new MisreadFile(
    `${rows} rows of ${dayNames.join(', ')} came to ${stored}: nothing was kept. Please report it.`,
    {
      where: { file: place },
    },
  );
}

/**
 * Calls `store` with typed rows of days, inside a transaction. Days whose ids are their keys come in one call, since
 * each statement takes blocks for every column. Each other day has a call of its own. Days without rows have none.
 */
export async function withTypedRows(
  engine: Engine,
  batch: PlannedBatch,
  days: readonly PlannedDay[],
  store: (rows: TypedRows) => Promise<void>,
): Promise<void> {
  const daysWithRows = days.filter((day) => rowsIn([day]) > 0);
  const needsNumbers = ({ download }: PlannedDay) => mayHaveDuplicateIds(download);
  const files = daysWithRows.filter((day) => !needsNumbers(day)).flatMap(filesOf);
  const queries = groupAlike(batch, files).map((alike) => filesQuery(batch, alike));
  if (queries.length > 0) await store(unionOf(queries));
  for (const day of daysWithRows.filter(needsNumbers)) await withNumberedRows(engine, batch, day, store);
}

/** The SELECT of typed rows: own columns as asked for, then each typed column of the batch in its type. */
export function selectRows(
  { from, ownSql, columns, values }: TypedRows,
  batch: PlannedBatch,
  ownColumns: readonly DescribedColumn[],
): string {
  const zone = zoneOf(batch.timezone);
  const sqlOf: Readonly<Record<string, string>> = { ...ownSql, _rescued: asText(ownSql._rescued) };
  const valueByKey = new Map(columns.map((column, i) => [column.key, values[i]]));
  const select = [
    ...ownColumns.map(({ name, type }) => {
      // A TIMESTAMP in UTC where the place has instants.
      const value = type === 'TIMESTAMPTZ' ? `timezone('UTC', ${sqlOf[name]})` : sqlOf[name];
      return `${value} AS ${name}`;
    }),
    ...typedColumns(batch.columns).map((column) => {
      const value = castToColumn(valueByKey.get(column.key) ?? 'NULL', column.type, zone);
      return `${value} AS ${identifier(column.name)}`;
    }),
  ];
  return `SELECT ${select.join(', ')} FROM ${from}`;
}

interface FileOfDay {
  readonly file: SpoolFile;
  readonly day: PlannedDay;
}

const filesOf = (day: PlannedDay): FileOfDay[] => day.download.files.map((file) => ({ file, day }));

/** Groups of files with one header and one reading of each text column: one query reads a group. */
function groupAlike(batch: PlannedBatch, files: readonly FileOfDay[]): FileOfDay[][] {
  const keys = batch.columns.filter(isReadAlike).map(({ key }) => key);
  const readingsOf = ({ readings }: PlannedDay) =>
    keys.map((key) => [readings.get(key)?.readAs, readings.get(key)?.isNullText]);
  return [...groupBy(files, ({ file, day }) => JSON.stringify([file.header, readingsOf(day)])).values()];
}

/** True for a column whose cells one query reads in one way: their texts are kept in the table, or in `_rescued`. */
const isReadAlike = ({ type, isRefused }: PlannedColumn): boolean =>
  type === 'string' || type === 'string[]' || isRefused;

/** The typed rows of several queries as those of one. */
function unionOf(queries: readonly TypedRows[]): TypedRows {
  if (queries.length === 1) return queries[0];
  const columns = [...new Map(queries.flatMap((rows) => rows.columns).map((column) => [column.key, column])).values()];
  const selects = queries.map((rows) => {
    const valueColumns = rows.columns.map(({ name }, i) => `${rows.values[i]} AS ${identifier(name)}`);
    const ownColumns = OWN_COLUMNS.map((name) => `${rows.ownSql[name]} AS ${name}`);
    return `SELECT ${[...ownColumns, ...valueColumns].join(', ')} FROM ${rows.from}`;
  });
  return {
    from: `(${selects.join(' UNION ALL BY NAME ')})`,
    ownSql: { _key: '_key', event_date: 'event_date', _rescued: '_rescued', _loaded_at: '_loaded_at' },
    columns,
    values: columns.map(({ name }) => identifier(name)),
    days: queries.flatMap(({ days }) => days),
  };
}

/** A column of files with one header. */
interface FileColumn {
  readonly key: string;
  readonly source: string;
  readonly index: number;
  /** The column of the batch; undefined if no cell of it is stored. */
  readonly planned: PlannedColumn | undefined;
  /** Number of its filled cells in all files. */
  readonly filledCells: number;
}

/** The SQL that reads alike files in one pass. The key of a row is its id, or without one its hash. */
function filesQuery(batch: PlannedBatch, files: readonly FileOfDay[]): TypedRows {
  const spoolFiles = files.map(({ file }) => file);
  const columnsByKey = new Map(batch.columns.map((column) => [column.key, column]));
  const fileColumns = headerColumns(spoolFiles[0].header).map(({ key, source }, index): FileColumn => {
    const filledCells = spoolFiles.reduce((sum, file) => sum + file.columns[index].filled, 0);
    return { key, source, index, filledCells, planned: filledCells === 0 ? undefined : columnsByKey.get(key) };
  });
  const idKey = columnKey(batch.table.idColumn, 1);
  const id = fileColumns.find(({ key }) => key === idKey);
  const everyRowHasId = id?.filledCells === sumRows(spoolFiles);
  const zone = zoneOf(batch.timezone);
  // Hashes, and the key, are made of texts.
  const wantsText = (column: FileColumn) => !everyRowHasId || column === id;
  const cells = fileColumns.map((column) => cellsOf(files, column, { zone, wantsText: wantsText(column) }));
  const storedCells = cells.filter((c): c is CellSql & { value: string } => c?.value !== undefined);
  const keyParts = [
    ...(id === undefined ? [] : [cellName(id.index)]),
    ...(everyRowHasId ? [] : [sqlHashKey(fileColumns)]),
  ];
  return {
    from: readCsv(
      spoolFiles,
      cells.map((c) => c?.readerType ?? 'VARCHAR'),
    ),
    ownSql: {
      _key: keyParts.length === 1 ? keyParts[0] : `coalesce(${keyParts.join(', ')})`,
      event_date: byFile(files, (day) => dateSql(day.download.receipt.day)),
      _rescued: rescuedSql(cells.filter((c) => c !== undefined)),
      _loaded_at: byFile(files, requestedAtSql),
    },
    columns: storedCells.map((c) => c.column),
    values: storedCells.map((c) => c.value),
    days: [...new Set(files.map(({ day }) => day))],
  };
}

/** The SQL of the cells of a column of alike files; undefined if none of them is stored. */
function cellsOf(
  files: readonly FileOfDay[],
  { planned, index }: FileColumn,
  options: { readonly zone: Zone | undefined; readonly wantsText: boolean },
): CellSql | undefined {
  if (planned === undefined) return undefined;
  return cellSql(planned, readingOfFiles(files, planned, options.zone !== undefined), cellName(index), options);
}

/** The reading of a column in alike files. A text has the same in all; else it follows from the forms of all. */
function readingOfFiles(files: readonly FileOfDay[], column: PlannedColumn, asInstants: boolean): CellReading {
  const readings = files.flatMap(({ day }) => day.readings.get(column.key) ?? []);
  const forms = readings.reduce((union, reading) => union | reading.forms, 0);
  if (!isReadAlike(column)) return readingOf(column, forms, asInstants, false);
  return { ...readings[0], forms, isClean: readings.every(({ isClean }) => isClean) };
}

/**
 * SQL of the key of a row without an id: `hash:` and the SHA-256 in hex over its non-empty cells. They stand in byte
 * order of their names, each as `<bytes of name>:<name><bytes of text>:<text>`. Cells of equal names keep their order.
 */
function sqlHashKey(columns: readonly FileColumn[]): string {
  const ordered = [...columns].sort((a, b) => compareBytes(a.source, b.source));
  const parts = ordered.map(({ source, index }) => {
    const name = literal(`${Buffer.byteLength(source)}:${source}`);
    return `${name} || strlen(${cellName(index)}) || ':' || ${cellName(index)}`;
  });
  return `'hash:' || sha256(concat('', ${parts.join(', ')}))`;
}

export const dateSql = (day: Day): string => `DATE ${literal(day)}`;

const requestedAtSql = ({ download }: PlannedDay): string =>
  `TIMESTAMP ${literal(download.receipt.requested_at.replace('Z', ''))}`;

/** SQL of what is the same for all rows of a day, in rows of files. */
function byFile(files: readonly FileOfDay[], sqlOf: (day: PlannedDay) => string): string {
  if (files.length === 1) return sqlOf(files[0].day);
  return `CASE ${PATH_COLUMN} ${files.map(({ file, day }) => `WHEN ${literal(file.path)} THEN ${sqlOf(day)}`).join(' ')} END`;
}

/**
 * Temporary table: the rows of a day in their order. `base` is the id, `t0`, `t1`… are the typed values by position.
 *
 *     rowid  base  rescued  t0
 *     7      a     NULL     5
 *     23     a     NULL     6
 */
const STAGE = '_dfinery_stage';
/**
 * Temporary table: the keys of the rows whose id an earlier row has. `ref` is the `rowid` in the stage.
 *
 *     ref  key
 *     23   a#2
 */
const KEYS = '_dfinery_keys';

/** Reads a day into temporary tables, where its repeated ids are numbered in the order of its rows. */
async function withNumberedRows(
  engine: Engine,
  batch: PlannedBatch,
  day: PlannedDay,
  store: (rows: TypedRows) => Promise<void>,
): Promise<void> {
  await engine.keepOrder();
  const columns = typedColumns(batch.columns).filter(({ key }) => day.readings.get(key)?.readAs != null);
  const types = columns.map((c) => `t${c.position} ${TYPES[c.type].duckdb(batch.timezone !== undefined)}`);
  const stageColumns = ['base VARCHAR', 'rescued VARCHAR', ...types].join(', ');
  await engine.run(`CREATE OR REPLACE TEMP TABLE ${STAGE} (${stageColumns})`);
  for (const file of filesOf(day)) {
    const { ownSql, columns: fileColumns, values, from } = filesQuery(batch, [file]);
    const into = ['base', 'rescued', ...fileColumns.map(({ position }) => `t${position}`)].join(', ');
    await engine.run(`
      INSERT INTO ${STAGE} (${into})
      SELECT ${[ownSql._key, ownSql._rescued, ...values].join(', ')}
      FROM ${from}`);
  }
  await engine.run(`
    CREATE OR REPLACE TEMP TABLE ${KEYS} AS
    SELECT rowid AS ref, base || '#' || row_number() OVER (PARTITION BY base ORDER BY rowid) AS key
    FROM ${STAGE}
    WHERE base IN (SELECT base FROM ${STAGE} GROUP BY base HAVING count(*) > 1)
    QUALIFY row_number() OVER (PARTITION BY base ORDER BY rowid) > 1`);
  await store({
    from: `(SELECT s.*, coalesce(k.key, s.base) AS key FROM ${STAGE} s LEFT JOIN ${KEYS} k ON s.rowid = k.ref ORDER BY s.rowid)`,
    ownSql: {
      _key: 'key',
      event_date: dateSql(day.download.receipt.day),
      _rescued: 'rescued',
      _loaded_at: requestedAtSql(day),
    },
    columns,
    values: columns.map(({ position }) => `t${position}`),
    days: [day],
  });
  for (const table of [STAGE, KEYS]) await engine.run(`DROP TABLE ${table}`);
}
