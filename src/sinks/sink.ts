import type { PriorLoads } from '../extract/prior-loads.ts';
import type { Window } from '../extract/window.ts';
import type { WidenedColumn } from '../table/changes.ts';
import type { RunHistory } from '../table/runs.ts';

/** What one committed window changed in the target. */
export interface Commit {
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
 * An open target that takes windows one at a time. `commit` stores the data, its receipt and the state in one step, or
 * nothing at all. `close` releases locks and files and may be called after any failure.
 */
export interface Sink {
  readonly runs?: RunHistory;
  readPriorLoads(): Promise<PriorLoads>;
  commit(window: Window, signal: AbortSignal): Promise<Commit>;
  close(): Promise<void>;
}
