// This folder: what a place holds beside its rows, and what a batch makes of it. It knows no DuckDB and no disk.
//
// For each batch a sink calls `planBatch` of this file. It stores the rows, and calls `finishBatch` of `commit.ts`. Of a
// snapshot of profiles the batch is one download, which replaces its table. `new-columns.ts` decides which columns are
// new, `column-names.ts` their names, `column-type.ts` the types of all. `column-changes.ts` records what became of
// them. `place-state.ts`, `receipts.ts` and `tables.ts` say what is stored, `place-warnings.ts` what is worth knowing
// of it.

import { type Day, formatDays } from '../base/days.ts';
import type { Logger } from '../base/log.ts';
import { columnKey } from '../cells/csv/header.ts';
import { zoneOf } from '../cells/types/zone.ts';
import { type CheckedDay, mayShareRows, type Receipt } from '../extract/checked-day.ts';
import type { CommitInfo } from '../extract/export-state.ts';
import { changesOf, type PlannedColumn, type PlannedColumnChange } from './column-changes.ts';
import { type ColumnForms, configuredTypeOf, planColumn } from './column-type.ts';
import { type ColumnRules, newColumns, scannedColumns } from './new-columns.ts';
import type { TableState } from './place-state.ts';
import type { StoredReceipt } from './receipts.ts';
import { EVENTS, type StoredColumn, type Table, typedColumns } from './tables.ts';

/** A day that is to be stored. */
export interface PlannedDay {
  readonly download: CheckedDay;
  /** The forms of its cells in each column of the place, by position. */
  readonly columnForms: readonly ColumnForms[];
}

/** Days that are to be stored, and the columns of their table then. */
export interface PlannedDays {
  /** All columns of the table after these days, by position. */
  readonly columns: readonly PlannedColumn[];
  readonly changes: readonly PlannedColumnChange[];
  readonly days: readonly PlannedDay[];
  readonly timezone: string | null;
  readonly table: Table;
}

/** A batch as a commit stores it. */
export interface PlannedBatch extends PlannedDays {
  readonly tableBefore: TableState;
  /** The days of the batch that are not written, since their rows are there. */
  readonly unchangedDays: readonly CheckedDay[];
  readonly commitInfo: CommitInfo;
}

interface BatchOptions {
  readonly table: Table;
  readonly commitInfo: CommitInfo;
  readonly rules: ColumnRules;
  readonly logger: Logger;
  /** Counts the rows that the place holds of days, since a receipt proves nothing. */
  countRows(days: readonly Day[]): Promise<ReadonlyMap<Day, number>>;
}

/**
 * Plans a batch. A day is unchanged if it has the same bytes and filters as the stored one, which was not pruned, and
 * its rows are there; but not in a snapshot, nor in a run that writes every day. Undefined if the place holds a later
 * download of each day.
 */
export async function planBatch(
  tableBefore: TableState,
  batch: readonly CheckedDay[],
  { table, commitInfo, rules, logger, countRows }: BatchOptions,
): Promise<PlannedBatch | undefined> {
  const { receipts, columns } = tableBefore;
  // A snapshot replaces the one that is there, whatever its day.
  const [snapshotReceipt] = receipts.values();
  const storedReceiptOf = (day: Day) => (table.isSnapshot ? snapshotReceipt : receipts.get(day));
  const downloads = withoutOlder(batch, storedReceiptOf, table, logger);
  if (downloads.length === 0) return undefined;
  const mayBeUnchanged = ({ receipt: { day, sha256, filters } }: CheckedDay) => {
    const stored = storedReceiptOf(day);
    return stored?.sha256 === sha256 && stored.filters === filters && stored.pruned !== true;
  };
  const candidates = table.isSnapshot || commitInfo.rewrites ? [] : downloads.filter(mayBeUnchanged);
  const rowsByDay = candidates.length === 0 ? undefined : await countRows(candidates.map(({ receipt }) => receipt.day));
  const unchangedDays = candidates.filter(
    ({ receipt }) => (rowsByDay?.get(receipt.day) ?? 0) === expectedRows(receipt, storedReceiptOf(receipt.day)),
  );
  const daysToWrite = downloads.filter((download) => !unchangedDays.includes(download));
  // Without a day to write no setting of a column counts.
  const sameColumns = columns.map((column) => ({ ...column, storedType: column.type }));
  const plan: PlannedDays =
    daysToWrite.length === 0
      ? { columns: sameColumns, changes: [], days: [], timezone: rules.timezone, table }
      : planDays(receipts.size === 0 ? undefined : columns, daysToWrite, rules, table);
  return { ...plan, tableBefore, unchangedDays, commitInfo };
}

