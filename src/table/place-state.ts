import type { Day } from '../base/days.ts';
import { stateAfter } from '../extract/export-state.ts';
import { type ExportState, NO_PRIOR_LOADS, type PriorLoads, type Receipt, type RunFacts } from '../extract/receipt.ts';
import type { ColumnChange } from './changes.ts';
import { FIRST_COLUMNS, type StoredColumn, storedColumn } from './columns.ts';
import { type Receipts, receiptsOf, withRows } from './receipts.ts';
import type { RunRecord } from './runs.ts';

/** All that a place holds beside its rows. `applyBatch` alone says what a commit makes of it. */
export interface TableState {
  /** Zone of all datetimes that name none, null if there is no such zone; fixed by the first load. */
  readonly timezone: string | null;
  /**
   * Columns in the order of their positions. They are kept so that names never change, and types do not depend on
   * the order of days.
   */
  readonly columns: readonly StoredColumn[];
  readonly receipts: Receipts;
  /** The cursor and its companions; undefined before the first commit. */
  readonly exportState: ExportState | undefined;
  /** Column changes, oldest first. */
  readonly changes: readonly ColumnChange[];
  readonly lastRun?: RunRecord | undefined;
  /** Number of people on the suppression list with which the place was purged last. */
  readonly suppressionLength?: number | undefined;
}

/** Number of column changes that a place keeps, the latest ones. */
const MAX_CHANGES = 10_000;

export const newState = (timezone: string | null): TableState => ({
  timezone,
  columns: FIRST_COLUMNS,
  receipts: new Map(),
  exportState: undefined,
  changes: [],
});

/** What a commit stores: all columns as planned, a receipt for each day, and the changes of columns. */
export interface StoredBatch extends Pick<TableState, 'columns' | 'changes'> {
  readonly receipts: readonly Receipt[];
  /** Rows that are there after the commit: of its days, and of neighbouring days that lost rows to them. */
  readonly rowsByDay: ReadonlyMap<Day, number>;
  readonly facts: RunFacts;
  /** Instant of the commit, by `nextChange`. */
  readonly changedAt: string;
}

export function applyBatch(before: TableState, batch: StoredBatch): TableState {
  const { rowsByDay } = batch;
  const kept = withRows(before.receipts, rowsByDay, batch.changedAt);
  const added = batch.receipts.map((receipt) => ({
    ...receipt,
    rows_stored: rowsByDay.get(receipt.day) ?? 0,
    changed_at: batch.changedAt,
  }));
  const receipts = receiptsOf([...kept.values(), ...added]);
  return {
    ...before,
    columns: batch.columns.map(storedColumn),
    receipts,
    exportState: stateAfter(before.exportState, receipts, batch.facts),
    changes: [...before.changes, ...batch.changes].slice(-MAX_CHANGES),
  };
}

/** The part of a state that a plan needs; `loaded` is undefined if nothing was loaded yet. */
export const priorLoadsOf = (loaded: TableState | undefined): PriorLoads =>
  loaded === undefined ? NO_PRIOR_LOADS : { state: loaded.exportState, receipts: loaded.receipts };
