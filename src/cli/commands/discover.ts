import { EXIT } from '../../base/errors.ts';
import { extractDeps, openExportSession } from '../../extract/session.ts';
import { discoverColumns } from '../../source/columns.ts';
import { CONFIG_OPTION, type Command, durationOption, text } from '../command.ts';
import { loadSourceConfig } from '../configuration.ts';
import type { SchemaFile } from '../schema-file.ts';

export const discover: Command = {
  options: (yargs) =>
    yargs
      .option('config', CONFIG_OPTION)
      .option('max-wait', { type: 'string', describe: 'Longest wait for the quota (30s, 20m, 1h)' }),
  async run(options, context) {
    const config = loadSourceConfig(text(options, 'config'), context);
    const session = openExportSession(config, context, durationOption('max-wait', options.maxWait));
    try {
      const columns = await discoverColumns(config, extractDeps(config, session.service, context));
      const file: SchemaFile = { v: 1, columns };
      for (const line of JSON.stringify(file, null, 2).split('\n')) context.terminal.result(line);
      return EXIT.done;
    } finally {
      await session.close();
    }
  },
};
