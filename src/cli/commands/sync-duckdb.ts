import { EXIT } from '../../base/errors.ts';
import { openDuckDbSink } from '../../sinks/duckdb/sink.ts';
import { type Command, text } from '../command.ts';
import { loadSourceConfig } from '../configuration.ts';
import { pinnedTypes } from '../pinned.ts';
import { reporter } from '../report.ts';
import { sync } from '../sync.ts';
import { readSyncOptions, reportOptions, syncOptions } from './sync-options.ts';

export const syncDuckDb: Command = {
  usage: 'sync duckdb <file>',
  summary: 'The export into a DuckDB file: table events, views event_logs and event_items',
  options: (yargs) =>
    syncOptions(
      yargs.positional('file', {
        type: 'string',
        demandOption: true,
        describe: 'The DuckDB file; made where there is none',
      }),
    ),
  async run(options, context) {
    const file = text(options, 'file') ?? '';
    const report = reporter(reportOptions(options), context, file);
    return report.around(async () => {
      const wanted = readSyncOptions(options);
      const config = loadSourceConfig(wanted.config, context);
      const pinned = pinnedTypes(wanted.schema);
      const run = { config, span: wanted, maxWaitMs: wanted.maxWaitMs, onSummary: report.take };
      await sync(
        run,
        () =>
          openDuckDbSink({
            ...config,
            file,
            pinned,
            clock: context.clock,
            logger: context.logger,
            signal: context.signal,
          }),
        context,
      );
      return EXIT.done;
    });
  },
};
