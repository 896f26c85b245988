// This folder: what a place holds beside its rows, and what a batch makes of it. It runs no DuckDB and reads no disk.
//
//   place-state.ts   all that a place holds, with tables.ts and receipts.ts
//   batch-plan.ts    what a batch changes of a table; of its columns: column-plan.ts with column-names.ts, column-type.ts
//   commit.ts        what the table holds after the batch, and what the commit has changed
//
// For each batch a sink calls `planBatch`, stores the rows, and calls `tableAfterBatch` and `commitResultOf`. A snapshot
// of profiles is a batch of one download, which replaces its table. `place-warnings.ts` says what to warn of in a place.

import type { Day } from '../base/days.ts';
import type { ColumnType } from '../cells/types/column-types.ts';
import { type ExportState, parseState } from '../extract/export-state.ts';
import { mapReceipts, type Receipts, receiptsOf, type StoredReceipt } from './receipts.ts';
import { EVENTS, type StoredColumn, type Table } from './tables.ts';

/** What a place holds of one table beside its rows. `commit.ts` makes that after a batch of it. */
export interface TableState {
  /** Zone of all datetimes that name none, null if there is no such zone; fixed by the first load of the place. */
  readonly timezone: string | null;
  /**
   * Columns in the order of their positions. They are kept so that names never change, and types do not depend on
   * the order of days.
   */
  readonly columns: readonly StoredColumn[];
  /** Of a snapshot one, under the day of its request. */
  readonly receipts: Receipts;
  /** From where the next run goes on, and with which filters. Undefined before the first commit. */
  readonly exportState: ExportState | undefined;
  /** Column changes, oldest first. */
  readonly changes: readonly ColumnChange[];
}

/** All that a place holds beside its rows. */
export interface PlaceState {
  readonly events: TableState;
  /** Undefined if the place has no table of profiles. */
  readonly user_profiles?: TableState | undefined;
  readonly lastRun?: RunRecord | undefined;
  /** Number of lines of the suppression list with which the place was purged last. */
  readonly suppressionLength?: number | undefined;
}

/** One run that loaded a place, recorded when it ends. */
export interface RunRecord {
  /** Instants: ISO, UTC. */
  readonly began: string;
  readonly ended: string;
  readonly exitCode: number;
  /** The sentence of a failure. */
  readonly cause: string | null;
  /** Of the program. */
  readonly version: string;
  readonly rows: number;
  readonly days: number;
  readonly exports: number;
  readonly bytes: number;
}

/** A column that was added or widened. */
export interface ColumnChange {
  /** Instant of the change (ISO, UTC). */
  readonly changedAt: string;
  /** The `source` of the column. */
  readonly sourceName: string;
  readonly change: 'added' | 'widened';
  /** Null for an added column. */
  readonly fromType: ColumnType | null;
  readonly toType: ColumnType;
  /** The day whose export made the change. */
  readonly day: Day;
}

export const newTableState = ({ initialColumns }: Table, timezone: string | null): TableState => ({
  timezone,
  columns: initialColumns,
  receipts: new Map(),
  exportState: undefined,
  changes: [],
});

export const newPlaceState = (timezone: string | null): PlaceState => ({ events: newTableState(EVENTS, timezone) });

/** The state of a place after a change of one table. `state`: undefined for a new place. */
export const withTable = (state: PlaceState | undefined, { name }: Table, tableState: TableState): PlaceState => ({
  ...(state ?? newPlaceState(tableState.timezone)),
  [name]: tableState,
});

/** The state of a table once some rows of days have left it. `rowsLost`: their number, by day. */
export function withoutRows(tableState: TableState, rowsLost: ReadonlyMap<Day, number>, changedAt: string): TableState {
  const receipts = mapReceipts(tableState.receipts, (receipt) => {
    const lost = rowsLost.get(receipt.day) ?? 0;
    return lost === 0 ? receipt : { ...receipt, rows_stored: receipt.rows_stored - lost, changed_at: changedAt };
  });
  return { ...tableState, receipts };
}

/** The state of a table in JSON, where two members have other names (schemas/files-state.json). */
export interface TableJson extends Pick<TableState, 'timezone' | 'columns' | 'changes'> {
  readonly cursor: ExportState | null;
  readonly days: readonly StoredReceipt[];
}

export const tableToJson = ({ exportState, receipts, ...table }: TableState): TableJson => ({
  ...table,
  cursor: exportState ?? null,
  days: [...receipts.values()],
});

export const tableFromJson = ({ timezone, columns, cursor, changes, days }: TableJson): TableState => ({
  timezone,
  columns,
  receipts: receiptsOf(days),
  exportState: parseState(cursor),
  changes,
});
