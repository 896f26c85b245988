import type { Secret } from '../../base/secrets.ts';
import { DEFAULT_HISTORY_DAYS } from '../../config/source.ts';
import type { Target } from '../../targets/contract.ts';
import { TARGETS } from '../../targets/targets.ts';
import { type CommandResult, DAY_OPTIONS, defineCommand, duration, flag, text } from '../command.ts';
import { openOptions } from '../configuration.ts';
import type { Context } from '../context.ts';
import { pinnedTypes } from '../pinned-schema.ts';
import { configuredPlace, placeArguments } from '../place-arguments.ts';
import { EMPTY_SUMMARY, type Summary } from '../results.ts';
import { notificationOf, notify } from '../run/notify.ts';
import { runSync } from '../run/run.ts';
import { describeSummary } from '../run/summary.ts';
import { planSync } from './plan.ts';

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
  page: 'targets.md',
  async run(values, context) {
    const { configuration, target, place } = configuredPlace('sync', values, TARGETS, context);
    if (values.dryRun) return await planSync({ target, place }, values, configuration, context);
    const url = notificationOf(values.notify, context);
    const config = configuration.source();
    const { schema, maxWait: maxWaitMs, ...days } = values;
    const options = { ...openOptions(config, context), pinned: pinnedTypes(schema) };
    const { summary, failure } = await runSync({ config, days, maxWaitMs }, () => target.open(place, options), context);
    if (failure === undefined || summary.days > 0)
      context.logger.info('run.summary', describeSummary(summary, shownPlace(target, place)));
    failure?.log(context.logger);
    return await notifyAndAnswer({ target, place, url, summary, historyDays: config.historyDays }, context);
  },
  async failed({ exit, message }, values, context) {
    const target = TARGETS.find(({ name }) => name === values.target);
    const { place = '' } = values;
    const summary = { ...EMPTY_SUMMARY, exit, error: context.redactor.mask(message) };
    let url: Secret | undefined;
    try {
      if (values.dryRun !== true) url = notificationOf(values.notify, context);
    } catch {
      // The failure that is told came before that of the address, or is the same.
    }
    return await notifyAndAnswer({ target, place, url, summary, historyDays: DEFAULT_HISTORY_DAYS }, context);
  },
});

const isStdout = (target: Target | undefined, place: string): boolean => target?.isStdout?.(place) === true;

const shownPlace = (target: Target | undefined, place: string): string =>
  isStdout(target, place) ? 'the stream' : place;

/** A run that is over, or a command line that was refused, whose target may not be known. */
interface FinishedRun {
  readonly target: Target | undefined;
  readonly place: string;
  /** The address to notify. */
  readonly url: Secret | undefined;
  readonly summary: Summary;
  readonly historyDays: number;
}

/** Notifies of a run. Its result goes to stderr where stdout carries the data. */
async function notifyAndAnswer(run: FinishedRun, context: Context): Promise<CommandResult> {
  const { target, place, url, summary, historyDays } = run;
  const command = `sync ${target?.name ?? ''} ${place}`;
  if (url !== undefined)
    await notify(url, { summary, command, place: shownPlace(target, place), historyDays }, context);
  return { result: summary, lines: [], exit: summary.exit, on: isStdout(target, place) ? 'stderr' : undefined };
}
