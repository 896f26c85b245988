import type { Window } from '../extract/window.ts';
import type { Memory } from './memory.ts';

/** What one committed window did to the target. */
export interface Commit {
  readonly rows: number;
  /** Table columns that did not exist before. */
  readonly columnsAdded: readonly string[];
  /** Cells put into `_rescued`, by source column name. */
  readonly rescued: ReadonlyMap<string, number>;
}

/**
 * An open target that takes windows one at a time. `commit` stores the data, its receipt and the state in one step, or
 * nothing at all. `close` releases locks and files and is safe after any failure.
 */
export interface Sink {
  recall(): Promise<Memory>;
  commit(window: Window, signal: AbortSignal): Promise<Commit>;
  close(): Promise<void>;
}
