import { type Day, formatDays } from '../base/days.ts';
import type { Logger } from '../base/log.ts';
import { type CheckedDay, mayShareRows, type Receipt } from '../extract/checked-day.ts';
import type { CommitInfo } from '../extract/export-state.ts';
import { type ColumnPlan, planColumns } from './column-plan.ts';
import { type ColumnSettings, settingsOfTable } from './column-type.ts';
import type { TableState } from './place-state.ts';
import { nextChangedAt, type Receipts, type StoredReceipt } from './receipts.ts';
import type { Table } from './tables.ts';

/** A batch as a commit stores it. */
export interface PlannedBatch extends ColumnPlan {
  readonly table: Table;
  readonly tableBefore: TableState;
  readonly commitInfo: CommitInfo;
  /** The downloads whose rows are written. */
  readonly writtenDownloads: readonly CheckedDay[];
  /** Those whose rows the place has already. */
  readonly unchangedDownloads: readonly CheckedDay[];
  /** The `changed_at` of the days whose rows change. */
  readonly changedAt: string;
}

interface BatchOptions {
  readonly table: Table;
  readonly commitInfo: CommitInfo;
  readonly columnSettings: ColumnSettings;
  readonly logger: Logger;
  /** In ms since 1970. */
  readonly now: number;
  /** Counts the rows that the place holds of days, since a receipt proves nothing. */
  countRows(days: readonly Day[]): Promise<ReadonlyMap<Day, number>>;
}

/** Plans a batch; undefined if the place holds a later download of each day. */
export async function planBatch(
  tableBefore: TableState,
  batch: readonly CheckedDay[],
  options: BatchOptions,
): Promise<PlannedBatch | undefined> {
  const { table, commitInfo, columnSettings, now, countRows } = options;
  const { receipts, columns: columnsBefore } = tableBefore;
  const acceptedDownloads = withoutOlder(batch, receipts, options);
  if (acceptedDownloads.length === 0) return undefined;
  const mayBeUnchanged = !table.isSnapshot && !commitInfo.alwaysWrites;
  const unchangedDownloads = mayBeUnchanged ? await findUnchanged(acceptedDownloads, receipts, countRows) : [];
  const writtenDownloads = acceptedDownloads.filter((download) => !unchangedDownloads.includes(download));
  const settings = settingsOfTable(table, columnSettings);
  const columnPlan = planColumns(columnsBefore, writtenDownloads, settings, receipts.size === 0);
  const changedAt = nextChangedAt(receipts, now);
  return { table, tableBefore, commitInfo, writtenDownloads, unchangedDownloads, changedAt, ...columnPlan };
}

/** Leaves out, with a warning, the downloads that are older than the stored ones. A file replaces every download. */
function withoutOlder(
  batch: readonly CheckedDay[],
  receipts: Receipts,
  { table, logger }: BatchOptions,
): readonly CheckedDay[] {
  const isOlder = ({ receipt }: CheckedDay) => {
    // A snapshot replaces the one that is there, whatever its day.
    const storedReceipt = table.isSnapshot ? [...receipts.values()].at(0) : receipts.get(receipt.day);
    if (storedReceipt === undefined || receipt.source === 'file') return false;
    return receipt.requested_at < storedReceipt.requested_at;
  };
  const olderDays = batch.filter(isOlder).map(({ receipt }) => receipt.day);
  if (olderDays.length > 0) {
    const subject = table.isSnapshot ? table.name : formatDays(olderDays);
    const message = `another run has loaded a later download of ${subject}, which stays: that of this run is left out.`;
    logger.warn('days.older', message, { days: olderDays.length });
  }
  return batch.filter((download) => !isOlder(download));
}

/** The downloads with the bytes and filters of the stored ones, which were not pruned, and whose rows are there. */
async function findUnchanged(
  downloads: readonly CheckedDay[],
  receipts: Receipts,
  countRows: BatchOptions['countRows'],
): Promise<readonly CheckedDay[]> {
  const sameDownloads = downloads.filter(({ receipt: { day, sha256, filters } }) => {
    const storedReceipt = receipts.get(day);
    return storedReceipt?.sha256 === sha256 && storedReceipt.filters === filters && storedReceipt.pruned !== true;
  });
  if (sameDownloads.length === 0) return [];
  const rowsByDay = await countRows(sameDownloads.map(({ receipt }) => receipt.day));
  return sameDownloads.filter(
    ({ receipt }) => (rowsByDay.get(receipt.day) ?? 0) === expectedRows(receipt, receipts.get(receipt.day)),
  );
}

/**
 * The number of rows that a day has if the place holds all of its download. A day that may share rows with its
 * neighbours has what the last commit left, if as many were suppressed. Any other has all but those suppressed now.
 */
function expectedRows(receipt: Receipt, storedReceipt: StoredReceipt | undefined): number {
  if (mayShareRows(receipt) && storedReceipt?.suppressed === receipt.suppressed) return storedReceipt.rows_stored;
  return receipt.rows - receipt.suppressed;
}
