import type { Day } from '../base/days.ts';
import type { StoredColumn } from './columns.ts';
import type { TableState } from './place-state.ts';
import type { RunRecord } from './runs.ts';

/** The contents of the report page of a target: names, counts and dates, but no values of people. */
export interface TargetReport {
  readonly state: TableState;
  readonly rows: number;
  readonly sizeBytes: number;
  /** Newest `df_server_datetime`. */
  readonly lastEventAt: string | null;
  readonly events: readonly ReportedEvents[];
  /** Events by hour of the day at which they occurred, 24 numbers. */
  readonly hours: readonly number[];
  readonly columns: readonly ReportedColumn[];
  /** The latest runs, oldest first. */
  readonly runs: readonly RunRecord[];
}

/** Events of one day; `name` is null for the events that are not among the most frequent. */
export interface ReportedEvents {
  readonly day: Day;
  readonly name: string | null;
  readonly events: number;
}

/** Maximum number of event names that a report counts individually; the others are counted together. */
export const REPORTED_NAMES = 8;

export interface ReportedColumn extends Pick<StoredColumn, 'name' | 'source' | 'group' | 'type'> {
  /** Number of rows with a value. */
  readonly filled: number;
  /** Number of cells in `_rescued`. */
  readonly rescued: number;
}
