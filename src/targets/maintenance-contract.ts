import type { Day } from '../base/days.ts';
import type { Verified } from '../engine/rows/check-rows.ts';
import type { ReportCounts } from '../engine/rows/report-counts.ts';
import type { PlaceState, RunRecord } from '../table/place-state.ts';
import type { PlaceOptions } from './place-options.ts';

/**
 * What is done with a place that was loaded. Each call opens the place, and closes it. All but `readState` throw a
 * configuration failure (exit 2) where nothing was loaded yet. All but `prune` change nothing, and need no right to
 * write there.
 */
export interface Maintenance {
  /**
   * Gives the state that is stored beside the rows. Days whose rows a user removed are marked as pruned there.
   * Undefined if nothing was loaded yet, also where no place is.
   */
  readState(place: string, options: PlaceOptions): Promise<PlaceState | undefined>;
  /** Reads all that is stored, and compares it with what was loaded. */
  verify(place: string, options: PlaceOptions): Promise<Verified>;
  /** Counts the rows for the page of `report`. */
  report(place: string, options: PlaceOptions): Promise<TargetReport>;
  /**
   * Removes the days before `before`, if `execute` says so; gives what is, or would be, removed. Their receipts stay,
   * so that cursor and gaps are not touched.
   */
  prune(place: string, before: Day, options: PlaceOptions & { readonly execute: boolean }): Promise<Pruned>;
}

/** The contents of the report page of a place: names, counts and dates, but no values of people. */
export interface TargetReport extends ReportCounts {
  readonly state: PlaceState;
  readonly sizeBytes: number;
  /** The latest runs, oldest first. */
  readonly runs: readonly RunRecord[];
}

export interface Pruned {
  readonly days: readonly Day[];
  readonly rows: number;
}
