import { resolve } from 'node:path';
import { configError, type ExitCode } from '../../base/errors.ts';
import { DEFAULT_HISTORY_DAYS } from '../../config/source.ts';
import { writeNamedFile } from '../../fs/atomic-file.ts';
import { realPath } from '../../fs/local-path.ts';
import { isTableName, TABLES } from '../../table/columns.ts';
import { checkOutsideTables } from '../../targets/files/enclosing-place.ts';
import type { Target, TargetOptions } from '../../targets/target.ts';
import { TARGETS } from '../../targets/targets.ts';
import {
  argument,
  CONFIG_OPTION,
  command,
  DAY_OPTIONS,
  duration,
  flag,
  places,
  required,
  targetNamed,
  text,
  type ValuesOf,
  withDefault,
  wordOption,
} from '../command.ts';
import { loadSourceConfig, pinnedTypes, sourceEnvironmentHelp, targetSettings } from '../configuration.ts';
import type { Context } from '../context.ts';
import { type Failure, failureOf } from '../failure.ts';
import { syncAll } from '../run/also.ts';
import { type Notification, notificationOf, notify } from '../run/notify.ts';
import { type RunResult, sync } from '../run/run.ts';
import { describeSummary, EMPTY_SUMMARY, type Summary } from '../run/summary.ts';

const tables = wordOption(
  `With commas: ${TABLES.join(', ')}; DuckDB has all of them, two as views, Arrow events alone`,
  `names of ${TABLES.join(', ')} with commas`,
  (names) => {
    const given = names.split(',').map((name) => name.trim());
    return given.every(isTableName) ? given : undefined;
  },
);

const optionsOf = ({ place, options }: Target) => ({
  place: argument(place.name, required(text(place.describe))),
  config: CONFIG_OPTION,
  ...DAY_OPTIONS,
  also: places('TARGET PLACE: a further target of the same exports, with its own cursor; may be repeated'),
  tables: withDefault('events', tables),
  schema: text('Pinned schema, as discover prints it'),
  maxWait: duration(
    'Longest wait for the quota, or that a failure asks for (30s, 20m, 1h); longer: commit what is done, exit 3',
  ),
  json: flag('The summary as JSON on the last line of stdout'),
  xcom: text('File for the same JSON, on failure too'),
  notify: text(
    'Address to notify of failures, new or changed columns, rescued cells and days soon lost; or DFINERY_NOTIFY_URL',
  ),
  notifyAlways: flag('Notify of every run'),
  ...targetOptions(options, text),
});

/** Makes something of each option that only this target has. */
function targetOptions<T>(
  options: Target['options'] = {},
  make: (describe: string, name: keyof TargetOptions) => T,
): Readonly<Partial<Record<keyof TargetOptions, T>>> {
  const described = Object.entries(options) as [keyof TargetOptions, string][];
  return Object.fromEntries(described.map(([name, describe]) => [name, make(describe, name)]));
}

const MARKERS = TARGETS.flatMap(({ markers = [] }) => markers);

type Values = ValuesOf<ReturnType<typeof optionsOf>>;

export const commands = TARGETS.map((target) =>
  command({
    usage: `sync ${target.name} <${target.place.name}>`,
    family: 'The export into a local target',
    summary: target.summaries.sync,
    options: optionsOf(target),
    epilogue: sourceEnvironmentHelp,
    run: (values, context) => reportRun({ target, values, context }, (redirected) => load(target, values, redirected)),
    async failed(failure, values, context) {
      await reportRun({ target, values, context }, async () => NOTHING_DONE, failure);
    },
  }),
);

interface Invocation {
  readonly target: Target;
  readonly values: Partial<Values>;
  readonly context: Context;
}

interface LoadResult extends RunResult {
  /** How many days back the service exports, for the notification. */
  readonly historyDays: number;
}

const NOTHING_DONE: LoadResult = { summary: EMPTY_SUMMARY, historyDays: DEFAULT_HISTORY_DAYS };

/**
 * Runs `work` and reports its outcome, or a failure before it, which is in the log already, wherever the user asked for
 * it: in the log, the file of `--xcom`, a notification, and with `--json` the last line of all output.
 */
