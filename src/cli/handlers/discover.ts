import { EXIT } from '../../base/errors.ts';
import { extractDeps, openExportSession } from '../../extract/session.ts';
import { discoverColumns } from '../../source/columns.ts';
import { type Handler, text } from '../command.ts';
import { loadSourceConfig } from '../configuration.ts';
import { durationOption } from '../context.ts';
import type { SchemaFile } from '../sync/pinned.ts';

export const discover: Handler = async (options, context) => {
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
};
