import type { Day } from '../base/days.ts';
import { EXTERNAL_ID, UNIFIED_ID } from '../cells/columns/groups.ts';
import type { DayDownload } from '../extract/day-download.ts';
import type { HashedColumns } from '../extract/export-request.ts';
import type { RunProgress } from '../extract/export-state.ts';
import { stateAfter } from '../extract/export-state.ts';
import { changeRecords, columnChanges, type WidenedColumn } from './changes.ts';
import {
  type ColumnRules,
  type IncomingColumns,
  incomingColumns,
  type PlannedColumn,
  planColumns,
  type Reading,
  readingsOfDay,
} from './column-plan.ts';
import type { PlaceState, StoredProfiles } from './place-state.ts';
import { receiptsOf, type StoredReceipt, storedRows, withRows, withUnchanged } from './receipts.ts';
import { EVENTS, type StoredColumn, storedColumn, type Table, USER_PROFILES } from './tables.ts';

/** A day of a batch, and how its cells become values. */
export interface PlannedDay {
  readonly download: DayDownload;
  readonly incoming: IncomingColumns;
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

/** The columns of a table before a batch. `isFirst`: nothing was committed to it. */
interface TableBefore {
  readonly columns: readonly StoredColumn[];
  readonly isFirst: boolean;
}

/** Plans the columns of a batch once, and the reading of each day. */
export function planBatch(
  { columns: stored, isFirst }: TableBefore,
  batch: readonly DayDownload[],
  rules: ColumnRules,
  table: Table = EVENTS,
): PlannedBatch {
  const columns = planColumns(stored, incomingColumns(batch.flatMap(({ files }) => files)), rules, isFirst);
  const formsSoFar = new Map(columns.map(({ key, storedForms }) => [key, storedForms]));
  const days = batch.map((download) => {
    const incoming = incomingColumns(download.files);
    return { download, incoming, readings: readingsOfDay(columns, incoming, formsSoFar, rules.timezone !== undefined) };
  });
  return { isFirst, columns, days, timezone: rules.timezone, table };
}

/** True if no cell of the batch goes to `_rescued`. */
export const rescuesNothing = ({ columns, days }: PlannedBatch): boolean =>
  columns.every(({ isRefused }) => !isRefused) &&
  days.every(({ readings }) => [...readings.values()].every(({ isClean }) => isClean));

/** What the commit of a batch has stored. */
interface StoredRows {
  /** Days that it did not write, since their rows were there. */
  readonly unchanged: readonly DayDownload[];
  /** Other days with a value in a column whose type changes. */
  readonly retyped: ReadonlySet<Day>;
  /** Rows that are there after it: of its days, and of neighbouring days that lost rows to them. */
  readonly rowsByDay: ReadonlyMap<Day, number>;
  /** Number of cells put into `_rescued`, by source column name. */
  readonly rescued: ReadonlyMap<string, number>;
  readonly progress: RunProgress;
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

interface StateAndCommit {
  readonly state: PlaceState;
  readonly commit: Commit;
}

/** The state after a batch that changes no row, and what the commit reports. */
export function finishUnchanged(
  before: PlaceState,
  unchanged: readonly DayDownload[],
  progress: RunProgress,
): StateAndCommit {
  const receipts = withUnchanged(before.receipts, unchanged);
  const state = { ...before, receipts, exportState: stateAfter(before.exportState, receipts, progress) };
  return { state, commit: { ...NOTHING_STORED, daysUnchanged: unchanged.map(({ receipt }) => receipt.day) } };
}

/** The state after a batch whose rows are stored, and what the commit reports. */
export function finishBatch(
  before: PlaceState,
  planned: PlannedBatch,
  { unchanged, retyped, rowsByDay, rescued, progress, changedAt: changed_at }: StoredRows,
): StateAndCommit {
  const { columns, days } = planned;
  const written = days.map(({ download: { receipt } }): StoredReceipt => {
    return { ...receipt, rows_stored: rowsByDay.get(receipt.day) ?? 0, changed_at };
  });
  const kept = withRows(withUnchanged(before.receipts, unchanged), rowsByDay, changed_at);
  const touched = [...kept.values()]
    .filter(({ day }) => retyped.has(day))
    .map((receipt) => ({ ...receipt, changed_at }));
  const receipts = receiptsOf([...kept.values(), ...touched, ...written]);
  const state = {
    ...before,
    columns: columns.map(storedColumn),
    receipts,
    exportState: stateAfter(before.exportState, receipts, progress),
    changes: [...before.changes, ...changeRecords(planned, before.changes, changed_at)],
  };
  const commit = {
    days: written.map(({ day }) => day),
    rows: storedRows(written),
    daysUnchanged: unchanged.map(({ receipt }) => receipt.day),
    daysChanged: [...receipts.values()].filter((receipt) => receipt.changed_at === changed_at).map(({ day }) => day),
    ...columnChanges(planned),
    rescued,
  };
  return { state, commit };
}

/** Plans a snapshot of user profiles: columns and types join with those of the snapshot before. Both ids are texts. */
export const planSnapshot = (
  before: StoredProfiles | undefined,
  snapshot: DayDownload,
  rules: ColumnRules,
): PlannedBatch =>
  planBatch(
    { columns: before?.columns ?? USER_PROFILES.firstColumns, isFirst: before === undefined },
    [snapshot],
    {
      ...rules,
      columnTypes: new Map([...rules.columnTypes, [UNIFIED_ID, 'string'], [EXTERNAL_ID, 'string']]),
      pinned: undefined,
    },
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
