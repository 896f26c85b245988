import type { Argv } from 'yargs';
import { configFailure } from '../../base/errors.ts';
import { isTableName, TABLES, type TableName } from '../../sinks/target.ts';
import { flag, type Options, text } from '../command.ts';
import { dayOption, durationOption } from '../context.ts';
import { sourceEnvironmentHelp } from '../environment-help.ts';
import type { WantedDays } from '../local-plan.ts';

/** The options of every `sync`. */
export function syncOptions(yargs: Argv): Argv {
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
        'Address to tell of failures, new or changed columns, rescued cells and days soon lost; or DFINERY_NOTIFY_URL',
    })
    .option('notify-always', { type: 'boolean', default: false, describe: 'Tell of every run' })
    .epilogue(sourceEnvironmentHelp());
}

export interface SyncOptions extends WantedDays {
  readonly config: string | undefined;
  readonly tables: readonly TableName[];
  readonly schema: string | undefined;
  readonly maxWaitMs: number | undefined;
}

/** What is wanted of the summary: it comes even where another option is wrong. */
export const reportOptions = (options: Options) => ({ json: flag(options, 'json'), xcom: text(options, 'xcom') });

export function readSyncOptions(options: Options): SyncOptions {
  return {
    config: text(options, 'config'),
    from: dayOption('from', options.from),
    to: dayOption('to', options.to),
    fullRefresh: flag(options, 'fullRefresh'),
    tables: tablesOf(text(options, 'tables') ?? 'events'),
    schema: text(options, 'schema'),
    maxWaitMs: durationOption('max-wait', options.maxWait),
  };
}

/** The tables that `--tables` names. */
function tablesOf(given: string): TableName[] {
  return given.split(',').map((name) => {
    const clean = name.trim();
    if (isTableName(clean)) return clean;
    throw configFailure(`--tables names ${JSON.stringify(clean)}, wanted ${TABLES.join(', ')}.`);
  });
}
