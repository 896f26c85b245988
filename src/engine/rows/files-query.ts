import type { Day } from '../../base/days.ts';
import { groupBy } from '../../base/group.ts';
import { literal } from '../../base/sql.ts';
import { columnKey, compareBytes, headerColumns } from '../../cells/columns/groups.ts';
import { type Zone, zoneOf } from '../../cells/types/zone.ts';
import type { SpoolFile } from '../../extract/checked-day.ts';
import { type CellReading, type PlannedBatch, type PlannedDay, readingOf } from '../../table/batch-plan.ts';
import type { PlannedColumn } from '../../table/column-plan.ts';
import type { OWN_COLUMNS } from '../../table/names.ts';
import { type CellSql, cellName, cellSql, PATH_COLUMN, readCsvSql, rescuedSql } from './csv-sql.ts';

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

export const sumRows = (files: readonly SpoolFile[]): number => files.reduce((sum, { rows }) => sum + rows, 0);

/** A file, and the day that it is of. */
interface FileOfDay {
  readonly file: SpoolFile;
  readonly day: PlannedDay;
}

export const filesOf = (day: PlannedDay): FileOfDay[] => day.download.files.map((file) => ({ file, day }));

/** Groups of files with one header and one reading of each text column: one query reads a group. */
export function groupAlike(batch: PlannedBatch, files: readonly FileOfDay[]): FileOfDay[][] {
  const keys = batch.columns.filter(isReadAlike).map(({ key }) => key);
  const readingsOf = ({ readings }: PlannedDay) =>
    keys.map((key) => [readings.get(key)?.readAs, readings.get(key)?.isNullText]);
  return [...groupBy(files, ({ file, day }) => JSON.stringify([file.header, readingsOf(day)])).values()];
}

/** True for a column whose cells one query reads in one way: their texts are kept in the table, or in `_rescued`. */
const isReadAlike = ({ type, isRefused }: PlannedColumn): boolean =>
  type === 'string' || type === 'string[]' || isRefused;

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
export function filesQuery(batch: PlannedBatch, files: readonly FileOfDay[]): TypedRows {
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
    ...(everyRowHasId ? [] : [hashKeySql(fileColumns)]),
  ];
  return {
    from: readCsvSql(
      spoolFiles,
      cells.map((c) => c?.readerType ?? 'VARCHAR'),
    ),
    ownSql: {
      _key: keyParts.length === 1 ? keyParts[0] : `coalesce(${keyParts.join(', ')})`,
      event_date: byFileSql(files, (day) => dateSql(day.download.receipt.day)),
      _rescued: rescuedSql(cells.filter((c) => c !== undefined)),
      _loaded_at: byFileSql(files, requestedAtSql),
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
  return cellSql(planned, readingOfFiles(files, planned, options.zone), cellName(index), options);
}

/** The reading of a column in alike files. A text has the same in all; else it follows from the forms of all. */
function readingOfFiles(files: readonly FileOfDay[], column: PlannedColumn, zone: Zone | undefined): CellReading {
  const readings = files.flatMap(({ day }) => day.readings.get(column.key) ?? []);
  const forms = readings.reduce((union, reading) => union | reading.forms, 0);
  if (!isReadAlike(column)) return readingOf(column, forms, zone, false);
  return { ...readings[0], forms, isClean: readings.every(({ isClean }) => isClean) };
}

/**
 * SQL of the key of a row without an id: `hash:` and the SHA-256 in hex over its non-empty cells. They stand in byte
 * order of their names, each as `<bytes of name>:<name><bytes of text>:<text>`. Cells of equal names keep their order.
 */
function hashKeySql(columns: readonly FileColumn[]): string {
  const ordered = [...columns].sort((a, b) => compareBytes(a.source, b.source));
  const parts = ordered.map(({ source, index }) => {
    const name = literal(`${Buffer.byteLength(source)}:${source}`);
    return `${name} || strlen(${cellName(index)}) || ':' || ${cellName(index)}`;
  });
  return `'hash:' || sha256(concat('', ${parts.join(', ')}))`;
}

export const dateSql = (day: Day): string => `DATE ${literal(day)}`;

export const requestedAtSql = ({ download }: PlannedDay): string =>
  `TIMESTAMP ${literal(download.receipt.requested_at.replace('Z', ''))}`;

/** SQL of what is the same for all rows of a day, in rows of files. */
function byFileSql(files: readonly FileOfDay[], sqlOf: (day: PlannedDay) => string): string {
  if (files.length === 1) return sqlOf(files[0].day);
  return `CASE ${PATH_COLUMN} ${files.map(({ file, day }) => `WHEN ${literal(file.path)} THEN ${sqlOf(day)}`).join(' ')} END`;
}
