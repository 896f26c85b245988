import { EXIT } from '../../base/errors.ts';
import { extractDeps, openExportSession } from '../../extract/session.ts';
import { discoverColumns } from '../../source/columns.ts';
import { type Command, text } from '../command.ts';
import { loadSourceConfig } from '../configuration.ts';
import { durationOption } from '../context.ts';
import type { SchemaFile } from '../pinned.ts';

export const discover: Command = {
  usage: 'discover',
  summary: 'The typed schema of the export, as JSON for --schema; costs two exports',
  options: (yargs) =>
    yargs
      .option('config', { type: 'string', describe: 'Source configuration (JSON); default dfinery.json' })
      .option('max-wait', { type: 'string', describe: 'Longest wait for the quota (30s, 20m, 1h)' }),
  async run(options, context) {
    const config = loadSourceConfig(text(options, 'config'), context);
    const session = openExportSession(config, context, durationOption('max-wait', options.maxWait));
    try {
      const columns = await discoverColumns(config, extractDeps(config, session.service, context));
      const file: SchemaFile = { v: 1, columns };
      context.terminal.result(JSON.stringify(file, null, 2));
      return EXIT.done;
    } finally {
      await session.close();
    }
  },
};
