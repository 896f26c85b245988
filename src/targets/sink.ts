import type { Window } from '../extract/window.ts';
import type { WidenedColumn } from '../table/changes.ts';
import type { RunHistory } from '../table/runs.ts';
import type { TableState } from '../table/state.ts';

export interface Commit {
  /** Number of windows of the batch that it stored, counted from the first; at least one. */
  readonly windows: number;
  readonly rows: number;
  readonly columnsAdded: readonly string[];
  readonly columnsWidened: readonly WidenedColumn[];
  /** Number of cells put into `_rescued`, by source column name. */
  readonly rescued: ReadonlyMap<string, number>;
  /** Number of rows whose key has a number, because another row that stays has their id. */
  readonly idRepeats: number;
}

/**
 * A place that is open for loading; its cursor moves with each commit. A run calls, in this order: `runs.begin`;
 * `state`, from which it plans the days; for each batch `begin` with each of its windows, then `commit`; `runs.end`;
 * `publish`, if something was committed; and `close`, in any case.
 */
export interface Sink {
  /** What the place holds beside its rows; undefined before the first load. That of the last commit. */
  readonly state: TableState | undefined;
  /** Stored beside the state and not in it: a run is recorded before its first request, and on every way out. */
  readonly runs: RunHistory;
  /**
   * Called with each window of the next batch, in order, as soon as it waits. A sink may begin to write what its commit
   * will need; nothing of it is visible, and the files of the window stay until the batch is committed or given up.
   */
  begin?(window: Window): void;
  /**
   * Takes a batch: at least one verified, complete window. The windows share no day, and come in the order of days
   *. The sink stores as many of them, from the first, as one plan of columns serves (`plannedTogether`). It
   * stores all of their rows, which replace the stored rows that they read again, the receipt of each, and the
   * state of the last one. The result is the same as if the windows were committed one by one. The caller passes the
   * remaining windows again. If some cannot be stored together, as windows that share ids, the sink throws `SharedIds`
   * and stores nothing; then the caller passes the windows one by one.
   *
   * All becomes visible in one step; of several Delta tables, the step is that of `events`. Before that step, all
   * is on the disk or in the store. Once `commit` returns, no crash undoes it. A kill or a failure before the step
   * leaves rows and state as they were. It may leave what no reader sees, which the next run removes or finishes
   * without being asked: temporary files, a journal, objects that no commit names. A row is never there twice, a cursor
   * never without its rows, and rows never without their receipt. Rows that move to another date may be nowhere for the
   * moments of a commit.
   *
   * Of two writers, one waits for the lock of the place, up to `lockWaitMs`, or loses the race for the commit. Then
   * nothing of its batch stays anywhere, not even in earlier versions of objects. Both cases are transient
   * failures (exit 3).
   */
  commit(batch: readonly Window[], signal: AbortSignal): Promise<Commit>;
  /** Publishes a verified copy for readers at a path; absent for a target that cannot do so. */
  publish?(copy: string): Promise<void>;
  /** Releases locks and files; may be called after any failure. */
  close(): Promise<void>;
}

/** What a stream reports at its end beside the windows that its reader has taken. */
export type Streamed = Pick<Commit, 'columnsAdded' | 'rescued'>;

/** A place that takes all windows of a run as one stream and stores nothing about them. */
export interface StreamSink {
  /** True if a stream that failed is of no use to its reader. */
  readonly isAllOrNothing: boolean;
  /**
   * Calls `onSent` for each window, in order, once its reader has taken all of its rows, with their number: rows of the
   * window before are not sent twice. A reader that closes the stream before the end is no failure.
   */
  write(windows: AsyncIterable<Window>, onSent: (window: Window, rows: number) => void): Promise<Streamed>;
}
