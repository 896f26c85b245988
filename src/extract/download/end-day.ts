import { addDays, type Day } from '../../base/days.ts';
import { HOUR_MS } from '../../base/durations.ts';
import { CORRECTION_DATETIME, SERVER_DATETIME } from '../../cells/columns/groups.ts';
import type { ColumnScan } from '../../cells/columns/scan.ts';
import { type DayRequest, discard, type Exported, fetchExport, rowCount } from './export.ts';
import type { Run } from './run.ts';

const EVENT_DATETIME = 'df_event_datetime';
const DATETIMES = new Set([SERVER_DATETIME, CORRECTION_DATETIME, EVENT_DATETIME]);

/** An answer for a day, with the `to_date` that was sent. */
export interface DayAnswer {
  readonly to: Day;
  readonly answer: Exported;
}

/**
 * Finds out whether an export includes its `to_date`, with three exports of one day D at most. Returns the download of D
 * under the rule that holds then.
 *
 *   [D,D] spans an hour                                                       the end is included
 *   [D,D+1] has rows, [D,D] and [D+1,D+1] were answered without any           the end is excluded
 *   anything else; a refusal is no observation                                nothing is known yet
 */
export async function findEndDay(run: Run, day: Day, effort: DayRequest['effort']): Promise<DayAnswer> {
  run.facts.isEndDayAsked = true;
  const request = (from: Day, to: Day) => fetchExport(run, { ...run.plan.filters, from, to, effort });
  const next = addDays(day, 1);
  const single = await request(day, day);
  if (single.kind === 'gone' || single.kind === 'failed') return { to: day, answer: single };
  if (single.kind === 'file' && canProve(run) && spansAnHour(single.scan.columns)) {
    run.facts.recordEndDay(true, day);
    return { to: day, answer: single };
  }
  const both = await request(day, next);
  if (hasNoRows(single) && both.kind === 'file' && rowCount([both]) > 0) {
    const nextAlone = await request(next, next);
    if (hasNoRows(nextAlone)) run.facts.recordEndDay(false, day);
    await discard(nextAlone);
  }
  // An old answer holds until another is proved: the day is downloaded as its neighbours are.
  const isIncluded = run.facts.toDateInclusive === true;
  await discard(isIncluded ? both : single);
  return isIncluded ? { to: day, answer: single } : { to: next, answer: both };
}

/** True for an answer without any row; false for a refusal. */
const hasNoRows = (answer: Exported): boolean =>
  answer.kind === 'empty' || (answer.kind === 'file' && rowCount([answer]) === 0);

/** False if `df_event_datetime` is dropped, the only such column that can be: the service may select by it. */
const canProve = ({ deps }: Run): boolean => deps.edits?.drop.has(EVENT_DATETIME) !== true;

/**
 * True if the datetime system columns with values, one at least, all have rows an hour apart. One column is not enough:
 * a service that compares one of them with midnight returns only the rows of that instant.
 */
function spansAnHour(columns: readonly ColumnScan[]): boolean {
  const filled = columns.filter(({ source, type }) => DATETIMES.has(source) && type !== undefined);
  return filled.length > 0 && filled.every(({ first, last }) => msOf(last) - msOf(first) >= HOUR_MS);
}

/** Milliseconds of an ISO text without a zone; NaN for undefined, for which no comparison is true. */
const msOf = (text: string | undefined): number =>
  text === undefined ? Number.NaN : Date.parse(`${text.slice(0, 23)}Z`);