/** The downloads of a batch that are not older than those of the place; warns of the others. */
function withoutOlder(
  batch: readonly CheckedDay[],
  storedReceiptOf: (day: Day) => StoredReceipt | undefined,
  table: Table,
  logger: Logger,
): CheckedDay[] {
  const isOlder = ({ receipt: { day, requested_at, source } }: CheckedDay) =>
    source !== 'file' && requested_at < (storedReceiptOf(day)?.requested_at ?? '');
  const olderDays = batch.filter(isOlder).map(({ receipt }) => receipt.day);
  if (olderDays.length > 0) {
    const subject = table.isSnapshot ? table.name : formatDays(olderDays);
    const message = `another run has loaded a later download of ${subject}, which stays: that of this run is left out.`;
    logger.warn('days.older', message, { days: olderDays.length });
  }
  return batch.filter((download) => !isOlder(download));
}

/**
 * Number of rows by which a place holds all of a download. If the day shares rows with its neighbours, the last commit
 * says how many it left. It does so only if the same people were suppressed.
 */
function expectedRows(receipt: Receipt, stored: StoredReceipt | undefined): number {
  if (mayShareRows(receipt) && stored?.suppressed === receipt.suppressed) return stored.rows_stored;
  return receipt.rows - receipt.suppressed;
}

/** Plans days. `storedColumns`: those of the table; undefined if nothing was committed to it. */
export function planDays(
  storedColumns: readonly StoredColumn[] | undefined,
  downloads: readonly CheckedDay[],
  rules: ColumnRules,
  table: Table = EVENTS,
): PlannedDays {
  const tableRules = rulesOf(table, rules);
  const { timezone, pinned, schemaMode } = tableRules;
  const zone = zoneOf(timezone);
  const isFirstCommit = storedColumns === undefined;
  const columnsBefore = storedColumns ?? table.firstColumns;
  const batchColumns = scannedColumns(downloads.flatMap(({ files }) => files));
  const columnsByDay = downloads.map(({ receipt: { day }, files }) => ({ day, columns: scannedColumns(files) }));
  const tableColumns = [...columnsBefore, ...newColumns(columnsBefore, batchColumns, tableRules)];
  // Without a pinned schema the first commit gives `freeze` its columns.
  const isFrozen = schemaMode === 'freeze' && !(isFirstCommit && pinned === undefined);
  const plannedColumns = tableColumns.map((storedColumn) => {
    const { source, occurrence } = storedColumn;
    const key = columnKey(storedColumn);
    const configuredType = configuredTypeOf(storedColumn, tableColumns, tableRules);
    const declared = batchColumns.get(key)?.declared;
    const isPinned = occurrence === 1 && pinned?.has(source) === true;
    const columnByDay = columnsByDay.map((day) => day.columns.get(key));
    return planColumn({ storedColumn, configuredType, declared, isPinned, isFrozen, zone }, columnByDay);
  });
  const columns = plannedColumns.map(({ column }) => column);
  const days = downloads.map((download, i) => {
    return { download, columnForms: plannedColumns.map(({ formsByDay }) => formsByDay[i]) };
  });
  return { columns, changes: changesOf(columns, columnsByDay, { isFirstCommit, zone }), days, timezone, table };
}

/** The first columns of a snapshot, its ids, keep their types. A pinned schema is one of events. */
function rulesOf({ isSnapshot, firstColumns }: Table, rules: ColumnRules): ColumnRules {
  if (!isSnapshot) return rules;
  const idTypes = typedColumns(firstColumns).map(({ source, type }) => [source, type] as const);
  return { ...rules, columnTypes: new Map([...rules.columnTypes, ...idTypes]), pinned: undefined };
}
