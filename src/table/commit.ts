import type { Day } from '../base/days.ts';
import type { ColumnType } from '../cells/types/column-types.ts';
import type { CheckedDay } from '../extract/checked-day.ts';
import type { HashedColumns } from '../extract/export-request.ts';
import { type RunProgress, stateAfter } from '../extract/export-state.ts';
import type { PlannedBatch } from './batch-plan.ts';
import { recordChanges } from './changes.ts';
import { isWidened, type PlannedColumn } from './column-plan.ts';
import type { PlaceState, StoredProfiles } from './place-state.ts';
import { countStoredRows, receiptsOf, type StoredReceipt, withChangedAt, withRows, withUnchanged } from './receipts.ts';
import type { StoredColumn } from './tables.ts';

/** What the commit of a batch has stored. */
interface BatchOutcome {
  /** Days that it did not write, since their rows were there. */
  readonly unchanged: readonly CheckedDay[];
  /** Other days with a value in a column that widens. */
  readonly widenedDays: ReadonlySet<Day>;
  /** Rows that are there after it: of its days, and of neighbouring days that lost rows to them. */
  readonly rowsByDay: ReadonlyMap<Day, number>;
  /** Number of cells put into `_rescued`, by their key there. */
  readonly rescued: ReadonlyMap<string, number>;
  readonly progress: RunProgress;
  /** Instant of the commit, by `nextChangedAt`. */
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
  /** The days of which rows were added, replaced, widened or removed: beside those of the batch perhaps others. */
  readonly daysChanged: readonly Day[];
  /** Columns that it added and widened, by their names in the table. */
  readonly columnsAdded: readonly string[];
  readonly columnsWidened: readonly { readonly name: string; readonly from: ColumnType; readonly to: ColumnType }[];
  /** Number of cells put into `_rescued`, by their key there. */
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
  unchanged: readonly CheckedDay[],
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
  { unchanged, widenedDays, rowsByDay, rescued, progress, changedAt }: BatchOutcome,
): StateAndCommit {
  const { columns, changes, days } = planned;
  const written = days.map(({ download: { receipt } }): StoredReceipt => {
    return { ...receipt, rows_stored: rowsByDay.get(receipt.day) ?? 0, changed_at: changedAt };
  });
  const kept = withRows(withUnchanged(before.receipts, unchanged), rowsByDay, changedAt);
  const receipts = receiptsOf([...withChangedAt(kept, widenedDays, changedAt).values(), ...written]);
  const state = {
    ...before,
    columns: columns.map(withoutPlan),
    receipts,
    exportState: stateAfter(before.exportState, receipts, progress),
    changes: [...before.changes, ...recordChanges(changes, before.changes, changedAt)],
  };
  const commit = {
    days: written.map(({ day }) => day),
    rows: countStoredRows(written),
    daysUnchanged: unchanged.map(({ receipt }) => receipt.day),
    daysChanged: [...receipts.values()].filter((receipt) => receipt.changed_at === changedAt).map(({ day }) => day),
    columnsAdded: changes.filter(({ change }) => change === 'added').map(({ column }) => column.name),
    columnsWidened: columns
      .filter(isWidened)
      .map(({ name, storedType, type }) => ({ name, from: storedType, to: type })),
    rescued,
  };
  return { state, commit };
}

/** What a place holds of profiles once the planned snapshot is stored. */
export function profilesAfter(
  { columns, days: [{ download }] }: PlannedBatch,
  { rows, changedAt, hashing }: { readonly rows: number; readonly changedAt: string; readonly hashing: HashedColumns },
): StoredProfiles {
  const receipt: StoredReceipt = { ...download.receipt, rows_stored: rows, changed_at: changedAt };
  return { columns: columns.map(withoutPlan), receipt, hashing };
}

const withoutPlan = ({ storedType: _storedType, ...column }: PlannedColumn): StoredColumn => column;
