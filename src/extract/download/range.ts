import { addDays, type Day, daysOf, earlierOf } from '../../base/days.ts';
import { configError } from '../../base/errors.ts';
import { type DayRange, earliestToday, lengthOf, only, toDateFor, todayUtc } from '../plan/days.ts';
import { type DaysResult, noDownload } from './download.ts';
import type { Run } from './run.ts';
import { fetchDays } from './split.ts';

interface RangeOptions {
  /** Several days are assumed to contain their end, and the caller proves it. */
  readonly assumesEnd?: boolean;
}

/**
 * Downloads consecutive days, with fewer days in each export if one is too large. A form of request that is not proved
 * to contain its end (S62) asks for one day more.
 */
export async function fetchRange(
  run: Run,
  days: DayRange,
  { assumesEnd = false }: RangeOptions = {},
): Promise<DaysResult[]> {
  const { cache, plan } = run;
  const { first, last } = days;
  const inclusive = first === last ? cache.inclusive === true : assumesEnd || cache.rangesInclusive === true;
  if (!inclusive && cache.rangesInclusive !== false && plan.appends) {
    return [noDownload(days, 'later', 'whether an export contains its to_date is not proved')];
  }
  /** The smallest `to_date` with which the first day is still requested. */
  const least = inclusive ? first : addDays(first, 1);
  const wanted = toDateFor(days, inclusive);
  let to = cache.latestToDate === undefined ? wanted : earlierOf(wanted, cache.latestToDate);
  if (to < least) return [noDownload(days, 'invalid', 'it has not begun at the service')];
  for (let isLowered = false; ; isLowered = true) {
    const splitByNames = !canBeHalved(run, days);
    const download = await fetchDays(run, { from: first, to, through: last, splitByNames });
    switch (download.kind) {
      case 'rows':
        if (isLowered) cache.limitToDate(to);
        if (download.split === 'names' && first !== last) cache.limitWindowDays(days);
        return [{ ...download, days, contains: earlierOf(last, inclusive ? to : addDays(to, -1)) }];
      case 'gone': {
        // The remaining days are requested again, without those that are known to be gone as well.
        const gone = daysOf(first, last).filter((day) => day === first || cache.isSurelyGone(day));
        const next = addDays(first, gone.length);
        const results = gone.map((day) => noDownload(only(day), 'gone', download.message));
        return next > last ? results : [...results, ...(await fetchRange(run, { first: next, last }, { assumesEnd }))];
      }
      case 'too_big': {
        const middle = addDays(first, cache.limitWindowDays(days) - 1);
        return [
          ...(await fetchRange(run, { first, last: middle }, { assumesEnd })),
          ...(await fetchRange(run, { first: addDays(middle, 1), last }, { assumesEnd })),
        ];
      }
      case 'invalid': {
        // The range may end in the future: it is requested again with an earlier end (S3).
        const now = cache.earlierTime();
        const lower = earlierEnds(run.deps.clock.now(), now).find((day) => day < to);
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
function canBeHalved({ plan, cache }: Run, days: DayRange): boolean {
  const sharesDays = plan.proveFirst && cache.inclusive !== true && cache.rangesInclusive === true;
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
