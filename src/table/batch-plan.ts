// This folder: what a place holds beside its rows, and what a batch makes of it. It knows no DuckDB and no disk.
//
// For each batch a sink calls `splitBatch` of `receipts.ts` and `planBatch` of this file. It stores the rows, and calls
// `finishBatch` of `commit.ts`. `column-plan.ts` decides which columns are new, `names.ts` their names,
// `column-type.ts` the types of all. `changes.ts` records what became of them. `place-state.ts`, `receipts.ts` and
// `tables.ts` say what is stored, `place-warnings.ts` what is worth knowing of it.

import { columnKey, EXTERNAL_ID, UNIFIED_ID } from '../cells/csv/header.ts';
import { zoneOf } from '../cells/types/zone.ts';
import type { CheckedDay } from '../extract/checked-day.ts';
import { changesOf, type PlannedChange } from './changes.ts';
import { addedColumns, type ColumnRules, type PlannedColumn, scannedColumns } from './column-plan.ts';
import { type ColumnCells, planColumn, settingOf } from './column-type.ts';
import type { StoredProfiles } from './place-state.ts';
import { EVENTS, type StoredColumn, type Table, USER_PROFILES } from './tables.ts';

/** A day of a batch. */
export interface PlannedDay {
  readonly download: CheckedDay;
  /** Its cells in each column of the place, by position. */
  readonly cells: readonly ColumnCells[];
}

/** The days of a commit, and the columns of the place after it. */
export interface PlannedBatch {
  /** All columns of the place after the batch, by position. */
  readonly columns: readonly PlannedColumn[];
  readonly changes: readonly PlannedChange[];
  readonly days: readonly PlannedDay[];
  readonly timezone: string | undefined;
  readonly table: Table;
}

/** Plans a batch. `storedColumns`: those of the table; undefined if nothing was committed to it. */
export function planBatch(
  storedColumns: readonly StoredColumn[] | undefined,
  batch: readonly CheckedDay[],
  rules: ColumnRules,
  table: Table = EVENTS,
): PlannedBatch {
  const { timezone, pinned } = rules;
  const zone = zoneOf(timezone);
  const isFirst = storedColumns === undefined;
  const columnsBefore = storedColumns ?? table.firstColumns;
  const scanned = scannedColumns(batch.flatMap(({ files }) => files));
  const scans = batch.map(({ receipt: { day }, files }) => ({ day, scanned: scannedColumns(files) }));
  const allColumns = [...columnsBefore, ...addedColumns(columnsBefore, scanned, rules)];
  // Without a pinned schema the first commit gives `freeze` its columns.
  const isFrozen = rules.schemaMode === 'freeze' && !(isFirst && pinned === undefined);
  const planned = allColumns.map((stored) => {
    const { source, occurrence } = stored;
    const key = columnKey(source, occurrence);
    const setting = settingOf(stored, allColumns, rules);
    const isPinned = occurrence === 1 && pinned?.has(source) === true;
    const typeRules = { stored, setting, declared: scanned.get(key)?.declared, isPinned, isFrozen, zone };
    const scansByDay = scans.map((scan) => scan.scanned.get(key));
    return planColumn(typeRules, scansByDay);
  });
  const columns = planned.map(({ column }) => column);
  const days = batch.map((download, i) => ({ download, cells: planned.map(({ cellsByDay }) => cellsByDay[i]) }));
  return { columns, changes: changesOf(columns, scans, { isFirst, zone }), days, timezone, table };
}

/**
 * Plans a snapshot of user profiles: columns and types join with those of the snapshot before. Both ids are texts.
 * Undefined if the stored snapshot was requested later.
 */
export function planSnapshot(
  before: StoredProfiles | undefined,
  snapshot: CheckedDay,
  rules: ColumnRules,
): PlannedBatch | undefined {
  if (before !== undefined && before.receipt.requested_at > snapshot.receipt.requested_at) return undefined;
  const columnTypes = new Map([...rules.columnTypes, [UNIFIED_ID, 'string'], [EXTERNAL_ID, 'string']] as const);
  return planBatch(before?.columns, [snapshot], { ...rules, columnTypes, pinned: undefined }, USER_PROFILES);
}
