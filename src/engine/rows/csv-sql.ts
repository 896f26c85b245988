import { castSql, literal, pathLiteral } from '../../base/sql.ts';
import {
  type ColumnType,
  canWiden,
  codecOf,
  fits,
  fitsSql,
  narrowestType,
  widenSql,
} from '../../cells/types/column-types.ts';
import { type CellForms, NULL_TEXT } from '../../cells/types/forms.ts';
import type { Zone } from '../../cells/types/zone.ts';
import type { CheckedFile } from '../../extract/checked-day.ts';
import type { DayCells } from '../../table/column-plan.ts';
import type { StoredColumn } from '../../table/tables.ts';
import { PATH_COLUMN } from '../column-sql.ts';
import { PARALLEL_VARIABLE } from '../session/engine.ts';

// First the SQL of cells (`cellSqlOf`), then that of their files (`readCsvSql`), whose columns are `c0`, `c1` ….

/** SQL of the cells of one column of some files: some of its values go into the table, some to `_rescued`. */
export interface CellSql {
  /** The column of the table that gets the values. */
  readonly column: StoredColumn;
  /** The text of a cell, as the reader gives it: `c0` in the first column. */
  readonly expr: string;
  /** The value in the type of the column; absent if the table gets none of these cells. */
  readonly valueSql?: string;
  /** TRUE for a cell that is rescued, else FALSE; absent if none is. */
  readonly misfitSql?: string;
}

/**
 * SQL of the cells of a column, which have these forms. The reader names it `expr`. `hasAbsentNull` is decided in
 * `table/column-plan.ts`. If it is false, any cell `null` is a text.
 * The first row counts that is true. An example has the type of the column, and cells of `c0`.
 *
 *     the cells             example          valueSql                                misfitSql
 *     have no value         long: null
 *     have no table column  null: 5                                                  c0 IS NOT NULL
 *     do not all fit        long: 5, x       CASE WHEN … THEN TRY_CAST(c0 …)         NOT (…)
 *     fit                   long: 5          CAST(c0 AS BIGINT)
 *                           string: 5        CAST(CAST(c0 AS BIGINT) AS VARCHAR)
 *                           string: 5, null  CASE WHEN c0 = 'null' THEN …
 */
export function cellSqlOf(
  column: StoredColumn,
  { forms, hasAbsentNull }: DayCells,
  expr: string,
  zone: Zone | undefined,
): CellSql {
  const { type } = column;
  const withoutNull = `nullif(${expr}, 'null')`;
  // An absent `null` is no value. `fits` and `cellTypeOf` pass over every `null` by themselves.
  if ((hasAbsentNull ? forms & ~NULL_TEXT : forms) === 0) return { column, expr };
  if (type === null) return { column, expr, misfitSql: `${hasAbsentNull ? withoutNull : expr} IS NOT NULL` };
  const cellType = cellTypeOf(type, forms, zone);
  const codec = codecOf(cellType, zone);
  const widen = (typedSql: string) => widenSql(typedSql, cellType, type, zone);
  if (!fits(codec, forms)) {
    return { column, expr, valueSql: widen(codec.checkedSql(expr)), misfitSql: `NOT ${fitsSql(codec, expr)}` };
  }
  const hasNull = (forms & NULL_TEXT & ~codec.forms) !== 0;
  const text = hasNull ? withoutNull : expr;
  const widened = widen(codec.uncheckedSql?.(text, forms) ?? castSql(text, codec.duckdbType));
  // In a column of texts `null` is one, also beside cells that are read as numbers.
  const isNullKept = hasNull && !hasAbsentNull;
  const valueSql = isNullKept ? `CASE WHEN ${expr} = 'null' THEN 'null' ELSE ${widened} END` : widened;
  return { column, expr, valueSql };
}

/**
 * Equal for cells of a column that become the same texts in the table or in `_rescued`: `1.50` is `1.5` among numbers,
 * and `null` a text beside texts. In a column of any other type a cell has one value, however it is read.
 */
export function textKeyOf({ type }: StoredColumn, { forms, hasAbsentNull }: DayCells, zone: Zone | undefined): string {
  if (type !== null && type !== 'string') return '';
  return `${type && cellTypeOf(type, forms, zone)} ${hasAbsentNull}`;
}

/**
 * The type that cells are read as before they become that of their column: their own, if the conversion loses no value.
 * So a batch of days gives the same texts as each day alone.
 */
function cellTypeOf(type: ColumnType, forms: CellForms, zone: Zone | undefined): ColumnType {
  const cellType = narrowestType(forms, zone) ?? type;
  return canWiden(cellType, type, forms, zone) ? cellType : type;
}

/** Maximum length of a line, unless a row is longer: DuckDB's default. */
const USUAL_LINE_BYTES = 2_000_000;
/** Bytes of each of a reader's buffers: DuckDB's 32 MB take 100 MB more and the same time (measured). */
const USUAL_BUFFER_BYTES = 4_000_000;
const LINES_PER_BUFFER = 4;

/** The name of a column in a reader's result; the header's name may contain anything. */
export const readerColumn = (index: number): string => `c${index}`;

/**
 * `read_csv` of spool files with one header, with every option set, so that nothing is sniffed, padded or skipped.
 * Empty cells, quoted ones too, are NULL. All others are texts.
 */
export function readCsvSql(
  files: readonly Pick<CheckedFile, 'path' | 'longestRowBytes'>[],
  columnCount: number,
): string {
  const columns = Array.from({ length: columnCount }, (_, i) => `${literal(readerColumn(i))}: 'VARCHAR'`).join(', ');
  const paths = files.map(({ path }) => pathLiteral(path)).join(', ');
  const pathOption = files.length > 1 ? `, filename = ${literal(PATH_COLUMN)}` : '';
  const longestLineBytes = Math.max(...files.map(({ longestRowBytes }) => longestRowBytes + 1));
  const maxLineBytes = Math.max(USUAL_LINE_BYTES, longestLineBytes);
  const bufferBytes = Math.max(USUAL_BUFFER_BYTES, longestLineBytes * LINES_PER_BUFFER);
  return `read_csv(
    [${paths}],
    auto_detect = false, header = true,
    delim = ',', quote = '"', escape = '"', new_line = '\\n', compression = 'none', encoding = 'utf-8',
    nullstr = '', allow_quoted_nulls = true,
    strict_mode = true, null_padding = false, ignore_errors = false,
    parallel = getvariable(${literal(PARALLEL_VARIABLE)}),
    hive_partitioning = false${pathOption},
    max_line_size = ${maxLineBytes}, buffer_size = ${bufferBytes},
    columns = {${columns}}
  )`;
}
