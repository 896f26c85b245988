import { identifier, literal } from '../../base/sql.ts';
import { compareUtf8 } from '../../base/text.ts';
import { columnKey } from '../../cells/csv/header.ts';
import { zoneOf } from '../../cells/types/zone.ts';
import type { Receipt, SpoolFile } from '../../extract/checked-day.ts';
import type { PlannedDay, PlannedDays } from '../../table/batch-plan.ts';
import type { OwnColumn } from '../../table/column-names.ts';
import type { ColumnForms } from '../../table/column-type.ts';
import type { StoredColumn } from '../../table/tables.ts';
import { dateSql } from '../column-sql.ts';
import { type CellSql, cellSql, PATH_COLUMN, readCsvSql, readerColumn, rescuedSql } from './csv-sql.ts';

/** A query of typed rows. */
export interface RowsQuery {
  /**
   * A SELECT of the own columns of the table, and of each of `columns` in its type. They have their names in the table.
   * `_rescued` is a JSON text or NULL, `_loaded_at` a TIMESTAMP in UTC.
   */
  readonly sql: string;
  /** The columns of the table that have a value in these rows. */
  readonly columns: readonly StoredColumn[];
}

/** A file, and the day that it is of. */
export interface FileOfDay {
  readonly file: SpoolFile;
  readonly day: PlannedDay;
}

/** A column of files with one header. */
interface FileColumn {
  readonly key: string;
  readonly source: string;
  readonly index: number;
  /** Number of its filled cells in all files. */
  readonly filledCells: number;
}

/** The query of files with one header, whose texts are read in one way. The key of a row is its id, else its hash. */
export function filesQuery({ columns, timezone, table }: PlannedDays, files: readonly FileOfDay[]): RowsQuery {
  const spoolFiles = files.map(({ file }) => file);
  const fileColumns = spoolFiles[0].columns.map(({ key, source }, index): FileColumn => {
    const filledCells = spoolFiles.reduce((sum, file) => sum + file.columns[index].filledCells, 0);
    return { key, source, index, filledCells };
  });
  const idKey = columnKey({ source: table.idColumn, occurrence: 1 });
  const idColumn = fileColumns.find(({ key }) => key === idKey);
  const everyRowHasId = idColumn?.filledCells === sumRows(spoolFiles);
  const zone = zoneOf(timezone);
  const columnsByKey = new Map(columns.map((column) => [columnKey(column), column]));
  const cells = fileColumns.map((fileColumn): CellSql & { readonly column?: StoredColumn } => {
    const { key, index, filledCells } = fileColumn;
    const column = columnsByKey.get(key);
    if (filledCells === 0 || column === undefined) return { readerType: 'VARCHAR' };
    // Hashes, and the key, are made of texts.
    const wantsText = !everyRowHasId || fileColumn === idColumn;
    return { column, ...cellSql(column, formsOfFiles(files, column), readerColumn(index), { zone, wantsText }) };
  });
  const ownSql: Readonly<Record<OwnColumn['name'], string>> = {
    _key: keySql(fileColumns, idColumn, everyRowHasId),
    event_date: byFileSql(files, ({ day }) => dateSql(day)),
    _rescued: rescuedSql(cells),
    _loaded_at: byFileSql(files, ({ requested_at }) => `TIMESTAMP ${literal(requested_at.replace('Z', ''))}`),
  };
  const values = cells.flatMap(({ column, value }) => (column && value ? { column, value } : []));
  const select = [
    ...table.ownColumns.map(({ name }) => `${ownSql[name]} AS ${name}`),
    ...values.map(({ column, value }) => `${value} AS ${identifier(column.name)}`),
  ];
  const readerTypes = cells.map(({ readerType }) => readerType);
  return {
    sql: `SELECT ${select.join(', ')} FROM ${readCsvSql(spoolFiles, readerTypes)}`,
    columns: values.map(({ column }) => column),
  };
}

/** The forms of the cells of a column in all these files. */
function formsOfFiles(files: readonly FileOfDay[], { position }: StoredColumn): ColumnForms {
  const formsByFile = files.map(({ day }) => day.columnForms[position]).filter(({ forms }) => forms !== 0);
  return {
    forms: formsByFile.reduce((union, { forms }) => union | forms, 0),
    isNullText: formsByFile.some(({ isNullText }) => isNullText),
  };
}

export const sumRows = (files: readonly SpoolFile[]): number => files.reduce((sum, { rows }) => sum + rows, 0);

/**
 * SQL of the key of a row: its id, else `hash:` and the SHA-256 in hex over its non-empty cells. They stand in byte
 * order of their names, each as `<bytes of name>:<name><bytes of text>:<text>`. Cells of equal names keep their order.
 */
function keySql(columns: readonly FileColumn[], idColumn: FileColumn | undefined, everyRowHasId: boolean): string {
  if (idColumn !== undefined && everyRowHasId) return readerColumn(idColumn.index);
  const ordered = [...columns].sort((a, b) => compareUtf8(a.source, b.source));
  const parts = ordered.map(({ source, index }) => {
    const name = literal(`${Buffer.byteLength(source)}:${source}`);
    return `${name} || strlen(${readerColumn(index)}) || ':' || ${readerColumn(index)}`;
  });
  const hashSql = `'hash:' || sha256(concat('', ${parts.join(', ')}))`;
  return idColumn === undefined ? hashSql : `coalesce(${readerColumn(idColumn.index)}, ${hashSql})`;
}

/** SQL of what is the same for all rows of a day, in rows of files. */
function byFileSql(files: readonly FileOfDay[], sqlOf: (receipt: Receipt) => string): string {
  const values = files.map(({ file, day }) => [literal(file.path), sqlOf(day.download.receipt)]);
  if (values.length === 1) return values[0][1];
  return `CASE ${PATH_COLUMN} ${values.map(([path, value]) => `WHEN ${path} THEN ${value}`).join(' ')} END`;
}
