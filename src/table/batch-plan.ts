// This folder: what a place holds beside its rows, and what a batch makes of it. It knows no DuckDB and no disk.
//
// For each batch a sink calls `planBatch` of this file. It stores the rows, and calls `finishBatch` of `commit.ts`. Of a
// snapshot of profiles the batch is one download, which replaces its table. `column-plan.ts` plans the columns of the
// table: `new-columns.ts` decides which are new, `column-names.ts` their names, `column-type.ts` the types of all.
// `place-state.ts`, `receipts.ts` and `tables.ts` say what is stored, `place-warnings.ts` what is worth knowing of it.

import { type Day, formatDays } from '../base/days.ts';
import type { Logger } from '../base/log.ts';
import { type CheckedDay, mayShareRows, type Receipt } from '../extract/checked-day.ts';
import type { CommitInfo } from '../extract/export-state.ts';
import { type PlannedColumn, planColumns, unchangedColumn } from './column-plan.ts';
import type { ColumnRules } from './new-columns.ts';
import type { TableState } from './place-state.ts';
import type { Receipts, StoredReceipt } from './receipts.ts';
import type { Table } from './tables.ts';

/** A batch as a commit stores it. */
export interface PlannedBatch {
  readonly table: Table;
  readonly tableBefore: TableState;
  readonly commitInfo: CommitInfo;
  /** The days that are written. */
  readonly days: readonly CheckedDay[];
  /** The days that are not, since their rows are there. */
  readonly unchangedDays: readonly CheckedDay[];
  /** All columns of the table after the batch, by position. */
  readonly columns: readonly PlannedColumn[];
}

interface BatchOptions {
  readonly table: Table;
  readonly commitInfo: CommitInfo;
  readonly rules: ColumnRules;
  readonly logger: Logger;
  /** Counts the rows that the place holds of days, since a receipt proves nothing. */
  countRows(days: readonly Day[]): Promise<ReadonlyMap<Day, number>>;
}

/** Plans a batch; undefined if the place holds a later download of each day. */
export async function planBatch(
  tableBefore: TableState,
  batch: readonly CheckedDay[],
  { table, commitInfo, rules, logger, countRows }: BatchOptions,
): Promise<PlannedBatch | undefined> {
  const { receipts, columns: columnsBefore } = tableBefore;
  // A snapshot replaces the one that is there, whatever its day.
  const [snapshotReceipt] = receipts.values();
  const storedReceiptOf = (day: Day) => (table.isSnapshot ? snapshotReceipt : receipts.get(day));
  const isOlder = ({ receipt: { day, requested_at, source } }: CheckedDay) =>
    source !== 'file' && requested_at < (storedReceiptOf(day)?.requested_at ?? '');
  const olderDays = batch.filter(isOlder).map(({ receipt }) => receipt.day);
  if (olderDays.length > 0) {
    const subject = table.isSnapshot ? table.name : formatDays(olderDays);
    const message = `another run has loaded a later download of ${subject}, which stays: that of this run is left out.`;
    logger.warn('days.older', message, { days: olderDays.length });
  }
  const downloads = batch.filter((download) => !isOlder(download));
  if (downloads.length === 0) return undefined;
  const mayBeUnchanged = !table.isSnapshot && !commitInfo.rewrites;
  const unchangedDays = mayBeUnchanged ? await findUnchangedDays(downloads, receipts, countRows) : [];
  const days = downloads.filter((download) => !unchangedDays.includes(download));
  const columns =
    days.length === 0
      ? columnsBefore.map(unchangedColumn)
      : planColumns(receipts.size === 0 ? undefined : columnsBefore, days, rules, table);
  return { table, tableBefore, commitInfo, days, unchangedDays, columns };
}

/** The days with the same bytes and filters as the stored ones, which were not pruned, and whose rows are there. */
async function findUnchangedDays(
  downloads: readonly CheckedDay[],
  receipts: Receipts,
  countRows: BatchOptions['countRows'],
): Promise<readonly CheckedDay[]> {
  const sameDays = downloads.filter(({ receipt: { day, sha256, filters } }) => {
    const before = receipts.get(day);
    return before?.sha256 === sha256 && before.filters === filters && before.pruned !== true;
  });
  if (sameDays.length === 0) return [];
  const rowsByDay = await countRows(sameDays.map(({ receipt }) => receipt.day));
  return sameDays.filter(
    ({ receipt }) => (rowsByDay.get(receipt.day) ?? 0) === expectedRows(receipt, receipts.get(receipt.day)),
  );
}

/**
 * Number of rows by which a place holds all of a download. If the day shares rows with its neighbours, the last commit
 * says how many it left. It does so only if the same people were suppressed.
 */
function expectedRows(receipt: Receipt, storedReceipt: StoredReceipt | undefined): number {
  const isComparable = mayShareRows(receipt) && storedReceipt?.suppressed === receipt.suppressed;
  return isComparable ? storedReceipt.rows_stored : receipt.rows - receipt.suppressed;
}
