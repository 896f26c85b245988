import type { ExitCode } from '../../base/errors.ts';
import { DEFAULT_HISTORY_DAYS } from '../../config/source.ts';
import { TARGETS } from '../../targets/targets.ts';
import { DAY_OPTIONS, defineCommand, duration, flag, type GLOBAL_OPTIONS, text, type ValuesOf } from '../command.ts';
import { Configuration, pinnedTypes, targetSettings } from '../configuration.ts';
import type { Context } from '../context.ts';
import { type Failure, failureOf } from '../failure.ts';
import { type NamedPlace, placeArguments, placeOf } from '../place-arguments.ts';
import { notificationOf, notify } from '../run/notify.ts';
import { sync } from '../run/run.ts';
import { describeSummary, EMPTY_SUMMARY, type RunResult, type Summary } from '../run/summary.ts';
import { showPlan } from './plan.ts';

const OPTIONS = {
  ...placeArguments(TARGETS),
  ...DAY_OPTIONS,
  schema: text('Pinned schema, as discover prints it'),
  maxWait: duration('Longest wait for the quota (30s, 20m, 1h); longer: commit what is done, exit 3'),
  dryRun: flag('Show the plan; nothing is sent or stored'),
  notify: text('Address to notify of failures and changes; or DFINERY_NOTIFY_URL'),
};

type Values = ValuesOf<typeof OPTIONS & typeof GLOBAL_OPTIONS>;

export const command = defineCommand({
  options: OPTIONS,
  examples: ['sync duckdb events.duckdb', 'sync parquet events --from 2026-01-01 --to 2026-01-31'],
  page: 'targets.md',
  async run(values, context) {
    const configuration = new Configuration(values.config, context);
    const named = placeOf('sync', values, TARGETS, configuration);
    if (values.dryRun) return await showPlan(named, values, configuration, context);
    return await reportRun(named, values, context, (redirected) => load(named, values, configuration, redirected));
  },
  async failed(failure, values, context) {
    const target = TARGETS.find(({ name }) => name === values.target);
    const named = target && { target, place: values.place ?? '' };
    await reportRun(named, values, context, async () => NOTHING_DONE, failure);
  },
});

interface LoadResult extends RunResult {
  /** How many days back the service exports, for the notification. */
  readonly historyDays: number;
}

const NOTHING_DONE: LoadResult = { summary: EMPTY_SUMMARY, historyDays: DEFAULT_HISTORY_DAYS };

/**
 * Runs `work` and reports its outcome wherever the user asked for it: in the log, a notification, and with `--json` the last line of all output. A failure before it is in the log already.
 */
async function reportRun(
  named: NamedPlace | undefined,
  values: Partial<Values>,
  outer: Context,
  work: (context: Context) => Promise<LoadResult>,
  before?: Failure,
): Promise<ExitCode> {
  const { target, place = '' } = named ?? {};
  const isStdout = target?.isStdout?.(place) === true;
  const context = isStdout ? withResultsOnStderr(outer) : outer;
  const { logger, signal, redactor } = context;
  let notification: ReturnType<typeof notificationOf>;
  let done = NOTHING_DONE;
  let failure = before;
  try {
    notification = notificationOf(values.notify, context);
    done = await work(context);
    if (done.error !== undefined) throw done.error;
  } catch (error) {
    // The first thing that is wrong is the one to report.
    failure ??= failureOf(error, signal);
  }
  const failed = failure && { exit: failure.exit, error: redactor.mask(failure.message) };
  const summary: Summary = { ...done.summary, ...failed };
  const name = isStdout ? 'the stream' : place;
  if (failure === undefined || summary.days > 0) logger.info('run.summary', describeSummary(summary, name));
  if (failure !== before) failure?.log(logger);
  if (notification !== undefined) {
    const line = `sync ${target?.name ?? ''} ${place}`;
    await notify(notification, { summary, command: line, target: name, historyDays: done.historyDays }, context);
  }
  if (values.json === true) context.terminal.result(JSON.stringify(summary));
  return summary.exit;
}

async function load(
  { target, place }: NamedPlace,
  { schema, maxWait: maxWaitMs, ...days }: Values,
  configuration: Configuration,
  context: Context,
): Promise<LoadResult> {
  const config = configuration.source();
  const stdout = context.terminal.stdout ?? process.stdout;
  const options = {
    ...targetSettings(config, context),
    stdout,
    pinned: pinnedTypes(schema),
  };
  const run = { config, days, maxWaitMs };
  const done = await sync(run, () => target.open(place, options), context);
  return { ...done, historyDays: config.historyDays };
}

/** Sends results to stderr, since stdout carries the data. */
const withResultsOnStderr = (context: Context): Context => {
  const { terminal } = context;
  return { ...context, terminal: { ...terminal, result: (line) => terminal.result(line, 'stderr') } };
};
