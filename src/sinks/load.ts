import { UserError } from '../base/errors.ts';
import { plainCount } from '../base/quantities.ts';
import { BATCH_LIMITS } from '../extract/batch.ts';
import type { Plan } from '../extract/plan/plan.ts';
import type { ExtractDeps } from '../extract/ports.ts';
import type { PriorLoads, Window } from '../extract/window.ts';
import type { WidenedColumn } from '../table/changes.ts';
import type { RunHistory } from '../table/runs.ts';
import type { Commit, Sink } from './sink.ts';

/** What a run has stored so far. */
export interface Loaded {
  /** Rows and windows that are committed. */
  rows: number;
  windows: number;
  suppressed: number;
  readonly columnsAdded: string[];
  /** Each column once: its type before the first change and after the last. */
  readonly columnsWidened: Map<string, WidenedColumn>;
  /** Rows whose key has a number, because another row that stays has their id. */
  idRepeats: number;
  /** Cells in `_rescued`, by source column name. */
  readonly rescued: Map<string, number>;
}

export const nothingLoaded = (): Loaded => ({
  rows: 0,
  windows: 0,
  suppressed: 0,
  columnsAdded: [],
  columnsWidened: new Map(),
  idRepeats: 0,
  rescued: new Map(),
});

/** An open target that executes one plan. `close` releases locks and files and may be called after any failure. */
export interface Loader {
  /** The run history; absent for a target that stores none. */
  readonly runs?: RunHistory | undefined;
  readPriorLoads(): Promise<PriorLoads>;
  /** Publishes a verified copy for readers at a path; absent for a target that cannot. */
  publish?(copy: string): Promise<void>;
  /** Executes a plan: reads its windows and stores them. `loaded` is up to date whether it succeeds or fails. */
  load(plan: Plan, deps: ExtractDeps, loaded: Loaded, onStored: () => void): Promise<void>;
  close(): Promise<void>;
}

/** The loader of a sink, which commits each batch with its state. */
export function loaderOf(sink: Sink): Loader {
  return {
    runs: sink.runs,
    readPriorLoads: () => sink.readPriorLoads(),
    load: (plan, deps, loaded, onStored) => load(plan, sink, deps, loaded, onStored),
    close: () => sink.close(),
  };
}

/** Executes a plan into a sink; `loaded` holds what is committed, whether it succeeds or fails. */
export async function load(
  plan: Plan,
  sink: Sink,
  deps: ExtractDeps,
  loaded: Loaded,
  onStored: () => void,
): Promise<void> {
  /** Stores the first of these windows; gives those that are left. */
  const store = async (batch: readonly Window[]): Promise<readonly Window[]> => {
    const commit = await sink.commit(batch, deps.signal);
    const stored = batch.slice(0, commit.windows);
    add(loaded, stored, commit);
    for (const { receipt } of stored) {
      const { from, to, rows, bytes } = receipt;
      const message = `Window ${from} to ${to} is committed: ${plainCount(rows, 'row')}.`;
      deps.logger.debug('window.committed', message, { from, to, rows, bytes });
    }
    onStored();
    return batch.slice(commit.windows);
  };
  // Loaded here: every command line loads the descriptors of all targets.
  const { extractBatches } = await import('../extract/extract.ts');
  try {
    const batches = extractBatches(plan, deps, BATCH_LIMITS, (window) => sink.begin?.(window));
    for await (const batch of batches) await storeBatch(batch, store, deps);
  } finally {
    const { idRepeats } = loaded;
    if (idRepeats > 0) {
      const message = `${plainCount(idRepeats, 'row has', 'rows have')} an id that another row has: all are kept, told apart in _key by #2, #3…`;
      deps.logger.warn('ids.repeated', message, { rows: idRepeats });
    }
  }
}

/**
 * Stores a batch, in as few steps as its windows allow. After a failure that is not passing they are stored one by one: what
 * precedes the window that cannot be stored is kept, and so is what fits alone.
 */
async function storeBatch(
  batch: readonly Window[],
  store: (batch: readonly Window[]) => Promise<readonly Window[]>,
  { logger, signal, tally }: ExtractDeps,
): Promise<void> {
  let remaining = batch;
  try {
    while (remaining.length > 0) {
      remaining = await store(remaining).catch(async (error: unknown) => {
        const isPassing = error instanceof UserError && error.kind === 'transient';
        if (remaining.length === 1 || isPassing || signal.aborted) throw error;
        logger.debug(
          'batch.split',
          `${remaining.length} windows cannot be stored together: they are stored one by one.`,
        );
        for (const window of remaining) {
          await store([window]);
          remaining = remaining.slice(1);
        }
        return [];
      });
    }
  } catch (error) {
    // The extraction, which notes the cursor of a batch when the next one is requested, ends here.
    const stored = batch.slice(0, batch.length - remaining.length);
    if (stored.length > 0) tally.nextFromDate = stored[stored.length - 1].state.from_date;
    throw error;
  }
}

function add(loaded: Loaded, batch: readonly Window[], commit: Commit): void {
  loaded.rows += commit.rows;
  loaded.windows += batch.length;
  loaded.suppressed += batch.reduce((sum, { receipt }) => sum + receipt.suppressed, 0);
  loaded.columnsAdded.push(...commit.columnsAdded);
  for (const { name, from, to } of commit.columnsWidened) {
    loaded.columnsWidened.set(name, { name, from: loaded.columnsWidened.get(name)?.from ?? from, to });
  }
  loaded.idRepeats += commit.idRepeats;
  for (const [column, cells] of commit.rescued) loaded.rescued.set(column, (loaded.rescued.get(column) ?? 0) + cells);
}
