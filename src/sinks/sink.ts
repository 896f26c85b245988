import type { PriorLoads, Window } from '../extract/window.ts';
import type { WidenedColumn } from '../table/changes.ts';
import type { RunHistory } from '../table/runs.ts';

/** A place that is open for loading. `close` releases locks and files and may be called after any failure. */
interface BaseSink {
  /** Absent for a target that stores none. */
  readonly runs?: RunHistory;
  /** What earlier runs have stored: it decides which days are read. */
  readPriorLoads(): Promise<PriorLoads>;
  /** Publishes a verified copy for readers at a path; absent for a target that cannot. */
  publish?(copy: string): Promise<void>;
  close(): Promise<void>;
}

/** What a commit changed in the target. */
export interface Commit {
  /** How many windows of the batch it stored, counted from the first; at least one. */
  readonly windows: number;
  readonly rows: number;
  /** Table columns that did not exist before. */
  readonly columnsAdded: readonly string[];
  /** Table columns that changed their type. */
  readonly columnsWidened: readonly WidenedColumn[];
  /** Cells put into `_rescued`, by source column name. */
  readonly rescued: ReadonlyMap<string, number>;
  /** Rows whose key has a number, because another row that stays has their id. */
  readonly idRepeats: number;
}

/**
 * A place whose cursor moves with each commit. `commit` takes the windows of a batch, which share no day and come in the order of
 * days, and stores as many of them, from the first, as one plan of columns serves: each with its receipt, and the state of the
 * last one, all in one step, or nothing at all. The result is the same as if they were committed one by one; the rest is to be
 * given again.
 */
export interface Sink extends BaseSink {
  /**
   * Called with each window of the next batch, in order, as soon as it waits: a sink may begin to write what its commit will want.
   * Nothing of it is visible, and the files of the window stay until the batch is committed or given up.
   */
  begin?(window: Window): void;
  commit(batch: readonly Window[], signal: AbortSignal): Promise<Commit>;
}

/** What a stream was sent: fewer rows where its reader closed it before the end, which is no failure. */
export type Streamed = Pick<Commit, 'rows' | 'columnsAdded' | 'rescued'>;

/** A place that takes all windows of a run as one stream, and remembers nothing of them. */
export interface StreamSink extends BaseSink {
  /** True if nothing of a stream that failed is of use. */
  readonly isAllOrNothing: boolean;
  write(windows: AsyncIterable<Window>): Promise<Streamed>;
}
