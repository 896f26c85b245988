import { configFailure } from '../../base/errors.ts';
import { isTableName, TABLES, type TableName } from '../../table/columns.ts';
import { flag, type Options, text } from '../command.ts';
import { dayOption, durationOption } from '../context.ts';
import type { WantedDays } from './local-plan.ts';

export interface SyncOptions extends WantedDays {
  readonly config: string | undefined;
  readonly tables: readonly TableName[];
  readonly schema: string | undefined;
  readonly maxWaitMs: number | undefined;
}

/** The options of the summary, which is printed even if another option is wrong. */
export const summaryOptions = (options: Options) => ({ json: flag(options, 'json'), xcom: text(options, 'xcom') });

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
