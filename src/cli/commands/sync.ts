import type { Secret } from '../../base/secrets.ts';
import { DEFAULT_HISTORY_DAYS } from '../../config/source.ts';
import { pinnedTypes } from '../../extract/discover.ts';
import { TARGETS } from '../../targets/targets.ts';
import { type CommandResult, DAY_OPTIONS, defineCommand, duration, flag, text } from '../command.ts';
import { EXPORT_KEYS, openOptions, readConfiguration, requireKeys } from '../configuration.ts';
import type { Context } from '../context.ts';
import { failureOf, RunFailed } from '../failure.ts';
import { configuredPlace, isStdout, optionalPlaceOf, placeArguments } from '../place-arguments.ts';
import { EMPTY_SUMMARY } from '../results.ts';
import { type FinishedRun, notify, notifyAddress } from '../run/notify.ts';
import { runSync } from '../run/run.ts';
import { describeSummary } from '../run/summary.ts';
import { planSync } from '../run/sync-plan.ts';

export const command = defineCommand({
  options: {
    ...placeArguments(TARGETS),
    ...DAY_OPTIONS,
    schema: text('Pinned schema, as discover prints it'),
    maxWait: duration('Longest wait for the quota (30s, 20m, 1h); longer: commit what is done, exit 3'),
    dryRun: flag('Show the plan; nothing is sent or stored'),
    notify: text('Address to notify of failures and changes; or DFINERY_NOTIFY_URL'),
  },
  examples: ['sync duckdb events.duckdb', 'sync parquet events --from 2026-01-01 --to 2026-01-31'],
  docsPage: 'targets.md',
  async run(values, context) {
    const { config: configuration, ...namedPlace } = configuredPlace('sync', values, TARGETS, context);
    if (values.dryRun) return await planSync(namedPlace, values, configuration, context);
    const url = notifyAddress(values.notify, context);
    const config = requireKeys(configuration, ...EXPORT_KEYS);
    const pinned = pinnedTypes(values.schema);
    const sink = await namedPlace.target.open(namedPlace.place, { ...openOptions(config, context), pinned });
    const summary = await runSync({ config, days: values, maxWaitMs: values.maxWait }, sink, context);
    context.logger.info('run.summary', describeSummary(summary, namedPlace));
    return await notifyAndAnswer(url, { summary, namedPlace, historyDays: config.historyDays }, context);
  },
  async failed(error, context, values) {
    const { summary } = error instanceof RunFailed ? error : new RunFailed(EMPTY_SUMMARY, error, context);
    const config = ifReadable(() => readConfiguration(values.config, context));
    const namedPlace = ifReadable(() => optionalPlaceOf('sync', values, TARGETS, config));
    const url = values.dryRun ? undefined : ifReadable(() => notifyAddress(values.notify, context));
    if (summary.days > 0) context.logger.info('run.summary', describeSummary(summary, namedPlace));
    failureOf(error, context).log();
    const { historyDays = DEFAULT_HISTORY_DAYS } = config ?? {};
    return await notifyAndAnswer(url, { summary, namedPlace, historyDays }, context);
  },
});

/** What `read` gives; undefined where it throws: after a refusal that failure is told already, or a later one. */
function ifReadable<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** Notifies of a run. Its result goes to stderr where stdout carries the data. */
async function notifyAndAnswer(url: Secret | undefined, run: FinishedRun, context: Context): Promise<CommandResult> {
  if (url !== undefined) await notify(url, run, context);
  const { summary, namedPlace } = run;
  return { result: summary, lines: [], exit: summary.exit, stream: isStdout(namedPlace) ? 'stderr' : 'stdout' };
}
