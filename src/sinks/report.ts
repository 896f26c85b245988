import type { Day } from '../base/days.ts';
import type { StoredColumn } from '../table/columns.ts';
import type { RunRecord } from '../table/runs.ts';
import type { TableState } from '../table/state.ts';

/** Number of event names that a report counts individually; the rest are counted together. */
export const REPORTED_NAMES = 8;

/** Events of one day; `name`: none for those that are not among the most frequent. */
export interface ReportedEvents {
  readonly day: Day;
  readonly name: string | null;
  readonly events: number;
}

export interface ReportedColumn extends Pick<StoredColumn, 'name' | 'source' | 'group' | 'type'> {
  /** Rows with a value. */
  readonly filled: number;
  /** Cells in `_rescued`. */
  readonly rescued: number;
}

/** What the report page of a target shows: names, counts and dates, but no values of people. */
export interface TargetReport {
  readonly state: TableState;
  readonly rows: number;
  readonly sizeBytes: number;
  /** Newest `df_server_datetime`. */
  readonly lastEventAt: string | null;
  readonly events: readonly ReportedEvents[];
  /** Events by hour of the day, 24 numbers; of the time at which they occurred. */
  readonly hours: readonly number[];
  readonly columns: readonly ReportedColumn[];
  /** The latest ones, oldest first. */
  readonly runs: readonly RunRecord[];
}
