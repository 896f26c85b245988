import type { Argv } from 'yargs';
import type { Target } from '../../sinks/target.ts';
import { TABLES } from '../../table/columns.ts';
import type { Command } from '../command.ts';
import { sourceEnvironmentHelp } from '../environment-help.ts';

const PUBLISH = {
  type: 'string',
  describe: 'A checked copy for readers at this path, replaced after each run that committed something',
} as const;

/** `sync TARGET PLACE`. */
export function syncCommand(target: Target): Command {
  const { name, describe } = target.place;
  return {
    usage: `sync ${target.name} <${name}>`,
    summary: target.summaries.sync,
    refusesUnknownNames: true,
    options: (yargs) => {
      const common = syncOptions(yargs.positional(name, { type: 'string', demandOption: true, describe }));
      return target.publishes === true ? common.option('publish', PUBLISH) : common;
    },
    handler: async () => (await import('../handlers/sync.ts')).syncInto(target),
  };
}

/** The options of every `sync`. */
function syncOptions(yargs: Argv): Argv {
  return yargs
    .option('config', { type: 'string', describe: 'Source configuration (JSON); default dfinery.json' })
    .option('from', { type: 'string', describe: 'First day, yyyy-MM-dd; with it exactly the days asked for are read' })
    .option('to', { type: 'string', describe: 'Last day, included' })
    .option('full-refresh', {
      type: 'boolean',
      default: false,
      describe: 'Read every day again and merge; nothing is emptied',
    })
    .option('tables', {
      type: 'string',
      default: 'events',
      describe: `With commas: ${TABLES.join(', ')}; a DuckDB file has all of them, two as views`,
    })
    .option('schema', { type: 'string', describe: 'Pinned schema, as discover prints it' })
    .option('max-wait', {
      type: 'string',
      describe: 'Longest wait for the quota (30s, 20m, 1h); longer: commit what is done, exit 3',
    })
    .option('json', { type: 'boolean', default: false, describe: 'The summary as JSON on the last line of stdout' })
    .option('xcom', { type: 'string', describe: 'File for the same JSON, on failure too' })
    .option('notify', {
      type: 'string',
      describe:
        'Address to notify of failures, new or changed columns, rescued cells and days soon lost; or DFINERY_NOTIFY_URL',
    })
    .option('notify-always', { type: 'boolean', default: false, describe: 'Tell of every run' })
    .epilogue(sourceEnvironmentHelp());
}
