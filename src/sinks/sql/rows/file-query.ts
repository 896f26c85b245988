// This folder: from the CSV of a window to typed rows with keys, as SQL.

import type { SpoolFile, Window } from '../../../extract/window.ts';
import { DETAIL_LOG_ID } from '../../../schema/groups.ts';
import { columnKey } from '../../../table/columns.ts';
import type { FileColumn, IncomingColumns } from '../../../table/incoming.ts';
import type { PlannedColumn } from '../../../table/plan.ts';
import type { Zone } from '../../../types/zone.ts';
import { type CellSql, cellSql, rescuedSql } from './cells.ts';
import { type KeyCell, sqlBaseId } from './keys.ts';
import { cell, readCsv } from './read-csv.ts';

/** A window on its way into typed rows. */
export interface WindowLoad {
  readonly window: Window;
  /** Its number, as `_dfinery_window` holds it. */
  readonly number: number;
  readonly arrivals: IncomingColumns;
  readonly plan: ReadonlyMap<string, PlannedColumn>;
  readonly zone: Zone | undefined;
}

/** What one file gives: columns of the table, their values, and the row's base id. */
export interface FileQuery {
  readonly columns: readonly PlannedColumn[];
  readonly values: readonly string[];
  readonly rescued: string | undefined;
  readonly base: string;
  readonly from: string;
}

/** The key, as of `columnKey`, of the column whose cells are the rows' ids. */
const ID = columnKey(DETAIL_LOG_ID, 1);
const NO_TEXTS: ReadonlySet<string> = new Set();

/** The SQL that reads one file of a window. `texts`: keys of columns that the reader must hand on as they are written. */
export function fileQuery(load: WindowLoad, index: number, texts = NO_TEXTS): FileQuery {
  const file = load.window.files[index];
  const columns = load.arrivals.files[index];
  const hasId = everyRowHasId(file, columns);
  const cells = columns.map((c) => cellOf(load, index, c, !hasId || c.key === ID || texts.has(c.key)));
  const stored = cells.filter((c): c is CellSql & { value: string } => c?.value !== undefined);
  const id = columns.find((column) => column.key === ID);
  const hashed: KeyCell[] = hasId ? [] : columns.map(({ source, index: i }) => ({ source, expr: cell(i) }));
  return {
    columns: stored.map((c) => c.column),
    values: stored.map((c) => c.value),
    rescued: rescuedSql(cells.filter((c) => c !== undefined)),
    base: sqlBaseId(id && cell(id.index), hashed, hasId),
    from: readCsv(
      file,
      cells.map((c) => c?.reader ?? 'VARCHAR'),
    ),
  };
}

/** True when the ids of a window are its keys as they stand: the order of its rows then does not matter. */
export function idsAreKeys(window: Window): boolean {
  return window.files.length === 1 && !window.files[0].hasDuplicateOrMissingIds;
}

/** True when a row of the window has no id, so that its key is a hash. */
export function hasRowsWithoutId(load: WindowLoad): boolean {
  return load.window.files.some(
    (file, i) => file.hasDuplicateOrMissingIds && !everyRowHasId(file, load.arrivals.files[i]),
  );
}

/** None for a column without a single value in this file: nothing of it is read. */
function cellOf(load: WindowLoad, index: number, column: FileColumn, wantsText: boolean): CellSql | undefined {
  const planned = load.plan.get(column.key);
  if (planned === undefined || column.filled === 0) return undefined;
  const { first, last } = load.window.files[index].columns[column.index];
  const zone = first === undefined || last === undefined ? load.zone : load.zone?.within(first, last);
  return cellSql(planned, cell(column.index), zone, wantsText);
}

function everyRowHasId(file: SpoolFile, columns: readonly FileColumn[]): boolean {
  const id = columns.find((column) => column.key === ID);
  return id !== undefined && id.filled === file.rows;
}
