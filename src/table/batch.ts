import type { Day } from '../base/days.ts';
import { typeOf, widenedType } from '../cells/types/types.ts';
import type { HashedColumns } from '../extract/export-request.ts';
import type { DayDownload, RunProgress, SpoolFile } from '../extract/receipt.ts';
import { changeRecords, columnChanges, type WidenedColumn } from './changes.ts';
import {
  type ColumnRules,
  type FileColumn,
  type IncomingColumns,
  incomingColumns,
  nullIsText,
  type PlannedColumn,
  planColumns,
  type Reading,
  readingOf,
} from './column-plan.ts';
import { applyBatch, type StoredProfiles, type TableState } from './place-state.ts';
import { currentDownloads, type StoredReceipt, sameDownloads } from './receipts.ts';
import { EVENTS, type StoredColumn, storedColumn, type Table, USER_PROFILES, withProfileTypes } from './tables.ts';

/** The days of a batch: those whose rows a commit writes, and those whose rows the place holds already. */
export interface BatchDays {
  readonly changed: readonly DayDownload[];
  readonly unchanged: readonly DayDownload[];
}

/**
 * Splits a batch by what a place holds; a download that was requested before the stored one is left out. The receipts
 * are not believed: `countRows` counts the rows of days in the place.
 */
export async function splitBatch(
  { receipts }: Pick<TableState, 'receipts'>,
  batch: readonly DayDownload[],
  { rewrites }: Pick<RunProgress, 'rewrites'>,
  countRows: (days: readonly Day[]) => Promise<ReadonlyMap<Day, number>>,
): Promise<BatchDays> {
  const current = currentDownloads(receipts, batch);
  const same = rewrites ? [] : sameDownloads(receipts, current);
  const counted = same.length === 0 ? new Map<Day, number>() : await countRows(same.map(({ receipt }) => receipt.day));
  const unchanged = new Set(
    same.filter(({ receipt: { day, rows, suppressed } }) => (counted.get(day) ?? 0) === rows - suppressed),
  );
  return { changed: current.filter((download) => !unchanged.has(download)), unchanged: [...unchanged] };
}

/** One file of a day, with the columns of its header. */
export interface PlannedFile {
  readonly file: SpoolFile;
  readonly columns: readonly FileColumn[];
}

/** A day of a batch, and how its cells become values. */
export interface PlannedDay {
  readonly download: DayDownload;
  readonly incoming: IncomingColumns;
  readonly files: readonly PlannedFile[];
  /** The reading of each column of the place, by its key. */
  readonly readings: ReadonlyMap<string, Reading>;
}

/** The days of a commit: the columns of the place after it, and how the cells of each day are read. */
export interface PlannedBatch {
  /** True if nothing was committed before. */
  readonly isFirst: boolean;
  /** All columns of the place after the batch, by position. */
  readonly columns: readonly PlannedColumn[];
  readonly days: readonly PlannedDay[];
  readonly timezone: string | undefined;
  readonly table: Table;
}

/** Plans the columns of a batch once. Each day is read as if the days were committed one by one. */
export function planBatch(
  { columns: stored, receipts }: Pick<TableState, 'columns'> & { readonly receipts: { readonly size: number } },
  batch: readonly DayDownload[],
  rules: ColumnRules,
  table: Table = EVENTS,
): PlannedBatch {
  const isFirst = receipts.size === 0;
  const incoming = batch.map(({ files }) => incomingColumns(files));
  const all = incomingColumns(batch.flatMap(({ files }) => files)).columns;
  const columns =
    isFirst && rules.schemaMode === 'freeze' && batch.length > 1
      ? planFirst(
          stored,
          [incoming[0].columns, incomingColumns(batch.slice(1).flatMap(({ files }) => files)).columns],
          rules,
        )
      : planColumns(stored, all, rules, { isFirst });
  const readingsOfDay = dayReadings(columns, rules.timezone !== undefined);
  const days = batch.map((download, i) => ({
    download,
    incoming: incoming[i],
    files: download.files.map((file, n) => ({ file, columns: incoming[i].files[n] })),
    readings: readingsOfDay(incoming[i]),
  }));
  return { isFirst, columns, days, timezone: rules.timezone, table };
}

/** Under `freeze` the first day of a place gives the schema for the days after it. */
function planFirst(
  stored: readonly StoredColumn[],
  [first, others]: readonly IncomingColumns['columns'][],
  rules: ColumnRules,
): PlannedColumn[] {
  const after = planColumns(stored, first, rules, { isFirst: true });
  return planColumns(after, others, rules, { isFirst: false }).map((column, i) => {
    const { before = null, storedForms = 0 } = after[i] ?? {};
    return { ...column, before, storedForms };
  });
}

/** Gives the readings of one day after the other, each with the types that the days so far give the columns. */
function dayReadings(columns: readonly PlannedColumn[], asInstants: boolean) {
  const seen = new Map(columns.map(({ key, storedForms }) => [key, storedForms]));
  return ({ columns: incoming }: IncomingColumns): Map<string, Reading> =>
    new Map(
      columns.map((column) => {
        const { key, before, fixed } = column;
        const forms = incoming.get(key)?.forms ?? 0;
        const formsSoFar = (seen.get(key) ?? 0) | forms;
        seen.set(key, formsSoFar);
        const typeSoFar =
          before === null ? typeOf(formsSoFar, asInstants) : widenedType(before, formsSoFar, asInstants);
        return [key, readingOf(column, forms, { asInstants, isNullText: nullIsText(fixed, typeSoFar) })];
      }),
    );
}

