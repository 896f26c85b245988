// This folder: what a place holds beside its rows, and what a batch makes of it. It knows no DuckDB and no disk.
//
// For each batch a sink calls `splitBatch` and `planBatch` of this file, stores the rows, and calls `finishBatch` of
// `commit.ts`. `column-type.ts` decides the types of columns, `column-plan.ts` which are new, `names.ts` their names.
// `changes.ts` records what became of them. `place-state.ts`, `receipts.ts` and `tables.ts` say what is stored,
// `place-warnings.ts` what is worth knowing of it.

import { type Day, nameDays } from '../base/days.ts';
import type { Logger } from '../base/log.ts';
import { columnKey, EVENT_NAME, EVENT_NAME_ALTERNATIVE, EXTERNAL_ID, UNIFIED_ID } from '../cells/columns/groups.ts';
import { zoneOf } from '../cells/types/zone.ts';
import type { DayDownload } from '../extract/checked-day.ts';
import type { RunProgress } from '../extract/export-state.ts';
import { changesOf, type PlannedChange } from './changes.ts';
import { addedColumns, type ColumnRules, type PlannedColumn, scannedColumns } from './column-plan.ts';
import { type ColumnCells, cellsOfDay, decideType, settingOf } from './column-type.ts';
import type { StoredProfiles } from './place-state.ts';
import type { Receipts, StoredReceipt } from './receipts.ts';
import { EVENTS, type StoredColumn, type Table, USER_PROFILES } from './tables.ts';

/** The days of a batch: those whose rows a commit writes, and those whose rows the place holds already. */
interface BatchDays {
  readonly toWrite: readonly DayDownload[];
  readonly unchanged: readonly DayDownload[];
}

/**
 * Splits a batch by what a place holds. A day is unchanged if it has the same bytes and filters, and its rows are
 * there. `countRows` counts them, since a receipt proves nothing.
 */
export async function splitBatch(
  receipts: Receipts,
  batch: readonly DayDownload[],
  { rewrites }: Pick<RunProgress, 'rewrites'>,
  { logger, countRows }: { readonly logger: Logger; countRows(days: Day[]): Promise<ReadonlyMap<Day, number>> },
): Promise<BatchDays> {
  const downloads = leaveOutOlder(receipts, batch, logger);
  const candidates = downloads.filter(({ receipt: { day, sha256, filters } }) => {
    const stored = receipts.get(day);
    return !rewrites && stored?.sha256 === sha256 && stored.filters === filters && stored.pruned !== true;
  });
  const rowsByDay = candidates.length === 0 ? undefined : await countRows(candidates.map(({ receipt }) => receipt.day));
  const unchanged = candidates.filter((download) => {
    const { day } = download.receipt;
    return (rowsByDay?.get(day) ?? 0) === rowsToHold(download, receipts.get(day));
  });
  return { toWrite: downloads.filter((download) => !unchanged.includes(download)), unchanged };
}

/** Leaves out, with a warning, each download that is older than the stored one, unless a user gave its file. */
function leaveOutOlder(receipts: Receipts, batch: readonly DayDownload[], logger: Logger): readonly DayDownload[] {
  const isOlder = ({ receipt: { day, requested_at, source } }: DayDownload) =>
    source !== 'file' && requested_at < (receipts.get(day)?.requested_at ?? '');
  const older = batch.filter(isOlder);
  if (older.length === 0) return batch;
  const days = nameDays(older.map(({ receipt }) => receipt.day));
  const message = `another run has loaded a later download of ${days}, which stays: that of this run is left out.`;
  logger.warn('days.older', message, { days: older.length });
  return batch.filter((download) => !isOlder(download));
}

/**
 * Number of rows by which a place holds all of a download. If the day shares rows with its neighbours, the last commit
 * says how many it left. It does so only if the same people were suppressed.
 */
function rowsToHold({ receipt, mayShareRows }: DayDownload, stored: StoredReceipt | undefined): number {
  if (mayShareRows && stored?.suppressed === receipt.suppressed) return stored.rows_stored;
  return receipt.rows - receipt.suppressed;
}

/** True if the stored snapshot of profiles was requested after this one. */
export const isSuperseded = (stored: StoredProfiles | undefined, { receipt }: DayDownload): boolean =>
  stored !== undefined && stored.receipt.requested_at > receipt.requested_at;

/** A day of a batch. */
export interface PlannedDay {
  readonly download: DayDownload;
  /** Its cells in each column of the place, by `columnKey`. */
  readonly cells: ReadonlyMap<string, ColumnCells>;
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
  batch: readonly DayDownload[],
  rules: ColumnRules,
  table: Table = EVENTS,
): PlannedBatch {
  const { timezone, pinned } = rules;
  const zone = zoneOf(timezone);
  const isFirst = storedColumns === undefined;
  // Without a pinned schema the first commit gives `freeze` its columns.
  const isFrozen = rules.schemaMode === 'freeze' && !(isFirst && pinned === undefined);
  const scansByDay = batch.map(({ files }) => scannedColumns(files));
  const scanned = scannedColumns(batch.flatMap(({ files }) => files));
  const columnsBefore = storedColumns ?? table.firstColumns;
  const allColumns = [...columnsBefore, ...addedColumns(columnsBefore, scanned, rules)];
  // A setting for `event_name` is one for the event name, unless that is a column beside it.
  const isBeside = allColumns.some(({ source }) => source === EVENT_NAME_ALTERNATIVE);
  const eventNames = isBeside ? [EVENT_NAME] : [EVENT_NAME, EVENT_NAME_ALTERNATIVE];
  const days = batch.map((download) => ({ download, cells: new Map<string, ColumnCells>() }));
  const columns = allColumns.map((stored): PlannedColumn => {
    const { source, occurrence, type: storedType } = stored;
    const key = columnKey(source, occurrence);
    const setting = settingOf(stored, source === EVENT_NAME ? eventNames : [source], rules);
    const isPinned = occurrence === 1 && pinned?.has(source) === true;
    const { declared, seen: [firstCell] = [] } = scanned.get(key) ?? {};
    const typeRules = { stored, setting, declared, isPinned, isFrozen, zone };
    let forms = 0;
    // Each day is read as if the days were committed one by one.
    for (const [i, scan] of scansByDay.entries()) {
      const formsOfDay = scan.get(key)?.forms ?? 0;
      forms |= formsOfDay;
      days[i].cells.set(key, cellsOfDay(formsOfDay, decideType(forms, typeRules)));
    }
    const { type } = decideType(forms, typeRules);
    const firstShape = stored.firstShape ?? firstCell?.shape ?? null;
    return { ...stored, type, forms: stored.forms | forms, firstShape, storedType };
  });
  const scans = batch.map(({ receipt: { day } }, i) => ({ day, scanned: scansByDay[i] }));
  return { columns, changes: changesOf(columns, scans, { isFirst, zone }), days, timezone, table };
}

/** Plans a snapshot of user profiles: columns and types join with those of the snapshot before. Both ids are texts. */
export function planSnapshot(
  before: StoredProfiles | undefined,
  snapshot: DayDownload,
  rules: ColumnRules,
): PlannedBatch {
  const columnTypes = new Map([...rules.columnTypes, [UNIFIED_ID, 'string'], [EXTERNAL_ID, 'string']] as const);
  return planBatch(before?.columns, [snapshot], { ...rules, columnTypes, pinned: undefined }, USER_PROFILES);
}
