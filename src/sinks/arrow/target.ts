import type { Writable } from 'node:stream';
import type { Plan } from '../../extract/plan/plan.ts';
import type { ExtractDeps } from '../../extract/ports.ts';
import { NO_PRIOR_LOADS, type Window } from '../../extract/window.ts';
import type { Loaded } from '../load.ts';
import type { OpenOptions, Target } from '../target.ts';

const STDOUT = '-';

/** One Arrow IPC stream of all windows, into a file or on stdout. It stores no state, so there is nothing to verify. */
export const arrow: Target = {
  name: 'arrow',
  place: { name: 'file', describe: 'The file, or - for stdout' },
  summaries: { sync: 'The export as one Arrow IPC stream, into a file or (-) on stdout; remembers nothing' },
  isStdout: (place) => place === STDOUT,
  async open(place, options) {
    const out = place === STDOUT ? options.stdout : place;
    return {
      // Its days are those of --from and --to, else all that can be exported.
      readPriorLoads: async () => NO_PRIOR_LOADS,
      load: (plan, deps, loaded, onStored) => stream(plan, deps, { ...options, out }, loaded, onStored),
      async close() {},
    };
  },
};

async function stream(
  plan: Plan,
  deps: ExtractDeps,
  options: OpenOptions & { readonly out: string | Writable },
  loaded: Loaded,
  onStored: () => void,
): Promise<void> {
  const [{ extractWindows }, { writeArrow }] = await Promise.all([
    import('../../extract/extract.ts'),
    import('./write-arrow.ts'),
  ]);
  const windows = counted(extractWindows(plan, deps), loaded, onStored);
  const result = await writeArrow(windows, { ...options, logger: deps.logger }).catch((error: unknown) => {
    // Those of a file are stored all at once, and those of a stream without a pinned schema after the last was scanned.
    if (typeof options.out === 'string' || options.pinned === undefined) {
      Object.assign(loaded, { rows: 0, windows: 0 });
      deps.tally.nextFromDate = undefined;
    }
    throw error;
  });
  loaded.rows = result.rows;
  loaded.columnsAdded.push(...result.columns);
  for (const [column, cells] of result.rescued) loaded.rescued.set(column, cells);
}

async function* counted(windows: AsyncIterable<Window>, loaded: Loaded, onStored: () => void): AsyncGenerator<Window> {
  for await (const window of windows) {
    yield window;
    loaded.windows++;
    loaded.rows += window.receipt.rows;
    loaded.suppressed += window.receipt.suppressed;
    onStored();
  }
}
