import { EXIT } from '../../base/errors.ts';
import { openParquetSink } from '../../sinks/parquet/sink.ts';
import { type Command, text } from '../command.ts';
import { loadSourceConfig } from '../configuration.ts';
import { pinnedTypes } from '../pinned.ts';
import { reporter } from '../report.ts';
import { sync } from '../sync.ts';
import { readSyncOptions, reportOptions, syncOptions } from './sync-options.ts';

export const syncParquet: Command = {
  usage: 'sync parquet <dir>',
  summary: 'The export into a folder of Parquet files, one a date',
  options: (yargs) =>
    syncOptions(
      yargs.positional('dir', { type: 'string', demandOption: true, describe: 'The folder; made where there is none' }),
    ),
  async run(options, context) {
    const dir = text(options, 'dir') ?? '';
    const report = reporter(reportOptions(options), context, dir);
    return report.around(async () => {
      const wanted = readSyncOptions(options);
      const config = loadSourceConfig(wanted.config, context);
      const pinned = pinnedTypes(wanted.schema);
      const { clock, logger, signal } = context;
      const run = { config, span: wanted, maxWaitMs: wanted.maxWaitMs, onSummary: report.take };
      await sync(
        run,
        () => openParquetSink({ ...config, dir, tables: wanted.tables, pinned, clock, logger, signal }),
        context,
      );
      return EXIT.done;
    });
  },
};
