import type { Difference } from '../table/differences.ts';
import type { TableState } from '../table/state.ts';
import type { PlaceOptions } from './place-options.ts';
import type { TargetReport } from './report.ts';

/**
 * What is done with a place that was loaded, by one call each: it opens the place, and has closed it when it ends. All
 * but `readState` throw a configuration failure (exit 2) where nothing was loaded yet. Those that are read-only change
 * nothing in the place, and need no right to write there.
 */
export interface Maintenance {
  /**
   * Gives the state that is stored beside the rows; it reads no row. Undefined if nothing was loaded yet, also where no
   * place is. Read-only.
   */
  readState(place: string, options: PlaceOptions): Promise<TableState | undefined>;
  /**
   * Compares what is stored with what was loaded, and gives a sentence about each difference; none if all agrees:
   * - every stored file is there, whole, and the one that was written;
   * - the rows of each window, as counted, are those of its receipt (`checkLiveRows`);
   * - keys are there, and none is twice (`checkKeys`);
   * - every day up to the cursor is covered by a receipt, or recorded as a gap (`checkDays`);
   * - columns and their types are those of the state;
   * - derived tables have a row for each item, and for each event.
   * A writer that is at work meanwhile makes no difference. Read-only.
   */
  verify(place: string, options: PlaceOptions): Promise<Difference[]>;
  /**
   * Rewrites the data: fewer, larger files, and no space for removed rows; no row changes. After a kill every row is
   * there once, in an old file or a new one, and the same call does the rest.
   */
  compact(place: string, options: PlaceOptions): Promise<RewriteResult>;
  /** Counts the rows for the page of `report`. Read-only. */
  report(place: string, options: PlaceOptions): Promise<TargetReport>;
}

/** The result of rewriting a place. */
export interface RewriteResult {
  /** Rows of `events` after the rewrite. */
  readonly rows: number;
  readonly rowsRemoved: number;
  /** The files with rows of `events` that new files replaced. */
  readonly files: readonly string[];
  readonly bytesBefore: number;
  readonly bytesAfter: number;
}