/** True if no cell of the batch goes to `_rescued`. */
export const rescuesNothing = ({ columns, days }: PlannedBatch): boolean =>
  columns.every(({ isRefused }) => !isRefused) &&
  days.every(({ readings }) => [...readings.values()].every(({ isClean }) => isClean));

/** What the commit of a batch has stored. */
export interface StoredRows {
  /** Days that it did not write, since their rows were there. */
  readonly unchanged: readonly DayDownload[];
  /** Other days with a value in a column whose type changes. */
  readonly retyped: ReadonlySet<Day>;
  /** Rows that are there after it: of its days, and of neighbouring days that lost rows to them. */
  readonly rowsByDay: ReadonlyMap<Day, number>;
  /** Number of cells put into `_rescued`, by source column name. */
  readonly rescued: ReadonlyMap<string, number>;
  readonly facts: RunProgress;
  /** Instant of the commit, by `nextChange`. */
  readonly changedAt: string;
}

/** The result of a commit. */
export interface Commit {
  /** The days of the batch whose rows were written. */
  readonly days: readonly Day[];
  /** Rows of these days that are stored. */
  readonly rows: number;
  /** The days of the batch whose rows were there already. */
  readonly daysUnchanged: readonly Day[];
  /** The days of which rows were added, replaced, re-typed or removed: beside those of the batch perhaps others. */
  readonly daysChanged: readonly Day[];
  readonly columnsAdded: readonly string[];
  readonly columnsWidened: readonly WidenedColumn[];
  /** Number of cells put into `_rescued`, by source column name. */
  readonly rescued: ReadonlyMap<string, number>;
}

export const NOTHING_STORED: Commit = {
  days: [],
  rows: 0,
  daysUnchanged: [],
  daysChanged: [],
  columnsAdded: [],
  columnsWidened: [],
  rescued: new Map(),
};

/** The state after a batch that changes no row, and what the commit reports. */
export function finishUnchanged(
  before: TableState,
  unchanged: readonly DayDownload[],
  facts: RunProgress,
): { readonly state: TableState; readonly commit: Commit } {
  const receipts = unchanged.map(({ receipt }) => receipt);
  const nothing = { receipts: [], rowsByDay: new Map(), retyped: new Set<Day>(), changes: [], changedAt: '' };
  const state = applyBatch(before, { ...nothing, columns: before.columns, unchanged: receipts, facts });
  return { state, commit: { ...NOTHING_STORED, daysUnchanged: receipts.map(({ day }) => day) } };
}

/** Gives the state after a batch whose rows are stored, and what the commit reports. */
export function finishBatch(
  before: TableState,
  { isFirst, columns, days }: PlannedBatch,
  { unchanged, retyped, rowsByDay, rescued, facts, changedAt }: StoredRows,
): { readonly state: TableState; readonly commit: Commit } {
  const receipts = days.map(({ download }) => download.receipt);
  const changing = days.map(({ download, incoming }) => ({ day: download.receipt.day, columns: incoming.columns }));
  const changes = changeRecords(columns, changing, { changedAt, isFirst, earlier: before.changes });
  const state = applyBatch(before, {
    columns,
    changes,
    receipts,
    unchanged: unchanged.map(({ receipt }) => receipt),
    retyped,
    rowsByDay,
    facts,
    changedAt,
  });
  const commit = {
    days: receipts.map(({ day }) => day),
    rows: receipts.reduce((sum, { day }) => sum + (rowsByDay.get(day) ?? 0), 0),
    daysUnchanged: unchanged.map(({ receipt }) => receipt.day),
    daysChanged: [...state.receipts.values()].filter((r) => r.changed_at === changedAt).map(({ day }) => day),
    ...columnChanges(columns, isFirst),
    rescued,
  };
  return { state, commit };
}

/** Plans a snapshot of user profiles: columns and types join with those of the snapshot before. */
export const planSnapshot = (
  before: StoredProfiles | undefined,
  snapshot: DayDownload,
  rules: ColumnRules,
): PlannedBatch =>
  planBatch(
    { columns: before?.columns ?? USER_PROFILES.firstColumns, receipts: { size: before === undefined ? 0 : 1 } },
    [snapshot],
    { ...rules, columnTypes: withProfileTypes(rules.columnTypes), pinned: undefined },
    USER_PROFILES,
  );

/** What a place holds of profiles once the planned snapshot is stored. */
export function profilesAfter(
  { columns, days: [{ download }] }: PlannedBatch,
  { rows, changedAt, hashing }: { readonly rows: number; readonly changedAt: string; readonly hashing: HashedColumns },
): StoredProfiles {
  const receipt: StoredReceipt = { ...download.receipt, rows_stored: rows, changed_at: changedAt };
  return { columns: columns.map(storedColumn), receipt, hashing };
}
