// This folder: from the CSV of a window to typed rows with keys, as SQL.

import { groupBy } from '../../base/group.ts';
import { columnKey, DETAIL_LOG_ID } from '../../cells/columns/groups.ts';
import { literal } from '../../cells/types/sql.ts';
import type { Zone } from '../../cells/types/zone.ts';
import type { SpoolFile, Window } from '../../extract/window.ts';
import { typedColumns } from '../../table/columns.ts';
import type { FileColumn, IncomingColumns } from '../../table/incoming.ts';
import type { PlannedColumn } from '../../table/plan.ts';
import { castToColumn } from '../conversions.ts';
import { READS_IN_PARALLEL } from '../session/engine.ts';
import { identifier, pathLiteral } from '../session/quote.ts';
import { type CellSql, cellSql, rescuedSql } from './cells.ts';
import { type KeyCell, sqlBaseId } from './keys.ts';

export interface WindowLoad {
  readonly window: Window;
  /** The number that `_dfinery_window` of its rows has. */
  readonly windowNumber: number;
  readonly incoming: IncomingColumns;
  /** The columns that its rows have in the table, by their keys. */
  readonly planned: ReadonlyMap<string, PlannedColumn>;
  readonly zone: Zone | undefined;
}

/** Typed rows with their keys; the expressions are over `from`. */
export interface TypedRows {
  readonly from: string;
  readonly key: string;
  readonly rescued: string;
  readonly columns: readonly PlannedColumn[];
  /** A value for each of `columns`. */
  readonly values: readonly string[];
}

/**
 * All typed columns that a window's rows have in the table, each in its own type under its name; NULL without a value.
 */
export function typedValues({ columns, values }: TypedRows, { planned, zone }: WindowLoad): string[] {
  const byKey = new Map(columns.map(({ key }, i) => [key, values[i]]));
  return typedColumns([...planned.values()]).map(({ key, name, type }) => {
    return `${castToColumn(byKey.get(key) ?? 'NULL', type, zone)} AS ${identifier(name)}`;
  });
}

const ID_KEY = columnKey(DETAIL_LOG_ID, 1);
const NO_TEXTS: ReadonlySet<string> = new Set();

interface FilePart {
  readonly load: WindowLoad;
  readonly file: SpoolFile;
  readonly columns: readonly FileColumn[];
}

const partOf = (load: WindowLoad, index: number): FilePart => ({
  load,
  file: load.window.files[index],
  columns: load.incoming.files[index],
});

/**
 * The SQL that reads one file, with base ids as keys. `texts` has the keys of columns that the reader must keep as
 * text.
 */
export function fileQuery(load: WindowLoad, index: number, texts = NO_TEXTS): TypedRows {
  return filesQuery([partOf(load, index)], texts);
}

/** The SQL that reads files with the same header in one pass; their windows have one plan. */
export function filesQuery(
  parts: readonly FilePart[],
  texts = NO_TEXTS,
): TypedRows & { readonly windowNumber: string } {
  const [{ load }] = parts;
  const columns = columnsOf(parts);
  const hasId = parts.every(everyRowHasId);
  const cells = columns.map((c) => cellOf(parts, c, !hasId || c.key === ID_KEY || texts.has(c.key)));
  const stored = cells.filter((c): c is CellSql & { value: string } => c?.value !== undefined);
  const id = columns.find((column) => column.key === ID_KEY);
  const hashed: KeyCell[] = hasId ? [] : columns.map(({ source, index: i }) => ({ source, expr: cell(i) }));
  const numbers = parts.map(({ file, load: own }) => `WHEN ${literal(file.path)} THEN ${own.windowNumber}`);
  return {
    columns: stored.map((c) => c.column),
    values: stored.map((c) => c.value),
    rescued: rescuedSql(cells.filter((c) => c !== undefined)),
    key: sqlBaseId(id && cell(id.index), hashed, hasId),
    windowNumber: parts.length === 1 ? `${load.windowNumber}` : `CASE ${PATH_COLUMN} ${numbers.join(' ')} END`,
    from: readCsv(
      parts.map(({ file }) => file),
      cells.map((c) => c?.reader ?? 'VARCHAR'),
    ),
  };
}

