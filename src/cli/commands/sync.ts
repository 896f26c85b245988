import { resolve } from 'node:path';
import type { Argv } from 'yargs';
import { configError } from '../../base/errors.ts';
import { refuseUnknownNames } from '../../config/environment.ts';
import { DEFAULT_HISTORY_DAYS } from '../../config/source.ts';
import type { Target } from '../../sinks/target.ts';
import { TARGETS } from '../../sinks/targets.ts';
import { isTableName, TABLES, type TableName } from '../../table/columns.ts';
import {
  CONFIG_OPTION,
  type Command,
  dayOptions,
  durationOption,
  flag,
  placeOf,
  refuseEmpty,
  text,
  wantedDays,
} from '../command.ts';
import { loadSourceConfig, sourceEnvironmentHelp } from '../configuration.ts';
import type { Context } from '../context.ts';
import { pinnedTypes } from '../schema-file.ts';
import { type Notification, notificationOf, notify } from '../sync/notify.ts';
import { type Summary, withSummary } from '../sync/summary.ts';
import { sync, syncAll } from '../sync/sync.ts';

/** `sync TARGET PLACE`. */
export function syncInto(target: Target): Command {
  return {
    refusesUnknownNames: true,
    options: (yargs) => syncOptions(target, yargs),
    async run(options, outer) {
      // An empty option is refused below, where the summary tells of it.
      const given = (name: string) => (options[name] === '' ? undefined : text(options, name));
      const place = given(target.place.name) ?? '';
      const isStdout = target.isStdout?.(place) === true;
      const context = isStdout ? withResultsOnStderr(outer) : outer;
      const name = isStdout ? 'the stream' : place;
      let notification: Notification | undefined;
      // Used in the notification if the configuration cannot be read.
      let historyDays = DEFAULT_HISTORY_DAYS;
      const send = async (summary: Summary) => {
        const run = { summary, command: `sync ${target.name} ${place}`, target: name, historyDays };
        if (notification !== undefined) await notify(notification, run, context);
      };
      const output = { target: name, json: flag(options, 'json'), xcom: given('xcom'), send };
      return withSummary(output, context, async (report) => {
        placeOf(target, options);
        refuseEmpty(options);
        notification = notificationOf(text(options, 'notify'), flag(options, 'notifyAlways'), context.env);
        context.redactor.add(notification?.url);
        refuseUnknownNames(context.env);
        const days = wantedDays(options);
        const tables = tablesOf(text(options, 'tables') ?? 'events');
        const maxWaitMs = durationOption('max-wait', options.maxWait);
        const publish = text(options, 'publish');
        const config = loadSourceConfig(text(options, 'config'), context);
        historyDays = config.historyDays;
        const pinned = pinnedTypes(text(options, 'schema'));
        const { clock, logger, signal, env, terminal } = context;
        const stdout = terminal.stdout ?? process.stdout;
        const data = text(options, 'data');
        const open = { ...config, publish, data, tables, stdout, pinned, env, clock, logger, signal };
        const run = { config, days, maxWaitMs, publish, report };
        const further = alsoOf(options.also, { target, place });
        const targets = [{ target, place }, ...further].map((one, i) => ({
          target: one.target.name,
          place: one.place,
          open: () => one.target.open(one.place, i === 0 ? open : { ...open, publish: undefined, data: undefined }),
        }));
        if (further.length > 0) await syncAll(run, targets, context);
        else await sync(run, targets[0].open, context);
      });
    },
  };
}

/** stdout carries only data. */
const withResultsOnStderr = (context: Context): Context => ({
  ...context,
  terminal: { ...context.terminal, result: (line) => context.terminal.result(line, 'stderr') },
});

function syncOptions({ place, publishes, hasData }: Target, yargs: Argv): Argv {
  const own =
    hasData === true
      ? yargs.option('data', {
          type: 'string',
          describe:
            'Folder or s3://BUCKET/PREFIX of the data, fixed by the first run; by default the place with .files',
        })
      : yargs;
  const placed = own
    .positional(place.name, { type: 'string', demandOption: true, describe: place.describe })
    .option('config', CONFIG_OPTION);
  const all = dayOptions(placed)
    .option('also', {
      type: 'string',
      array: true,
      nargs: 2,
      describe: 'TARGET PLACE: a further target of the same exports, with its own cursor; may be repeated',
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
    .option('notify-always', { type: 'boolean', default: false, describe: 'Notify of every run' })
    .epilogue(sourceEnvironmentHelp());
  if (publishes !== true) return all;
  return all.option('publish', {
    type: 'string',
    describe: 'A checked copy for readers at this path, replaced after each run that committed something',
  });
}

interface Place {
  readonly target: Target;
  readonly place: string;
}

/** The further targets of `--also TARGET PLACE`, each another place than those before it. */
function alsoOf(given: unknown, first: Place): Place[] {
  const words = Array.isArray(given) ? given.map(String) : [];
  const places = [first];
  for (let i = 0; i < words.length; i += 2) {
    const [name, place] = [words[i], words[i + 1]];
    const target = TARGETS.find((one) => one.name === name);
    if (target === undefined || place === undefined || place === '') {
      const names = TARGETS.map((one) => one.name).join(', ');
      throw configError(
        `--also names ${JSON.stringify([name, place].join(' ').trim())}, wanted a target (${names}) and its place.`,
      );
    }
    if (target.isStdout?.(place) === true) {
      throw configError(`--also ${name} ${place} would write to stdout, which is for results: give a file.`);
    }
    if (places.some((one) => one.target === target && resolve(one.place) === resolve(place))) {
      throw configError(`--also ${name} ${place} is given twice: each target needs a place of its own.`);
    }
    places.push({ target, place });
  }
  return places.slice(1);
}

/** The tables that `--tables` names. */
function tablesOf(given: string): TableName[] {
  return given.split(',').map((name) => {
    const clean = name.trim();
    if (isTableName(clean)) return clean;
    throw configError(`--tables names ${JSON.stringify(clean)}, wanted ${TABLES.join(', ')}.`);
  });
}
