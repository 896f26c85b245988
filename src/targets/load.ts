import { UserError } from '../base/errors.ts';
import { plainCount } from '../base/quantities.ts';
import { BATCH_LIMITS } from '../extract/batch.ts';
import { type ExtractCounts, type ExtractDeps, newExtractCounts } from '../extract/deps.ts';
import type { Plan } from '../extract/plan/plan.ts';
import type { ExportState, Window } from '../extract/window.ts';
import type { Commit, Sink, StreamSink } from './sink.ts';

export interface LoadCounts extends ExtractCounts {
  /** The sum of all commits; a column widened twice counts once, with its first type before and its last after. */
  stored: Commit;
  /** Number of rows of the stored windows that were left out, since the person asked to be forgotten. */
  suppressed: number;
  /** The stored cursor; undefined if this run has stored none. */
  nextFromDate: ExportState['from_date'] | undefined;
}

const NOTHING_STORED: Commit = {
  windows: 0,
  rows: 0,
  columnsAdded: [],
  columnsWidened: [],
  rescued: new Map(),
  idRepeats: 0,
};

export const newLoadCounts = (): LoadCounts => ({
  ...newExtractCounts(),
  stored: NOTHING_STORED,
  suppressed: 0,
  nextFromDate: undefined,
});

export interface LoadDeps extends ExtractDeps {
  /** Counts, up to date whenever the load ends, successfully or not. */
  readonly counts: LoadCounts;
}

/** Executes a plan: reads its windows and stores them in an open place. Throws UserError. */
export function load(plan: Plan, into: Sink | StreamSink, deps: LoadDeps): Promise<void> {
  return 'commit' in into ? loadBatches(plan, into, deps) : loadStream(plan, into, deps);
}

async function loadStream(plan: Plan, sink: StreamSink, deps: LoadDeps): Promise<void> {
  const { counts } = deps;
  const { extractWindows } = await import('../extract/extract.ts');
  try {
    const streamed = await sink.write(extractWindows(plan, deps), (window, rows) =>
      add(counts, [window], { ...NOTHING_STORED, windows: 1, rows }),
    );
    counts.stored = { ...counts.stored, ...streamed };
  } catch (error) {
    if (sink.isAllOrNothing) Object.assign(counts, { stored: NOTHING_STORED, suppressed: 0, nextFromDate: undefined });
    throw error;
  }
}

async function loadBatches(plan: Plan, sink: Sink, deps: LoadDeps): Promise<void> {
  const { counts, logger, signal } = deps;
  /** True once windows could only be stored one by one: it takes too long to try that with each further batch. */
  let isOneByOne = false;
  /** Stores the first of these windows and returns their number. */
  const store = async (batch: readonly Window[]): Promise<number> => {
    const commit = await sink.commit(batch, signal);
    const stored = batch.slice(0, commit.windows);
    add(counts, stored, commit);
    for (const { receipt } of stored) {
      const { from, to, rows, bytes } = receipt;
      const message = `Window ${from} to ${to} is committed: ${plainCount(rows, 'row')}.`;
      logger.debug('window.committed', message, { from, to, rows, bytes });
    }
    return commit.windows;
  };
  /**
   * Stores a batch in as few commits as its windows allow; after a failure that is not temporary one by one, so that
   * those before the one that cannot be stored are kept.
   */
  const storeBatch = async (batch: readonly Window[]): Promise<void> => {
    for (let remaining = batch; remaining.length > 0; ) {
      const together = isOneByOne ? remaining.slice(0, 1) : remaining;
      try {
        remaining = remaining.slice(await store(together));
      } catch (error) {
        const isPassing = error instanceof UserError && error.kind === 'transient';
        if (together.length === 1 || isPassing || signal.aborted) throw error;
        const message = `${together.length} windows cannot be stored together: all are stored one by one from now on.`;
        logger.debug('batch.split', message);
        isOneByOne = true;
      }
    }
  };
  const begin = (window: Window) => {
    if (!isOneByOne) sink.begin?.(window);
  };
  // This module is loaded here, since commands that load nothing, such as `plan`, load the runner of targets, too.
  const { extractBatches } = await import('../extract/extract.ts');
  try {
    for await (const batch of extractBatches(plan, deps, BATCH_LIMITS, begin)) await storeBatch(batch);
  } finally {
    const { idRepeats } = counts.stored;
    if (idRepeats > 0) {
      const message =
        `${plainCount(idRepeats, 'row has', 'rows have')} an id that another row has: ` +
        'all are kept, told apart in _key by #2, #3…';
      logger.warn('ids.repeated', message, { rows: idRepeats });
    }
  }
}

/** Adds the counts of a commit; `windows` are those that it stored. */
function add(counts: LoadCounts, windows: readonly Window[], commit: Commit): void {
  const { stored } = counts;
  const widened = new Map(stored.columnsWidened.map((column) => [column.name, column]));
  for (const column of commit.columnsWidened) {
    widened.set(column.name, { ...column, from: widened.get(column.name)?.from ?? column.from });
  }
  const rescued = new Map(stored.rescued);
  for (const [column, cells] of commit.rescued) rescued.set(column, (rescued.get(column) ?? 0) + cells);
  counts.stored = {
    windows: stored.windows + commit.windows,
    rows: stored.rows + commit.rows,
    columnsAdded: [...stored.columnsAdded, ...commit.columnsAdded],
    columnsWidened: [...widened.values()],
    rescued,
    idRepeats: stored.idRepeats + commit.idRepeats,
  };
  counts.suppressed += windows.reduce((sum, { receipt }) => sum + receipt.suppressed, 0);
  counts.nextFromDate = windows.at(-1)?.state.from_date ?? counts.nextFromDate;
}
