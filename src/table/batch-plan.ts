// This folder: what a place holds beside its rows, and what a batch makes of it. It knows no DuckDB and no disk.
//
// For each batch a sink calls `planBatch` of this file. It stores the rows, and calls `finishBatch` of `commit.ts`. Of a
// snapshot of profiles the batch is one download, which replaces its table. `column-plan.ts` decides which columns are
// new, `column-names.ts` their names, `column-type.ts` the types of all. `column-changes.ts` records what became of
// them. `place-state.ts`, `receipts.ts` and `tables.ts` say what is stored, `place-warnings.ts` what is worth knowing
// of it.

import { type Day, formatDays } from '../base/days.ts';
import type { Logger } from '../base/log.ts';
import { columnKey } from '../cells/csv/header.ts';
import { zoneOf } from '../cells/types/zone.ts';
import type { CheckedDay } from '../extract/checked-day.ts';
import type { CommitInfo } from '../extract/export-state.ts';
import { changesOf, type PlannedColumnChange } from './column-changes.ts';
import { addedColumns, type ColumnRules, type PlannedColumn, scannedColumns } from './column-plan.ts';
import { type ColumnCells, configuredTypeOf, planColumn } from './column-type.ts';
import type { TableState } from './place-state.ts';
import type { StoredReceipt } from './receipts.ts';
import { EVENTS, type StoredColumn, type Table, typedColumns } from './tables.ts';

/** A day that is to be stored. */
export interface PlannedDay {
  readonly download: CheckedDay;
  /** Its cells in each column of the place, by position. */
  readonly cells: readonly ColumnCells[];
}

/** Days that are to be stored, and the columns of their table then. */
export interface PlannedDays {
  /** All columns of the table after these days, by position. */
  readonly columns: readonly PlannedColumn[];
  readonly changes: readonly PlannedColumnChange[];
  readonly days: readonly PlannedDay[];
  readonly timezone: string | undefined;
  readonly table: Table;
}

/** A batch as a commit stores it. */
export interface PlannedBatch extends PlannedDays {
  /** The table before the commit. */
  readonly before: TableState;
  /** The days of the batch that are not written, since their rows are there. */
  readonly unchanged: readonly CheckedDay[];
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
 * Plans a batch. A day is unchanged if it has the same bytes and filters as the stored one, and its rows are there.
 * Undefined if the place holds a later download of each day.
 */
export async function planBatch(
  before: TableState,
  batch: readonly CheckedDay[],
  { table, commitInfo, rules, logger, countRows }: BatchOptions,
): Promise<PlannedBatch | undefined> {
  // A snapshot replaces the one that is there, whatever its day.
  const [snapshot] = before.receipts.values();
  const storedReceipt = (day: Day) => (table.isSnapshot ? snapshot : before.receipts.get(day));
  const isOlder = ({ receipt: { day, requested_at, source } }: CheckedDay) =>
    source !== 'file' && requested_at < (storedReceipt(day)?.requested_at ?? '');
  const older = batch.filter(isOlder);
  if (older.length > 0) {
    const what = table.isSnapshot ? table.name : formatDays(older.map(({ receipt }) => receipt.day));
    const message = `another run has loaded a later download of ${what}, which stays: that of this run is left out.`;
    logger.warn('days.older', message, { days: older.length });
  }
  const downloads = batch.filter((download) => !isOlder(download));
  if (downloads.length === 0) return undefined;
  const candidates = downloads.filter(({ receipt: { day, sha256, filters } }) => {
    const stored = storedReceipt(day);
    return !commitInfo.rewrites && stored?.sha256 === sha256 && stored.filters === filters && stored.pruned !== true;
  });
  const rowsByDay = candidates.length === 0 ? undefined : await countRows(candidates.map(({ receipt }) => receipt.day));
  const unchanged = candidates.filter((download) => {
    const { day } = download.receipt;
    return (rowsByDay?.get(day) ?? 0) === rowsToHold(download, storedReceipt(day));
  });
  const toWrite = downloads.filter((download) => !unchanged.includes(download));
  const storedColumns = before.receipts.size === 0 ? undefined : before.columns;
  const planned = planDays(storedColumns, toWrite, rules, table);
  // Without a day to write no setting changes a column.
  const kept = before.columns.map((column) => ({ ...column, storedType: column.type }));
  return { ...planned, ...(toWrite.length === 0 && { columns: kept }), before, unchanged, commitInfo };
}

/**
 * Number of rows by which a place holds all of a download. If the day shares rows with its neighbours, the last commit
 * says how many it left. It does so only if the same people were suppressed.
 */
function rowsToHold({ receipt, mayShareRows }: CheckedDay, stored: StoredReceipt | undefined): number {
  if (mayShareRows && stored?.suppressed === receipt.suppressed) return stored.rows_stored;
  return receipt.rows - receipt.suppressed;
}

/** Plans days. `storedColumns`: those of the table; undefined if nothing was committed to it. */
export function planDays(
  storedColumns: readonly StoredColumn[] | undefined,
  downloads: readonly CheckedDay[],
  settings: ColumnRules,
  table: Table = EVENTS,
): PlannedDays {
  const rules = rulesOf(table, settings);
  const { timezone, pinned } = rules;
  const zone = zoneOf(timezone);
  const isFirst = storedColumns === undefined;
  const columnsBefore = storedColumns ?? table.firstColumns;
  const scanned = scannedColumns(downloads.flatMap(({ files }) => files));
  const scans = downloads.map(({ receipt: { day }, files }) => ({ day, scanned: scannedColumns(files) }));
  const allColumns = [...columnsBefore, ...addedColumns(columnsBefore, scanned, rules)];
  // Without a pinned schema the first commit gives `freeze` its columns.
  const isFrozen = rules.schemaMode === 'freeze' && !(isFirst && pinned === undefined);
  const planned = allColumns.map((storedColumn) => {
    const { source, occurrence } = storedColumn;
    const key = columnKey(source, occurrence);
    const configuredType = configuredTypeOf(storedColumn, allColumns, rules);
    const isPinned = occurrence === 1 && pinned?.has(source) === true;
    const typeRules = { storedColumn, configuredType, declared: scanned.get(key)?.declared, isPinned, isFrozen, zone };
    const scansByDay = scans.map((scan) => scan.scanned.get(key));
    return planColumn(typeRules, scansByDay);
  });
  const columns = planned.map(({ column }) => column);
  const days = downloads.map((download, i) => ({ download, cells: planned.map(({ cellsByDay }) => cellsByDay[i]) }));
  return { columns, changes: changesOf(columns, scans, { isFirst, zone }), days, timezone, table };
}

/** The first columns of a snapshot, its ids, keep their types. A pinned schema is one of events. */
function rulesOf({ isSnapshot, firstColumns }: Table, rules: ColumnRules): ColumnRules {
  if (!isSnapshot) return rules;
  const idTypes = typedColumns(firstColumns).map(({ source, type }) => [source, type] as const);
  return { ...rules, columnTypes: new Map([...rules.columnTypes, ...idTypes]), pinned: undefined };
}
