import type { Day } from '../base/days.ts';
import type { ColumnType } from '../cells/types/column-types.ts';
import { NO_PRIOR_LOADS, type PriorLoads } from '../extract/checked-day.ts';
import { type HashedColumns, NOTHING_HASHED } from '../extract/export-request.ts';
import type { ExportState } from '../extract/export-state.ts';
import { type Receipts, receiptsOf, type StoredReceipt, withRows } from './receipts.ts';
import { FIRST_COLUMNS, type StoredColumn, type Table } from './tables.ts';

/** What a place holds of one table beside its rows. */
export interface TableState {
  /** Zone of all datetimes that name none, null if there is no such zone; fixed by the first load. */
  readonly timezone: string | null;
  /**
   * Columns in the order of their positions. They are kept so that names never change, and types do not depend on
   * the order of days.
   */
  readonly columns: readonly StoredColumn[];
  readonly receipts: Receipts;
  /** From where the next run goes on, and with which filters. Undefined before the first commit. */
  readonly exportState: ExportState | undefined;
}

/** All that a place holds beside its rows: of `events`, then of the rest. `commit.ts` makes the next one of it. */
export interface PlaceState extends TableState {
  /** Column changes, oldest first. */
  readonly changes: readonly ColumnChange[];
  /** The table of user profiles; undefined if there is none. */
  readonly profiles?: StoredProfiles | undefined;
  readonly lastRun?: RunRecord | undefined;
  /** Number of people on the suppression list with which the place was purged last. */
  readonly suppressionLength?: number | undefined;
}

/** A column that was added, widened, or missing for the first time. */
export interface ColumnChange {
  /** Instant of the change (ISO, UTC). */
  readonly changedAt: string;
  readonly sourceName: string;
  readonly change: 'added' | 'widened' | 'missing';
  readonly fromType: ColumnType | null;
  readonly toType: ColumnType | null;
  /** The day whose export made the change. */
  readonly day: Day;
  /** Shape of the first cell that caused the change: digits as 9, letters as a. */
  readonly shape: string | null;
}

/** What a place holds of user profiles beside their rows. */
export interface StoredProfiles {
  readonly columns: readonly StoredColumn[];
  /** Of the last snapshot. */
  readonly receipt: StoredReceipt;
  /** The columns that hold hashes. */
  readonly hashing: HashedColumns;
}

export const newState = (timezone: string | null): PlaceState => ({
  timezone,
  columns: FIRST_COLUMNS,
  receipts: new Map(),
  exportState: undefined,
  changes: [],
});

/** The part of a state that a plan needs; `loaded` is undefined if nothing was loaded yet. */
export const priorLoadsOf = (loaded: PlaceState | undefined): PriorLoads =>
  loaded === undefined ? NO_PRIOR_LOADS : { state: loaded.exportState, receipts: loaded.receipts };

/** One run that loaded a place, recorded when it ends. */
export interface RunRecord {
  /** Instants: ISO, UTC. */
  readonly began: string;
  readonly ended: string;
  readonly exitCode: number;
  /** The sentence of a failure. */
  readonly cause: string | null;
  /** Of the program. */
  readonly version: string;
  readonly rows: number;
  readonly days: number;
  readonly exports: number;
  readonly bytes: number;
}

/** What a place stores of its table of profiles: the reverse of `profilesAsTable`. Undefined before a snapshot. */
export function profilesFromTable({ columns, receipts, exportState }: TableState): StoredProfiles | undefined {
  const [receipt] = receipts.values();
  return receipt && { columns, receipt, hashing: exportState?.hashed?.[0] ?? NOTHING_HASHED };
}

/** The profiles as a table, whose only day is that of the snapshot. Undefined if the place has none. */
export function profilesAsTable({ timezone, exportState, profiles }: PlaceState): TableState | undefined {
  if (profiles === undefined) return undefined;
  const { columns, receipt, hashing } = profiles;
  const profileState: ExportState = {
    version: 1,
    from_date: receipt.day,
    ...(exportState?.service !== undefined && { service: exportState.service }),
    ...(hashing.columns.length > 0 && { hashed: [hashing] }),
  };
  return { timezone, columns, receipts: receiptsOf([receipt]), exportState: profileState };
}

/** The state of one table of a place; undefined if the place has none. */
export const tableState = (state: PlaceState, table: Table['name']): TableState | undefined =>
  table === 'events' ? state : profilesAsTable(state);

/** The state once rows have left a table. `rowsLost`: their number, by day. */
export function withoutRows(
  state: PlaceState,
  table: Table['name'],
  rowsLost: ReadonlyMap<Day, number>,
  changedAt: string,
): PlaceState {
  const before = tableState(state, table)?.receipts ?? new Map<Day, StoredReceipt>();
  const rows = [...rowsLost].map(([day, lost]) => [day, (before.get(day)?.rows_stored ?? lost) - lost] as const);
  const receipts = withRows(before, new Map(rows), changedAt);
  if (table === 'events') return { ...state, receipts };
  const [receipt] = receipts.values();
  return { ...state, profiles: state.profiles && { ...state.profiles, receipt } };
}
