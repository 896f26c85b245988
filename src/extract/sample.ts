import { addDays, type Day } from '../base/days.ts';
import { configError, transientError } from '../base/errors.ts';
import type { ColumnScan } from '../cells/columns/column-scan.ts';
import type { SourceConfig } from '../config/source.ts';
import { fetchExport } from './download/day.ts';
import { discard, Run } from './download/run.ts';
import { lastDayOver } from './plan/calendar.ts';
import { planRun } from './plan/which-days.ts';
import { NO_PRIOR_LOADS } from './receipt.ts';
import type { ExtractDeps } from './session.ts';

/** Number of days whose cells show the types. */
const SAMPLED_DAYS = 3;

/** The days that `sampleColumns` asks for. One more is asked for while it is not known whether the last is included. */
export function sampledDays({ toDateInclusive }: Pick<SourceConfig, 'toDateInclusive'>, now: number) {
  const last = lastDayOver(now);
  const first = addDays(last, 1 - SAMPLED_DAYS - (toDateInclusive === 'auto' ? 1 : 0));
  return { first, last, to: toDateInclusive === 'false' ? addDays(last, 1) : last };
}

/**
 * The columns of the last days that are over, from all of their cells, by one export; by one of the last day if the
 * service cannot export so many at once. Throws a UserError.
 */
export async function sampleColumns(config: SourceConfig, deps: ExtractDeps): Promise<readonly ColumnScan[]> {
  const { first, last, to } = sampledDays(config, deps.clock.now());
  const run = await Run.open(
    planRun({ settings: config, from: first, prior: NO_PRIOR_LOADS, now: deps.clock.now() }),
    deps,
  );
  const request = async (from: Day) => {
    const answer = await fetchExport(run, { ...run.plan.filters, from, to });
    await discard(answer);
    return answer;
  };
  try {
    let answer = await request(first);
    if (['retry_or_split', 'invalid', 'gone'].includes(answer.kind)) answer = await request(last);
    if (answer.kind === 'checked') return answer.scan.columns;
    if (answer.emptyAs !== undefined) return [];
    const failure = answer.kind === 'config' ? configError : transientError;
    throw failure(`The service does not export ${first} to ${last}: ${answer.message}`);
  } finally {
    run.abort();
    await run.folder.remove();
  }
}