/** The columns of files with the same header; `filled` counts the cells of all files. */
function columnsOf(parts: readonly FilePart[]): FileColumn[] {
  return parts[0].columns.map((column, i) => ({
    ...column,
    filled: parts.reduce((sum, { columns }) => sum + columns[i].filled, 0),
  }));
}

/** Groups the files of windows whose ids are their keys by header: those with the same header are read in one pass. */
export function filesByHeader(loads: readonly WindowLoad[]): FilePart[][] {
  const parts = loads.map((load) => partOf(load, 0));
  return [...groupBy(parts, ({ load }) => JSON.stringify(load.window.files[0].header)).values()];
}

/** True when a row of the window has no id, so that its key is a hash. */
export function hasRowsWithoutId(load: WindowLoad): boolean {
  return load.window.files.some((file, i) => file.hasDuplicateOrMissingIds && !everyRowHasId(partOf(load, i)));
}

/** The SQL of the cells of a column; undefined if these files have no value in it. */
function cellOf(parts: readonly FilePart[], column: FileColumn, wantsText: boolean): CellSql | undefined {
  const [{ load }] = parts;
  const stored = load.planned.get(column.key);
  if (stored === undefined || column.filled === 0) return undefined;
  return cellSql(stored, cell(column.index), load.zone, { wantsText });
}

function everyRowHasId({ file, columns }: FilePart): boolean {
  const id = columns.find((column) => column.key === ID_KEY);
  return id !== undefined && id.filled === file.rows;
}

/** Maximum length of a line with which DuckDB reads, unless a row is longer. */
const USUAL_LINE_BYTES = 2_000_000;
/** Bytes of each of a reader's buffers: DuckDB's 32 MB take 100 MB more and the same time (measured). */
const USUAL_BUFFER_BYTES = 4_000_000;
const LINES_PER_BUFFER = 4;

/** The name of a column in a reader's result; the header's name may contain anything. */
export const cell = (index: number): string => `c${index}`;

/** The column that a reader of several files adds: the path of the row's file. */
const PATH_COLUMN = '_dfinery_path';

/**
 * `read_csv` of spool files with one header, with every option set, so that nothing is sniffed, padded or skipped.
 * Empty cells, quoted ones too, are NULL. `types` has the reader's type of each column, in the header's order.
 */
export function readCsv(files: readonly Pick<SpoolFile, 'path' | 'longestRow'>[], types: readonly string[]): string {
  const columns = types.map((type, i) => `${literal(cell(i))}: ${literal(type)}`).join(', ');
  const paths = files.map(({ path }) => pathLiteral(path)).join(', ');
  const withPath = files.length > 1 ? `, filename = ${literal(PATH_COLUMN)}` : '';
  const longestRow = Math.max(...files.map((file) => file.longestRow));
  return `read_csv(
    [${paths}],
    auto_detect = false, header = true,
    delim = ',', quote = '"', escape = '"', new_line = '\\n', compression = 'none', encoding = 'utf-8',
    nullstr = '', allow_quoted_nulls = true,
    strict_mode = true, null_padding = false, ignore_errors = false,
    parallel = coalesce(getvariable(${literal(READS_IN_PARALLEL)}), true),
    hive_partitioning = false${withPath},
    ${lineOptions(longestRow)},
    columns = {${columns}}
  )`;
}

function lineOptions(longestRow: number): string {
  if (longestRow < USUAL_LINE_BYTES) return `buffer_size = ${USUAL_BUFFER_BYTES}`;
  const line = longestRow + 1;
  return `max_line_size = ${line}, buffer_size = ${line * LINES_PER_BUFFER}`;
}
