import { resolve } from 'node:path';
import { configError } from '../../base/errors.ts';
import { DEFAULT_HISTORY_DAYS } from '../../config/source.ts';
import type { Target } from '../../sinks/target.ts';
import { TARGETS } from '../../sinks/targets.ts';
import { isTableName, TABLES } from '../../table/columns.ts';
import {
  argument,
  CONFIG_OPTION,
  command,
  DAY_OPTIONS,
  duration,
  flag,
  parsed,
  places,
  required,
  text,
  type ValuesOf,
  withDefault,
} from '../command.ts';
import { loadSourceConfig, sourceEnvironmentHelp } from '../configuration.ts';
import type { Context } from '../context.ts';
import { type Outcome, outcomeOf } from '../outcome.ts';
import { type Notification, notificationOf, notify } from '../run/notify.ts';
import { sync, syncAll } from '../run/run.ts';
import { describeSummary, EMPTY_SUMMARY, giveSummary, type Summary } from '../run/summary.ts';
import { pinnedTypes } from '../schema-file.ts';

const tables = parsed(
  `With commas: ${TABLES.join(', ')}; a DuckDB file has all of them, two as views`,
  `names of ${TABLES.join(', ')} with commas`,
  (names) => {
    const given = names.split(',').map((name) => name.trim());
    return given.every(isTableName) ? given : undefined;
  },
);

const optionsOf = ({ place, publishes, hasData }: Target) => ({
  place: argument(place.name, required(text(place.describe))),
  config: CONFIG_OPTION,
  ...DAY_OPTIONS,
  also: places('TARGET PLACE: a further target of the same exports, with its own cursor; may be repeated'),
  tables: withDefault('events', tables),
  schema: text('Pinned schema, as discover prints it'),
  maxWait: duration('Longest wait for the quota (30s, 20m, 1h); longer: commit what is done, exit 3'),
  json: flag('The summary as JSON on the last line of stdout'),
  xcom: text('File for the same JSON, on failure too'),
  notify: text(
    'Address to notify of failures, new or changed columns, rescued cells and days soon lost; or DFINERY_NOTIFY_URL',
  ),
  notifyAlways: flag('Notify of every run'),
  ...(hasData && {
    data: text('Folder or s3://BUCKET/PREFIX of the data, fixed by the first run; by default the place with .files'),
  }),
  ...(publishes && {
    publish: text('A checked copy for readers at this path, replaced after each run that committed something'),
  }),
});

type Values = ValuesOf<ReturnType<typeof optionsOf>>;

/** `sync TARGET PLACE`. */
export const syncInto = (target: Target) =>
  command({
    options: optionsOf(target),
    epilogue: sourceEnvironmentHelp,
    async run(values, outer) {
      const context = contextFor(target, values, outer);
      const report = { summary: EMPTY_SUMMARY };
      let historyDays = DEFAULT_HISTORY_DAYS;
      let notification: Notification | undefined;
      let failure: Outcome | undefined;
      try {
        notification = notificationFor(values, context);
        const config = loadSourceConfig(values.config, context);
        historyDays = config.historyDays;
        const { place, maxWait: maxWaitMs, publish, data } = values;
        const { clock, logger, signal, env, terminal } = context;
        const stdout = terminal.stdout ?? process.stdout;
        const pinned = pinnedTypes(values.schema);
        const open = { ...config, data, tables: values.tables, stdout, pinned, env, clock, logger, signal };
        const run = { config, days: values, maxWaitMs, publish, report };
        const targets = placesOf(values.also, { target, place }).map((one, i) => ({
          target: one.target.name,
          place: one.place,
          report: { summary: EMPTY_SUMMARY },
          open: () => one.target.open(one.place, i === 0 ? { ...open, publish } : { ...open, data: undefined }),
        }));
        if (targets.length > 1) await syncAll(run, targets, context);
        else await sync(run, targets[0].open, context);
      } catch (error) {
        failure = outcomeOf(error, context.signal);
      }
      const summary = ended(report.summary, failure, context);
      const isShown = failure === undefined || summary.windows > 0 || summary.also.length > 0;
      if (isShown) context.logger.info('run.summary', describeSummary(summary, shownName(target, values)));
      failure?.log(context.logger);
      return finish(target, values, context, { summary, historyDays, notification });
    },
    async failed(failure, values, outer) {
      const context = contextFor(target, values, outer);
      let notification: Notification | undefined;
      try {
        notification = notificationFor(values, context);
      } catch {
        // Another thing that is wrong; the first was told.
      }
      const summary = ended(EMPTY_SUMMARY, failure, context);
      await finish(target, values, context, { summary, historyDays: DEFAULT_HISTORY_DAYS, notification });
    },
  });

const ended = (summary: Summary, failure: Outcome | undefined, { redactor }: Context): Summary =>
  failure ? { ...summary, exit: failure.exit, error: redactor.mask(failure.message) } : summary;

const isStdout = (target: Target, { place = '' }: Partial<Values>) => target.isStdout?.(place) === true;

/** What was loaded, for people. */
const shownName = (target: Target, values: Partial<Values>) =>
  isStdout(target, values) ? 'the stream' : (values.place ?? '');

/** Where stdout carries data, results go to stderr. */
function contextFor(target: Target, values: Partial<Values>, context: Context): Context {
  if (!isStdout(target, values)) return context;
  const { terminal } = context;
  return { ...context, terminal: { ...terminal, result: (line) => terminal.result(line, 'stderr') } };
}

function notificationFor({ notify: url, notifyAlways }: Partial<Values>, { env, redactor }: Context) {
  const notification = notificationOf(url, notifyAlways === true, env);
  redactor.add(notification?.url);
  return notification;
}

interface Result {
  readonly summary: Summary;
  readonly historyDays: number;
  readonly notification: Notification | undefined;
}

/** Gives the summary to those who asked for it: a file, an address, stdout. */
function finish(
  target: Target,
  values: Partial<Values>,
  context: Context,
  { summary, historyDays, notification }: Result,
) {
  const names = {
    command: `sync ${target.name} ${values.place ?? ''}`,
    target: shownName(target, values),
    historyDays,
  };
  return giveSummary(summary, { json: values.json === true, xcom: values.xcom }, context, async (final) => {
    if (notification !== undefined) await notify(notification, { summary: final, ...names }, context);
  });
}

interface Place {
  readonly target: Target;
  readonly place: string;
}

/** The places to load: the first, and those of `--also TARGET PLACE`, each another than those before it. */
function placesOf(also: Values['also'], first: Place): Place[] {
  const all = [first];
  for (const [name, place] of also) {
    const target = TARGETS.find((one) => one.name === name);
    if (target === undefined) {
      const names = TARGETS.map((one) => one.name).join(', ');
      throw configError(
        `--also names ${JSON.stringify(`${name} ${place}`)}, wanted a target (${names}) and its place.`,
      );
    }
    if (target.isStdout?.(place) === true) {
      throw configError(`--also ${name} ${place} would write to stdout, which is for results: give a file.`);
    }
    if (all.some((one) => one.target === target && resolve(one.place) === resolve(place))) {
      throw configError(`--also ${name} ${place} is given twice: each target needs a place of its own.`);
    }
    all.push({ target, place });
  }
  return all;
}
