import { DEFAULT_HISTORY_DAYS } from '../../config/source.ts';
import { TARGETS } from '../../targets/targets.ts';
import {
  DAY_OPTIONS,
  defineCommand,
  duration,
  flag,
  type GLOBAL_OPTIONS,
  type OptionValues,
  text,
} from '../command.ts';
import type { Context } from '../context.ts';
import { failureOf } from '../failure.ts';
import { configuredPlace, isStdout, placeArguments } from '../place-arguments.ts';
import { EMPTY_SUMMARY } from '../results.ts';
import { type FinishedRun, notify, notifyAddress } from '../run/notify.ts';
import { failedRun, type RunOutcome, runSync } from '../run/run.ts';
import { describeSummary } from '../run/summary.ts';
import { planSync } from '../run/sync-plan.ts';

const OPTIONS = {
  ...placeArguments(TARGETS),
  ...DAY_OPTIONS,
  schema: text('Pinned schema, as discover prints it'),
  maxWait: duration('Longest wait for the quota (30s, 20m, 1h); longer: commit what is done, exit 3'),
  dryRun: flag('Show the plan; nothing is sent or stored'),
  notify: text('Address to notify of failures and changes; or DFINERY_NOTIFY_URL'),
};

export const command = defineCommand({
  options: OPTIONS,
  examples: ['sync duckdb events.duckdb', 'sync parquet events --from 2026-01-01 --to 2026-01-31'],
  docsPage: 'targets.md',
  async run(values, context) {
    if (values.dryRun) {
      const { config, place } = configuredPlace(values, TARGETS, context);
      return await planSync(place, values, config, context);
    }
    const { logger } = context;
    const url = notifyAddress(values.notify, context);
    const { summary, error, place, historyDays } = await syncConfigured(values, context);
    if (error === undefined || summary.days > 0) logger.info('run.summary', describeSummary(summary, place));
    if (error !== undefined) failureOf(error, context).log();
    if (url !== undefined) await notify(url, { summary, place, historyDays }, context);
    return { result: summary, lines: [], exit: summary.exit, stream: isStdout(place) ? 'stderr' : 'stdout' };
  },
});

type SyncValues = OptionValues<typeof OPTIONS & typeof GLOBAL_OPTIONS>;

/** A configuration that is refused is a run that failed, too: whoever is notified of failures must know. */
async function syncConfigured(values: SyncValues, context: Context): Promise<FinishedRun & RunOutcome> {
  let configured: ReturnType<typeof configuredPlace>;
  try {
    configured = configuredPlace(values, TARGETS, context);
  } catch (error) {
    const outcome = failedRun(EMPTY_SUMMARY, error, context);
    return { ...outcome, place: undefined, historyDays: DEFAULT_HISTORY_DAYS };
  }
  const { config, place } = configured;
  const run = { place, config, days: values, maxWaitMs: values.maxWait, schema: values.schema };
  return { ...(await runSync(run, context)), place, historyDays: config.historyDays };
}
