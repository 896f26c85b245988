import { EXIT } from '../../base/errors.ts';
import type { SourceConfig } from '../../config/source.ts';
import { extractWindows } from '../../extract/extract.ts';
import type { Plan } from '../../extract/plan/plan.ts';
import type { Window } from '../../extract/window.ts';
import { type ArrowOptions, writeArrow } from '../../sinks/arrow/write-arrow.ts';
import type { Loaded } from '../../sinks/load.ts';
import type { Memory } from '../../sinks/sink.ts';
import { type Command, text } from '../command.ts';
import { loadSourceConfig } from '../configuration.ts';
import type { Context } from '../context.ts';
import { planLocal } from '../local-plan.ts';
import { pinnedTypes } from '../pinned.ts';
import { reporter } from '../report.ts';
import { execute, type RunDeps } from '../sync.ts';
import { readSyncOptions, reportOptions, syncOptions } from './sync-options.ts';

/** A stream remembers nothing: its days are those of --from and --to, else all that can be exported. */
const NOTHING: Memory = { state: undefined, covered: new Set(), eventNames: [] };
const STDOUT = '-';

export const syncArrow: Command = {
  usage: 'sync arrow <file>',
  summary: 'The export as one Arrow IPC stream, into a file or (-) on stdout; remembers nothing',
  options: (yargs) =>
    syncOptions(
      yargs.positional('file', { type: 'string', demandOption: true, describe: 'The file, or - for stdout' }),
    ),
  async run(options, outer) {
    const file = text(options, 'file') ?? STDOUT;
    const toStdout = file === STDOUT;
    // The stream has stdout for itself: the summary goes to stderr.
    const context = toStdout ? { ...outer, terminal: { ...outer.terminal, result: outer.terminal.note } } : outer;
    const report = reporter(reportOptions(options), context, toStdout ? 'the stream' : file);
    return report.around(async () => {
      const wanted = readSyncOptions(options);
      const config = loadSourceConfig(wanted.config, context);
      const plan = planLocal(config, NOTHING, wanted, context.clock.now());
      const out = { out: toStdout ? process.stdout : file, pinned: pinnedTypes(wanted.schema) };
      const run = { config, span: wanted, maxWaitMs: wanted.maxWaitMs, onSummary: report.take };
      await execute(run, plan, context, (deps, loaded, show) =>
        stream(plan, deps, { ...out, config }, loaded, show, context),
      );
      return EXIT.done;
    });
  },
};

interface Target extends Pick<ArrowOptions, 'out' | 'pinned'> {
  readonly config: SourceConfig;
}

async function stream(
  plan: Plan,
  deps: RunDeps,
  target: Target,
  loaded: Loaded,
  show: () => void,
  context: Context,
): Promise<void> {
  const { config, out, pinned } = target;
  const { clock, logger, signal } = context;
  const windows = counted(extractWindows(plan, deps), loaded, show);
  const result = await writeArrow(windows, { ...config, out, pinned, clock, logger, signal }).catch(
    (error: unknown) => {
      // Windows count once they are where they belong: those of a file all at once, held ones after the last was scanned.
      if (typeof out === 'string' || pinned === undefined) {
        Object.assign(loaded, { rows: 0, windows: 0 });
        deps.tally.nextFromDate = undefined;
      }
      throw error;
    },
  );
  loaded.rows = result.rows;
  loaded.columnsAdded.push(...result.columns);
  for (const [column, cells] of result.rescued) loaded.rescued.set(column, cells);
}

async function* counted(windows: AsyncIterable<Window>, loaded: Loaded, show: () => void): AsyncGenerator<Window> {
  for await (const window of windows) {
    yield window;
    loaded.windows++;
    loaded.rows += window.receipt.rows;
    loaded.suppressed += window.receipt.suppressed;
    show();
  }
}
