import type { Day } from '../base/days.ts';
import type { Receipt, State } from '../extract/window.ts';
import type { ColumnGroup } from '../schema/scan.ts';
import type { ColumnChange } from '../table/changes.ts';
import type { RunRecord } from '../table/runs.ts';
import type { ColumnType } from '../types/type.ts';

/** Number of event names that a report counts individually; the rest are counted together. */
export const REPORTED_NAMES = 8;

/** Number of runs, and of column changes, in a report: the latest ones. */
export const REPORTED_RECORDS = 1_000;

/** A receipt in a report. */
export interface ReportedWindow {
  readonly from: Day;
  readonly to: Day;
  readonly coversFrom: Day;
  readonly coversTo: Day | null;
  readonly rows: number;
  readonly bytes: number;
  readonly exports: number;
  readonly verifiedAt: string;
}

type Reported = Pick<
  Receipt,
  'from' | 'to' | 'covers_from' | 'covers_to' | 'rows' | 'bytes' | 'exports' | 'verified_at'
>;

export const reportedWindow = (receipt: Reported): ReportedWindow => ({
  from: receipt.from,
  to: receipt.to,
  coversFrom: receipt.covers_from,
  coversTo: receipt.covers_to,
  rows: receipt.rows,
  bytes: receipt.bytes,
  exports: receipt.exports,
  verifiedAt: receipt.verified_at,
});

/** Events of one day; `name`: none for those that are not among the most frequent. */
export interface ReportedEvents {
  readonly day: Day;
  readonly name: string | null;
  readonly events: number;
}

export interface ReportedColumn {
  readonly name: string;
  readonly source: string;
  readonly group: ColumnGroup;
  readonly type: ColumnType | null;
  /** Rows with a value. */
  readonly filled: number;
  /** Cells in `_rescued`. */
  readonly rescued: number;
}

/** What the report page of a target shows: names, counts and dates, but no values of people. */
export interface TargetReport {
  readonly rows: number;
  readonly sizeBytes: number;
  readonly state: State | undefined;
  /** Zone of the datetimes; null: they have none. */
  readonly timezone: string | null;
  /** Newest `df_server_datetime`. */
  readonly lastEventAt: string | null;
  readonly windows: readonly ReportedWindow[];
  readonly events: readonly ReportedEvents[];
  /** Events by hour of the day, 24 numbers; of the time at which they occurred. */
  readonly hours: readonly number[];
  readonly columns: readonly ReportedColumn[];
  readonly runs: readonly RunRecord[];
  readonly changes: readonly ColumnChange[];
}
