import { formatDuration } from '../../base/durations.ts';
import { EXIT } from '../../base/errors.ts';
import type { SourceConfig } from '../../config/source.ts';
import type { Plan } from '../../extract/plan/plan.ts';
import { openQuota } from '../../extract/session.ts';
import { exportsNeeded } from '../../extract/summary.ts';
import { type Memory, NO_MEMORY } from '../../sinks/memory.ts';
import { TARGETS } from '../../sinks/targets.ts';
import { flag, type Handler, type Options, text } from '../command.ts';
import { explainSourceConfig, type Setting } from '../configuration.ts';
import { type Context, dayOption } from '../context.ts';
import { planLocal } from '../sync/local-plan.ts';
import { tableLines } from '../table.ts';

const MOST_SHOWN = 40;

export const plan: Handler = async (options, context) => {
  const { config, settings } = explainSourceConfig(text(options, 'config'), context);
  const span = {
    from: dayOption('from', options.from),
    to: dayOption('to', options.to),
    fullRefresh: flag(options, 'fullRefresh'),
  };
  const memory = await recall(options, config, context);
  const now = context.clock.now();
  const made = planLocal(config, memory, span, now);
  const quota = openQuota(config, context);
  const needed = exportsNeeded(made);
  const forecast = quota.forecast(needed.most);
  await quota.close();
  for (const { event, message } of made.warnings) context.logger.warn(event, message);
  const told = { made, needed, forecast, now, settings };
  if (flag(options, 'json')) context.terminal.result(JSON.stringify(asJson(told)));
  else for (const line of asLines(told)) context.terminal.result(line);
  return EXIT.done;
};

interface Told {
  readonly made: Plan;
  readonly needed: { readonly least: number; readonly most: number };
  readonly forecast: { readonly startableNow: number; readonly left: number; readonly earliestEnd: number };
  readonly now: number;
  readonly settings: Readonly<Record<string, Setting>>;
}

/** What the place remembers that an option names by its target; without one a first run is planned. */
async function recall(
  options: Options,
  config: SourceConfig,
  { env, clock, logger, signal }: Context,
): Promise<Memory> {
  for (const target of TARGETS) {
    const place = text(options, target.name);
    if (place !== undefined && target.recall) return target.recall(place, { ...config, env, clock, logger, signal });
  }
  return NO_MEMORY;
}

function asJson({ made, needed, forecast, settings }: Told) {
  return {
    v: 1,
    from_date: made.firstDay ?? null,
    to_date: made.lastDay ?? null,
    windows: made.windows.map(({ first, last, from, to }) => ({ first, last, from_date: from, to_date: to })),
    exports_least: needed.least,
    exports_most: needed.most,
    exports_startable_now: forecast.startableNow,
    exports_left: forecast.left,
    earliest_end: new Date(forecast.earliestEnd).toISOString(),
    to_date_inclusive: made.inclusive ?? null,
    gaps: made.likelyGaps,
    cursor: made.cursor,
    configuration: settings,
  };
}

function asLines({ made, needed, forecast, now }: Told): string[] {
  if (made.firstDay === undefined) return [`Nothing to read: the cursor stands at ${made.cursor}.`];
  const rows = made.windows.map(({ first, last }, i) => [
    `${i + 1}`,
    first,
    last,
    last < made.cursor ? 'read again' : 'new',
  ]);
  const shown =
    rows.length > MOST_SHOWN ? [...rows.slice(0, MOST_SHOWN - 1), ['…', '…', '…', `${rows.length} in all`]] : rows;
  const wait = Math.max(0, forecast.earliestEnd - now);
  const exports = needed.least === needed.most ? `${needed.least}` : `${needed.least} to ${needed.most}`;
  return [
    ...tableLines(['window', 'first day', 'last day', ''], shown),
    '',
    `  ${made.windows.length} windows, ${exports} exports; ${forecast.left} are left of this hour's, ${forecast.startableNow} may start now.`,
    wait === 0
      ? '  The quota holds nothing up.'
      : `  The quota lets the last one start in ${formatDuration(wait)} at the earliest.`,
    made.inclusive === undefined
      ? '  Whether to_date is included is not known yet: the first days of data will prove it.'
      : `  to_date is ${made.inclusive ? '' : 'not '}included.`,
  ];
}
