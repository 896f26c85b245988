import type { Secret } from '../../base/secrets.ts';
import { DEFAULT_HISTORY_DAYS } from '../../config/source.ts';
import { TARGETS } from '../../targets/targets.ts';
import { type CommandResult, DAY_OPTIONS, defineCommand, duration, flag, text } from '../command.ts';
import { EXPORT_KEYS, openOptions, readConfiguration, requireKeys } from '../configuration.ts';
import type { Context } from '../context.ts';
import { pinnedTypes } from '../pinned-schema.ts';
import {
  configuredPlace,
  type NamedPlace,
  optionalPlaceOf,
  type PlaceWords,
  placeArguments,
} from '../place-arguments.ts';
import { EMPTY_SUMMARY, type Summary } from '../results.ts';
import { notify, notifyAddress } from '../run/notify.ts';
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
  docsPage: 'targets.md',
  async run(values, context) {
    const { config: incomplete, target, place } = configuredPlace('sync', values, TARGETS, context);
    if (values.dryRun) return await planSync({ target, place }, values, incomplete, context);
    const url = notifyAddress(values.notify, context);
    const config = requireKeys(incomplete, ...EXPORT_KEYS);
    const { from, to, fullRefresh, schema, maxWait: maxWaitMs } = values;
    const options = { ...openOptions(config, context), pinned: pinnedTypes(schema) };
    const run = { config, days: { from, to, fullRefresh }, maxWaitMs };
    const { summary, failure } = await runSync(run, () => target.open(place, options), context);
    const named = { target, place };
    if (failure === undefined || summary.days > 0)
      context.logger.info('run.summary', describeSummary(summary, shownPlace(named)));
    failure?.log(context.logger);
    return await notifyAndAnswer({ named, url, summary, historyDays: config.historyDays }, context);
  },
  async failed({ exit, message }, values, context) {
    const named = namedPlaceIfReadable(values, context);
    const summary = { ...EMPTY_SUMMARY, exit, error: context.redactor.mask(message) };
    let url: Secret | undefined;
    try {
      if (values.dryRun !== true) url = notifyAddress(values.notify, context);
    } catch {
      // The failure that is told came before that of the address, or is the same.
    }
    return await notifyAndAnswer({ named, url, summary, historyDays: DEFAULT_HISTORY_DAYS }, context);
  },
});

/** The place of a refused command line; undefined where the words and the configuration do not name it. */
function namedPlaceIfReadable(
  { config, ...words }: PlaceWords & { readonly config?: string | undefined },
  context: Context,
): NamedPlace | undefined {
  try {
    return optionalPlaceOf('sync', words, TARGETS, readConfiguration(config, context));
  } catch {
    return undefined;
  }
}

const isStdout = ({ target, place }: NamedPlace): boolean => target.isStdout?.(place) === true;

const shownPlace = (named: NamedPlace): string => (isStdout(named) ? 'the stream' : named.place);

/** A run that is over, or a command line that was refused, whose place may not be known. */
interface FinishedRun {
  readonly named: NamedPlace | undefined;
  /** The address to notify. */
  readonly url: Secret | undefined;
  readonly summary: Summary;
  readonly historyDays: number;
}

/** Notifies of a run. Its result goes to stderr where stdout carries the data. */
async function notifyAndAnswer(run: FinishedRun, context: Context): Promise<CommandResult> {
  const { named, url, summary, historyDays } = run;
  const command = named === undefined ? 'sync' : `sync ${named.target.name} ${named.place}`;
  const place = named === undefined ? 'any place' : shownPlace(named);
  if (url !== undefined) await notify(url, { summary, command, place, historyDays }, context);
  const stream = named !== undefined && isStdout(named) ? 'stderr' : 'stdout';
  return { result: summary, lines: [], exit: summary.exit, stream };
}
