import { addDays, type Day, daysOf, earlierOf } from '../../base/days.ts';
import { configError } from '../../base/errors.ts';
import type { WaitBudget } from '../../service/export/retry.ts';
import { type DayRange, earliestToday, lengthOf, only, toDateFor, todayUtc } from '../plan/days.ts';
import { type DaysResult, noDownload } from './download.ts';
import { type Extraction, waitBudgetOf } from './extraction.ts';
import { fetchDays } from './split.ts';

interface RangeOptions {
  /** Several days are assumed to contain their end, and the caller proves it. */
  readonly assumesEnd?: boolean;
  /** The budget of the export that was too large, which these exports replace. */
  readonly waitBudget?: WaitBudget;
}

/**
 * Downloads consecutive days, with fewer days in each export if one is too large. A form of request that is not proved
 * to contain its end (S62) asks for one day more.
 */
export async function fetchRange(
  extraction: Extraction,
  days: DayRange,
  { assumesEnd = false, waitBudget = waitBudgetOf(extraction, days.first) }: RangeOptions = {},
): Promise<DaysResult[]> {
  const { facts, plan } = extraction;
  const { first, last } = days;
  const inclusive =
    first === last ? facts.known.singleDaysInclusive === true : assumesEnd || facts.known.rangesInclusive === true;
  if (!inclusive && facts.known.rangesInclusive !== false && plan.appends) {
    return [noDownload(days, 'later', 'whether an export contains its to_date is not proved')];
  }
  /** The smallest `to_date` with which the first day is still requested. */
  const least = inclusive ? first : addDays(first, 1);
  const wanted = toDateFor(days, inclusive);
  let to = facts.known.latestToDate === undefined ? wanted : earlierOf(wanted, facts.known.latestToDate);
  if (to < least) return [noDownload(days, 'invalid', 'it has not begun at the service')];
  for (let isLowered = false; ; isLowered = true) {
    const splitByNames = !canBeHalved(extraction, days);
    const download = await fetchDays(extraction, { from: first, to, through: last, splitByNames }, waitBudget);
    switch (download.kind) {
      case 'rows':
        if (isLowered) facts.limitToDate(to);
        if (download.split === 'names' && first !== last) facts.halveWindowDays(days);
        return [{ ...download, days, contains: earlierOf(last, inclusive ? to : addDays(to, -1)) }];
      case 'gone': {
        // The remaining days are requested again, without those that are known to be gone as well.
        const gone = daysOf(first, last).filter((day) => day === first || facts.isSurelyGone(day));
        const next = addDays(first, gone.length);
        const results = gone.map((day) => noDownload(only(day), 'gone', download.message));
        return next > last
          ? results
          : [...results, ...(await fetchRange(extraction, { first: next, last }, { assumesEnd, waitBudget }))];
      }
      case 'too_big': {
        const middle = addDays(first, facts.halveWindowDays(days) - 1);
        return [
          ...(await fetchRange(extraction, { first, last: middle }, { assumesEnd, waitBudget })),
          ...(await fetchRange(extraction, { first: addDays(middle, 1), last }, { assumesEnd, waitBudget })),
        ];
      }
      case 'invalid': {
        // The range may end in the future: it is requested again with an earlier end (S3).
        const now = facts.earlierTime();
        const lower = earlierEnds(extraction.deps.clock.now(), now).find((day) => day < to);
        if (lower === undefined || lower < least) {
          // Days that are not over in every time zone are left to a later run.
          if (first >= earliestToday(now)) return [noDownload(days, 'invalid', download.message)];
          throw refusalError(days, download.message);
        }
        to = lower;
      }
    }
  }
}

/** True if fewer days can be requested, and would not share a day with the next window. */
function canBeHalved({ plan, facts }: Extraction, days: DayRange): boolean {
  const sharesDays =
    plan.proveFirst && facts.known.singleDaysInclusive !== true && facts.known.rangesInclusive === true;
  return lengthOf(days) >= (sharesDays ? 4 : 2);
}

/**
 * Earlier values of `to_date`, to be requested one after the other while the service refuses days in the future, by
 * either clock: first through today in UTC (tomorrow is its `to_date` if that is not included), then through today in
 * UTC-12.
 */
const earlierEnds = (machine: number, earlier: number): Day[] =>
  [machine, earlier].flatMap((now) => [addDays(todayUtc(now), 1), todayUtc(now), earliestToday(now)]);

export const refusalError = (days: DayRange, message: string) =>
  configError(`The service refuses the export of ${days.first}: ${message}`, { where: { window: days.first } });
