import type { PriorLoads, Window } from '../extract/window.ts';
import type { WidenedColumn } from '../table/changes.ts';
import type { RunHistory } from '../table/runs.ts';

/** What a committed batch changed in the target. */
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
 * An open target. `commit` stores the windows of a batch, which share no day and come in the order of days, each with its
 * receipt, and the state of the last one: all in one step, or nothing at all. Their result is the same as if they were
 * committed one by one. `close` releases locks and files and may be called after any failure.
 */
export interface Sink {
  readonly runs?: RunHistory;
  readPriorLoads(): Promise<PriorLoads>;
  commit(batch: readonly Window[], signal: AbortSignal): Promise<Commit>;
  close(): Promise<void>;
}

/** What several commits changed, one after the other. */
export function joinCommits(commits: readonly Commit[]): Commit {
  const widened = new Map<string, WidenedColumn>();
  const rescued = new Map<string, number>();
  for (const commit of commits) {
    for (const { name, from, to } of commit.columnsWidened) {
      widened.set(name, { name, from: widened.get(name)?.from ?? from, to });
    }
    for (const [column, cells] of commit.rescued) rescued.set(column, (rescued.get(column) ?? 0) + cells);
  }
  return {
    rows: commits.reduce((sum, { rows }) => sum + rows, 0),
    columnsAdded: commits.flatMap(({ columnsAdded }) => columnsAdded),
    columnsWidened: [...widened.values()],
    rescued,
    idRepeats: commits.reduce((sum, { idRepeats }) => sum + idRepeats, 0),
  };
}
