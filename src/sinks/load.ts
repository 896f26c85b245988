import type { Logger } from '../base/log.ts';
import { plainCount } from '../base/quantities.ts';
import { extractWindows } from '../extract/extract.ts';
import type { Plan } from '../extract/plan/plan.ts';
import type { ExtractDeps } from '../extract/ports.ts';
import type { PriorLoads } from '../extract/prior-loads.ts';
import type { Tally } from '../extract/summary.ts';
import type { WidenedColumn } from '../table/changes.ts';
import type { RunHistory } from '../table/runs.ts';
import type { Commit, Sink } from './sink.ts';

export type LoadDeps = ExtractDeps & { readonly tally: Tally };

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
  load(plan: Plan, deps: LoadDeps, loaded: Loaded, onStored: () => void): Promise<void>;
  close(): Promise<void>;
}

/** The loader of a sink, which commits each window with its state before the next one is requested. */
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
  deps: LoadDeps,
  loaded: Loaded,
  onCommit: (loaded: Loaded) => void,
): Promise<void> {
  try {
    for await (const window of extractWindows(plan, deps)) {
      add(loaded, await sink.commit(window, deps.signal));
      loaded.suppressed += window.receipt.suppressed;
      const { from, to, rows, bytes } = window.receipt;
      const fields = { from, to, rows, bytes };
      deps.logger.debug(
        'window.committed',
        `Window ${from} to ${to} is committed: ${plainCount(rows, 'row')}.`,
        fields,
      );
      onCommit(loaded);
    }
  } finally {
    warnOfRepeats(loaded, deps.logger);
  }
}

function warnOfRepeats({ idRepeats }: Loaded, logger: Logger): void {
  if (idRepeats === 0) return;
  const rows = plainCount(idRepeats, 'row has', 'rows have');
  logger.warn('ids.repeated', `${rows} an id that another row has: all are kept, told apart in _key by #2, #3…`, {
    rows: idRepeats,
  });
}

function add(loaded: Loaded, commit: Commit): void {
  loaded.rows += commit.rows;
  loaded.windows++;
  loaded.columnsAdded.push(...commit.columnsAdded);
  for (const widened of commit.columnsWidened) addWidened(loaded.columnsWidened, widened);
  loaded.idRepeats += commit.idRepeats;
  for (const [column, cells] of commit.rescued) loaded.rescued.set(column, (loaded.rescued.get(column) ?? 0) + cells);
}

function addWidened(all: Map<string, WidenedColumn>, { name, from, to }: WidenedColumn): void {
  all.set(name, { name, from: all.get(name)?.from ?? from, to });
}