async function reportRun(
  { target, values, context: outer }: Invocation,
  work: (context: Context) => Promise<LoadResult>,
  before?: Failure,
): Promise<ExitCode> {
  const context = contextFor(target, values, outer);
  const { logger, signal, redactor } = context;
  let notification: Notification | undefined;
  let done = NOTHING_DONE;
  let failure = before;
  try {
    notification = notificationOf(values.notify, values.notifyAlways === true, context);
    done = await work(context);
    if (done.error !== undefined) throw done.error;
  } catch (error) {
    // The first thing that is wrong is the one to report.
    failure ??= failureOf(error, signal);
  }
  const failed = failure && { exit: failure.exit, error: redactor.mask(failure.message) };
  let summary: Summary = { ...done.summary, ...failed };
  const name = isStdout(target, values) ? 'the stream' : (values.place ?? '');
  const hasResult = failure === undefined || summary.windows > 0 || summary.also.length > 0;
  if (hasResult) logger.info('run.summary', describeSummary(summary, name));
  if (failure !== before) failure?.log(logger);
  const { xcom, place = '' } = values;
  try {
    if (xcom !== undefined) writeNamedFile(xcom, `${JSON.stringify(summary)}\n`, `the file of --xcom, ${xcom},`);
  } catch (error) {
    const { exit, message, log } = failureOf(error, signal);
    log(logger);
    if (summary.error === null) summary = { ...summary, exit, error: redactor.mask(message) };
  }
  if (notification !== undefined) {
    const command = `sync ${target.name} ${place}`;
    await notify(notification, { summary, command, target: name, historyDays: done.historyDays }, context);
  }
  if (values.json === true) context.terminal.result(JSON.stringify(summary));
  return summary.exit;
}

async function load(target: Target, values: Values, context: Context): Promise<LoadResult> {
  const config = loadSourceConfig(values.config, context);
  const { historyDays } = config;
  const { place, maxWait: maxWaitMs, publish } = values;
  const stdout = context.terminal.stdout ?? process.stdout;
  const pinned = pinnedTypes(values.schema);
  const open = { ...targetSettings(config, context), tables: values.tables, stdout, pinned };
  const own = targetOptions(target.options, (_, name) => values[name]);
  const run = { config, days: values, maxWaitMs, publish };
  const targets = placesToLoad(values, { target, place }).map((one, i) => ({
    target: one.target.name,
    place: one.place,
    async open() {
      const options = { ...open, ...(i === 0 ? own : {}) };
      const paths = [one.target.isStdout?.(one.place) === true ? undefined : one.place, options.data, options.publish];
      for (const path of paths) if (path !== undefined) checkOutsideTables(path, MARKERS);
      return await one.target.open(one.place, options);
    },
  }));
  const done = targets.length > 1 ? syncAll(run, targets, context) : sync(run, targets[0].open, context);
  return { ...(await done), historyDays };
}

const isStdout = (target: Target, { place = '' }: Partial<Values>) => target.isStdout?.(place) === true;

/** Sends results to stderr if stdout carries the data. */
function contextFor(target: Target, values: Partial<Values>, context: Context): Context {
  if (!isStdout(target, values)) return context;
  const { terminal } = context;
  return { ...context, terminal: { ...terminal, result: (line) => terminal.result(line, 'stderr') } };
}

/** The places to load: the first, and those of `--also TARGET PLACE`; all of them differ. */
function placesToLoad({ also, publish }: Values, first: { readonly target: Target; readonly place: string }) {
  const toLoad = [first];
  for (const [name, place] of also) {
    const target = targetNamed('--also', name, TARGETS);
    if (target.isStdout?.(place) === true) {
      throw configError(`--also ${name} ${place} would write to stdout, which is for results: give a file.`);
    }
    if (toLoad.some((one) => one.target === target && resolve(one.place) === resolve(place))) {
      throw configError(`--also ${name} ${place} is given twice: each target needs a place of its own.`);
    }
    if (publish !== undefined && realPath(place) === realPath(publish)) {
      throw configError(`--also ${name} ${place} is the copy of --publish, which only its database may change.`);
    }
    toLoad.push({ target, place });
  }
  return toLoad;
}
