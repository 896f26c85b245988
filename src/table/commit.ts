import type { Day } from '../base/days.ts';
import type { ColumnType } from '../cells/types/column-types.ts';
import { stateAfter } from '../extract/export-state.ts';
import { wasReadForLastTime } from '../extract/which-days.ts';
import type { PlannedBatch } from './batch-plan.ts';
import { isWidened } from './column-plan.ts';
import type { TableState } from './place-state.ts';
import { countStoredRows, mapReceipts, type Receipts, type StoredReceipt, withReceipts } from './receipts.ts';
import { typedColumns } from './tables.ts';

/** What a target has counted of a batch once its rows are stored. */
export interface StoredBatch {
  /** Rows that are there now: of the days of the batch, and of neighbouring days that lost rows to them. */
  readonly rowsByDay: ReadonlyMap<Day, number>;
  /** Other days with a value in a column that widens. */
  readonly widenedDays: ReadonlySet<Day>;
  /** Number of cells put into `_rescued`, by their key there. */
  readonly rescuedCells: ReadonlyMap<string, number>;
}

/** What one commit or several have changed. */
export interface CommitResult {
  /** The days of the batch whose rows were written. */
  readonly daysWritten: readonly Day[];
  /** Rows of these days that are stored. */
  readonly rowsWritten: number;
  /** Rows that the table has more than before; negative if it has fewer. */
  readonly rowsGained: number;
  /** The days of the batch whose rows were there already. */
  readonly daysUnchanged: readonly Day[];
  /** The days of which rows were added, replaced, widened or removed: beside those of the batch perhaps others. */
  readonly daysChanged: readonly Day[];
  /** Columns that it added, by their names in the table. */
  readonly columnsAdded: readonly string[];
  /** Columns that it widened, without those that it added. */
  readonly columnsWidened: readonly { readonly name: string; readonly from: ColumnType; readonly to: ColumnType }[];
  /** Number of cells put into `_rescued`, by their key there. */
  readonly rescuedCells: ReadonlyMap<string, number>;
}

export const NOTHING_STORED: CommitResult = {
  daysWritten: [],
  rowsWritten: 0,
  rowsGained: 0,
  daysUnchanged: [],
  daysChanged: [],
  columnsAdded: [],
  columnsWidened: [],
  rescuedCells: new Map(),
};

/** The sum of two commits. A column counts as widened if it was there before both, and once, with both types. */
export function sumOfCommits(total: CommitResult, commit: CommitResult): CommitResult {
  const columnsAdded = [...total.columnsAdded, ...commit.columnsAdded];
  const widenedColumns = new Map(total.columnsWidened.map((column) => [column.name, column]));
  for (const column of commit.columnsWidened) {
    if (columnsAdded.includes(column.name)) continue;
    widenedColumns.set(column.name, { ...column, from: widenedColumns.get(column.name)?.from ?? column.from });
  }
  const rescuedCells = new Map(total.rescuedCells);
  for (const [column, cells] of commit.rescuedCells) rescuedCells.set(column, (rescuedCells.get(column) ?? 0) + cells);
  return {
    daysWritten: [...total.daysWritten, ...commit.daysWritten],
    rowsWritten: total.rowsWritten + commit.rowsWritten,
    rowsGained: total.rowsGained + commit.rowsGained,
    daysUnchanged: [...total.daysUnchanged, ...commit.daysUnchanged],
    daysChanged: [...new Set([...total.daysChanged, ...commit.daysChanged])].sort(),
    columnsAdded,
    columnsWidened: [...widenedColumns.values()],
    rescuedCells,
  };
}

/**
 * The table after a batch whose rows are stored. Days whose rows change get its `changedAt`. A day has
 *
 *   if written    the receipt of the download
 *   if unchanged  that of the download if the day is over now, or read for the last time, or if its span has changed;
 *                 else the stored one
 *   else          the stored receipt
 */
export function tableAfterBatch(
  { table, tableBefore, columns, changes, writtenDownloads, unchangedDownloads, changedAt, commitInfo }: PlannedBatch,
  { rowsByDay, widenedDays }: StoredBatch,
): TableState {
  // A snapshot replaces rows and receipts. All else goes on: a killed run may leave the rows of before.
  const receiptsBefore: Receipts = table.isSnapshot ? new Map() : tableBefore.receipts;
  const writtenReceipts = writtenDownloads.map(({ receipt }): StoredReceipt => {
    return { ...receipt, rows_stored: rowsByDay.get(receipt.day) ?? 0, changed_at: changedAt };
  });
  const unchangedReceipts = new Map(unchangedDownloads.map(({ receipt }) => [receipt.day, receipt]));
  const otherReceipts = mapReceipts(receiptsBefore, (storedReceipt) => {
    const { day, is_over, to_date } = storedReceipt;
    const newReceipt = unchangedReceipts.get(day);
    const isRenewed =
      newReceipt !== undefined &&
      (newReceipt.is_over !== is_over ||
        newReceipt.to_date !== to_date ||
        wasReadForLastTime(day, newReceipt) !== wasReadForLastTime(day, storedReceipt));
    // Also an unchanged or another day may lose rows to a written one, or have a column that widens.
    const rows_stored = rowsByDay.get(day) ?? storedReceipt.rows_stored;
    const hasChangedRows = rows_stored !== storedReceipt.rows_stored || widenedDays.has(day);
    const changed_at = hasChangedRows ? changedAt : storedReceipt.changed_at;
    return { ...(isRenewed ? newReceipt : storedReceipt), rows_stored, changed_at };
  });
  const receipts = withReceipts(otherReceipts, writtenReceipts);
  return {
    ...tableBefore,
    columns: columns.map(({ typeBefore, cellsByDay, ...column }) => column),
    receipts,
    exportState: stateAfter(tableBefore.exportState, receipts, commitInfo),
    changes: [...tableBefore.changes, ...changes.map((change) => ({ changedAt, ...change }))],
  };
}

/** The result of the commit of a batch, after which the table is `tableAfter`. */
export function commitResultOf(
  { tableBefore, columns, writtenDownloads, unchangedDownloads }: PlannedBatch,
  { rescuedCells }: StoredBatch,
  { receipts }: TableState,
): CommitResult {
  const changedReceipts = [...receipts.values()].filter(
    ({ day, changed_at }) => changed_at !== tableBefore.receipts.get(day)?.changed_at,
  );
  // The first commit adds all columns of a table, also those that every table has.
  const isFirstBatch = tableBefore.receipts.size === 0;
  const addedColumns = typedColumns(columns).filter(({ typeBefore }) => isFirstBatch || typeBefore === null);
  const widenedColumns = isFirstBatch ? [] : columns.filter(isWidened);
  return {
    daysWritten: writtenDownloads.map(({ receipt }) => receipt.day),
    rowsWritten: countStoredRows(writtenDownloads.flatMap(({ receipt }) => receipts.get(receipt.day) ?? [])),
    rowsGained: countStoredRows(receipts.values()) - countStoredRows(tableBefore.receipts.values()),
    daysUnchanged: unchangedDownloads.map(({ receipt }) => receipt.day),
    daysChanged: changedReceipts.map(({ day }) => day),
    columnsAdded: addedColumns.map(({ name }) => name),
    columnsWidened: widenedColumns.map(({ name, typeBefore: from, type: to }) => ({ name, from, to })),
    rescuedCells,
  };
}
