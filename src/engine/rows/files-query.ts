import { identifier, literal } from '../../base/sql.ts';
import { compareUtf8 } from '../../base/text.ts';
import { columnKey } from '../../cells/csv/header.ts';
import type { ColumnType } from '../../cells/types/column-types.ts';
import type { Zone } from '../../cells/types/zone.ts';
import type { Receipt, SpoolFile } from '../../extract/checked-day.ts';
import type { PlannedBatch } from '../../table/batch-plan.ts';
import type { ProgramColumn } from '../../table/column-names.ts';
import type { ColumnForms, PlannedColumn } from '../../table/column-plan.ts';
import { cellTypeOf } from '../../table/column-type.ts';
import type { StoredColumn } from '../../table/tables.ts';
import { dateSql } from '../column-sql.ts';
import { type CellSql, cellSql, PATH_COLUMN, readCsvSql, readerColumn, rescuedSql } from './csv-sql.ts';

/** A query of typed rows. */
export interface TypedRows {
  /**
   * A SELECT of the program's columns of the table, and of each of `columns` in its type, under their names in the
   * table. `_rescued` is a JSON text or NULL, `_loaded_at` a TIMESTAMP in UTC.
   */
  readonly sql: string;
  /** The columns of the table that have a value in these rows. */
  readonly columns: readonly StoredColumn[];
  /** The files that have the rows. */
  readonly files: readonly FileOfDay[];
}

/** A file, and the receipt of its day. */
export interface FileOfDay extends SpoolFile {
  readonly receipt: Receipt;
}

/** Equal for files that one query can read: of the header, and of the types as which stored texts are read. */
export function queryKeyOf(file: FileOfDay, columns: readonly PlannedColumn[], zone: Zone | undefined): string {
  const readings = columns.flatMap((column): (ColumnType | boolean)[] => {
    const { type } = column;
    const { forms, isNullText } = formsOfFiles(column, [file]);
    // Such cells go to `_rescued`; a file without any goes with every other.
    if (type === null) return [isNullText || forms === 0];
    return type === 'string' ? [cellTypeOf(type, forms, zone)] : [];
  });
  return JSON.stringify([file.columns.map(({ name }) => name), readings]);
}

/** The query of files with one header, whose texts are read in one way. The key of a row is its id, else its hash. */
export function filesQuery(
  files: readonly FileOfDay[],
  { table, columns }: Pick<PlannedBatch, 'table' | 'columns'>,
  zone: Zone | undefined,
): TypedRows {
  const header = files[0].columns;
  const idKey = columnKey({ source: table.idColumn, occurrence: 1 });
  const idIndex = header.findIndex(({ key }) => key === idKey);
  const everyRowHasId = idIndex >= 0 && files.every((file) => file.columns[idIndex].filledCells === file.rows);
  const columnsByKey = new Map(columns.map((column) => [columnKey(column), column]));
  const cells = header.map(({ key }, index): CellSql & { readonly column?: StoredColumn } => {
    const column = columnsByKey.get(key);
    if (column === undefined) return { readerType: 'VARCHAR' };
    // Hashes, and the key, are made of texts.
    const needsText = !everyRowHasId || index === idIndex;
    return { column, ...cellSql(column, formsOfFiles(column, files), readerColumn(index), { zone, needsText }) };
  });
  const programSql: Readonly<Record<ProgramColumn['name'], string>> = {
    _key: everyRowHasId ? readerColumn(idIndex) : keySql(header, idIndex),
    event_date: byFileSql(files, ({ day }) => dateSql(day)),
    _rescued: rescuedSql(cells),
    _loaded_at: byFileSql(files, ({ requested_at }) => `TIMESTAMP ${literal(requested_at.replace('Z', ''))}`),
  };
  const values = cells.flatMap(({ column, value }) => (column && value ? { column, value } : []));
  const select = [
    ...table.programColumns.map(({ name }) => `${programSql[name]} AS ${name}`),
    ...values.map(({ column, value }) => `${value} AS ${identifier(column.name)}`),
  ];
  const readerTypes = cells.map(({ readerType }) => readerType);
  return {
    sql: `SELECT ${select.join(', ')} FROM ${readCsvSql(files, readerTypes)}`,
    columns: values.map(({ column }) => column),
    files,
  };
}

/** The forms of the cells of a column in all these files. */
function formsOfFiles({ formsByDay }: PlannedColumn, files: readonly FileOfDay[]): ColumnForms {
  const cellForms = files
    .flatMap(({ receipt: { day } }) => formsByDay.get(day) ?? [])
    .filter(({ forms }) => forms !== 0);
  return {
    forms: cellForms.reduce((union, { forms }) => union | forms, 0),
    isNullText: cellForms.some(({ isNullText }) => isNullText),
  };
}

/**
 * SQL of the key of a row: its id, else `hash:` and the SHA-256 in hex over its non-empty cells. They stand in byte
 * order of their names, each as `<bytes of name>:<name><bytes of text>:<text>`. Cells of equal names keep their order.
 */
function keySql(header: SpoolFile['columns'], idIndex: number): string {
  const cells = header.map(({ source }, index) => ({ source, text: readerColumn(index) }));
  const parts = cells
    .sort((a, b) => compareUtf8(a.source, b.source))
    .map(
      ({ source, text }) => `${literal(`${Buffer.byteLength(source)}:${source}`)} || strlen(${text}) || ':' || ${text}`,
    );
  const hashSql = `'hash:' || sha256(concat('', ${parts.join(', ')}))`;
  return idIndex < 0 ? hashSql : `coalesce(${readerColumn(idIndex)}, ${hashSql})`;
}

/** SQL of what is the same for all rows of a day, in rows of files. */
function byFileSql(files: readonly FileOfDay[], sqlOf: (receipt: Receipt) => string): string {
  const values = files.map(({ path, receipt }) => [literal(path), sqlOf(receipt)]);
  if (values.length === 1) return values[0][1];
  return `CASE ${PATH_COLUMN} ${values.map(([path, value]) => `WHEN ${path} THEN ${value}`).join(' ')} END`;
}
