import { MAX_SCANNED_NAMES } from '../cells/columns/columns.ts';
import type { SuppressionMark } from '../cells/columns/row-filter.ts';
import { type ExportState, NO_PRIOR_LOADS, type PriorLoads, type SpoolFile } from '../extract/window.ts';
import { type ColumnChange, MAX_CHANGES } from './changes.ts';
import { FIRST_COLUMNS, type StoredColumn, storedColumn, type TableName } from './columns.ts';
import { coveredDays, receiptsWith, rowsOf, type StoredReceipt } from './receipts.ts';

/** All that a place holds beside its rows and its runs. `applyBatch` alone says what a batch makes of it. */
export interface TableState {
  /** Zone of all datetimes that name none, null if there is no such zone; fixed by the first load. */
  readonly timezone: string | null;
  /** `events`, and the tables that are kept with it: those that a load asked for. */
  readonly tables: readonly TableName[];
  /**
   * Columns in the order of their positions. They are kept so that names never change, and types do not depend on
   * the order of days.
   */
  readonly columns: readonly StoredColumn[];
  /** Receipts in the order of their windows: for the cursor, superseded rows, and `verify`. */
  readonly receipts: readonly StoredReceipt[];
  /** Names of events seen, sorted, for a day that must be split. */
  readonly eventNames: readonly string[];
  /** The cursor and its companions, as given with the last window: for the next plan, and who may load here. */
  readonly exportState: ExportState | null;
  /** Column changes, oldest first: for `report` and `_dfinery_changes`. */
  readonly changes: readonly ColumnChange[];
  /** The suppression list that the place was purged with; absent if none was. */
  readonly suppression?: SuppressionMark | undefined;
}

export const MAX_EVENT_NAMES = 10_000;

export const newState = (timezone: string | null, tables: readonly TableName[]): TableState => ({
  timezone,
  tables,
  columns: FIRST_COLUMNS,
  receipts: [],
  eventNames: [],
  exportState: null,
  changes: [],
});

/**
 * What a batch of windows adds to a state: all columns as planned, its receipts and changes, the last window's state.
 */
export interface StoredBatch extends Pick<TableState, 'columns' | 'receipts' | 'changes'> {
  readonly eventNames: Iterable<string>;
  readonly exportState: ExportState;
  /** Rows that are there after the batch, by the number of the window that last wrote them. */
  readonly liveRows: ReadonlyMap<number, number>;
}

export function applyBatch(state: TableState, batch: StoredBatch): TableState {
  return {
    ...state,
    columns: batch.columns.map(storedColumn),
    receipts: receiptsWith([...state.receipts, ...batch.receipts], batch.liveRows),
    eventNames: withNames(state.eventNames, batch.eventNames),
    exportState: batch.exportState,
    changes: [...state.changes, ...batch.changes].slice(-MAX_CHANGES),
  };
}

function withNames(known: readonly string[], more: Iterable<string>): string[] {
  const names = new Set(known);
  for (const name of more) if (names.size < MAX_EVENT_NAMES) names.add(name);
  return [...names].sort();
}

/** The event names that the scans of these files found; undefined if a list may be incomplete. */
export function scannedEventNames(files: readonly SpoolFile[]): string[] | undefined {
  const lists = files.map((file) => file.eventNames);
  return lists.some((list) => list.length >= MAX_SCANNED_NAMES) ? undefined : [...new Set(lists.flat())];
}

/** The part of a state that a plan needs; `loaded` is undefined if nothing was loaded yet. */
export function priorLoadsOf(loaded: TableState | undefined): PriorLoads {
  if (loaded === undefined) return NO_PRIOR_LOADS;
  const { exportState, receipts, eventNames } = loaded;
  return {
    state: exportState ?? undefined,
    covered: coveredDays(receipts),
    eventNames,
    rowsOf: (from, to) => rowsOf(receipts, from, to),
  };
}
