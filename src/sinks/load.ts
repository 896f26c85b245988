import { extractWindows } from '../extract/extract.ts';
import type { Plan } from '../extract/plan/plan.ts';
import type { ExtractDeps } from '../extract/ports.ts';
import type { Tally } from '../extract/summary.ts';
import type { Memory } from './memory.ts';
import type { Commit, Sink } from './sink.ts';

export type LoadDeps = ExtractDeps & { readonly tally: Tally };

/** What a run has stored so far. */
export interface Loaded {
  /** Rows and windows that are committed. */
  rows: number;
  windows: number;
  suppressed: number;
  readonly columnsAdded: string[];
  /** Cells in `_rescued`, by source column name. */
  readonly rescued: Map<string, number>;
}

export const nothingLoaded = (): Loaded => ({
  rows: 0,
  windows: 0,
  suppressed: 0,
  columnsAdded: [],
  rescued: new Map(),
});

/** An open place on its way through one plan. `close` releases locks and files and is safe after any failure. */
export interface Loader {
  recall(): Promise<Memory>;
  /** Carries out a plan: reads its windows and stores them. `loaded` holds what is stored, whichever way it ends. */
  load(plan: Plan, deps: LoadDeps, loaded: Loaded, onStored: () => void): Promise<void>;
  close(): Promise<void>;
}

/** The loader of a sink: window after window, each committed whole with its state before the next is taken. */
export function loaderOf(sink: Sink): Loader {
  return {
    recall: () => sink.recall(),
    load: (plan, deps, loaded, onStored) => load(plan, sink, deps, loaded, onStored),
    close: () => sink.close(),
  };
}

/** Carries out a plan into a sink; `loaded` holds what is committed, whichever way it ends. */
export async function load(
  plan: Plan,
  sink: Sink,
  deps: LoadDeps,
  loaded: Loaded,
  onCommit: (loaded: Loaded) => void,
): Promise<void> {
  for await (const window of extractWindows(plan, deps)) {
    const commit = await sink.commit(window, deps.signal);
    add(loaded, commit);
    loaded.suppressed += window.receipt.suppressed;
    const { from, to, rows, bytes } = window.receipt;
    deps.logger.debug('window.committed', `Window ${from} to ${to} is committed: ${rows} rows.`, {
      from,
      to,
      rows,
      bytes,
    });
    onCommit(loaded);
  }
}

function add(loaded: Loaded, commit: Commit): void {
  loaded.rows += commit.rows;
  loaded.windows++;
  loaded.columnsAdded.push(...commit.columnsAdded);
  for (const [column, cells] of commit.rescued) loaded.rescued.set(column, (loaded.rescued.get(column) ?? 0) + cells);
}
