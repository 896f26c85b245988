import { addDays, type Day, daysOf, earlierOf } from '../../base/days.ts';
import { configError } from '../../base/errors.ts';
import type { WaitBudget } from '../../service/export/retry.ts';
import { type DayRange, earliestToday, lengthOf, only, toDateFor, todayUtc } from '../plan/days.ts';
import { nameDays } from '../plan/gaps.ts';
import { type DaysResult, noDownload } from './download.ts';
import { discard, type Extraction, waitBudgetOf } from './extraction.ts';
import { fetchDays } from './split.ts';

interface RangeOptions {
  /** Several days are assumed to contain their end, and the caller proves it. */
  readonly assumesEnd?: boolean;
  /** The budget of the export that was too large, which these exports replace. */
  readonly waitBudget?: WaitBudget;
}

/**
 * Downloads consecutive days, with fewer days in each export if one is too large. A form of request that is not proved
 * to contain its end asks for one day more.
 */
export async function fetchRange(
  extraction: Extraction,
  days: DayRange,
  { assumesEnd = false, waitBudget = waitBudgetOf(extraction, days.first) }: RangeOptions = {},
): Promise<DaysResult[]> {
  const options = { assumesEnd, waitBudget };
  const { facts, plan } = extraction;
  const { first, last } = days;
  const inclusive =
    first === last ? facts.known.singleDaysInclusive === true : assumesEnd || facts.known.rangesInclusive === true;
  if (!inclusive && facts.known.rangesInclusive !== false && plan.appends) {
    return [noDownload(days, 'later', 'whether an export contains its to_date is not proved')];
  }
  /** The smallest `to_date` with which the first day is still requested. */
  const least = inclusive ? first : addDays(first, 1);
  /** The `to_date` of a request for the first day alone. */
  const leastAlone = facts.known.singleDaysInclusive === true ? first : addDays(first, 1);
  const wanted = toDateFor(days, inclusive);
  let to = facts.known.latestToDate === undefined ? wanted : earlierOf(wanted, facts.known.latestToDate);
  if (to < least) return [noDownload(days, 'invalid', 'it has not begun at the service')];
  for (let isLowered = false; ; isLowered = true) {
    const halvable = canBeHalved(extraction, days);
    const request = { from: first, to, through: last, splitByNames: !halvable };
    const download = await fetchDays(extraction, request, waitBudget);
    switch (download.kind) {
      case 'rows':
        if (isLowered) facts.limitToDate(to);
        if (download.split === 'names' && first !== last) facts.halveWindowDays(days);
        return [{ ...download, days, contains: earlierOf(last, inclusive ? to : addDays(to, -1)) }];
      case 'gone': {
        if (to > leastAlone && (await isExported(extraction, first, leastAlone, waitBudget))) {
          if (!halvable) throw refusalError(days, download.message);
          return fetchHalves(extraction, days, facts.halveWindowDays(days), options);
        }
        // The remaining days are requested again, without those that are known to be gone as well.
        const gone = daysOf(first, last).filter((day) => day === first || facts.isSurelyGone(day));
        const next = addDays(first, gone.length);
        const results = gone.map((day) => noDownload(only(day), 'gone', download.message));
        return next > last ? results : [...results, ...(await fetchRange(extraction, { first: next, last }, options))];
      }
      case 'too_big':
        return fetchHalves(extraction, days, facts.halveWindowDays(days), options);
      case 'invalid': {
        // The range may end in the future: it is requested again with an earlier end.
        const now = facts.earlierTime();
        const lower = earlierEnds(extraction.deps.clock.now(), now).find((day) => day < to);
        if (lower === undefined || lower < least) {
          // The service may have refused the number of days, and not one of them.
          if (halvable && to > leastAlone) {
            const isOver = wanted <= earliestToday(now);
            const count = isOver ? facts.halveWindowDays(days) : Math.ceil(lengthOf(days) / 2);
            return fetchHalves(extraction, days, count, options);
          }
          // Days that are not over in every time zone are left to a later run.
          if (first >= earliestToday(now)) return [noDownload(days, 'invalid', download.message)];
          throw refusalError(days, download.message);
        }
        to = lower;
      }
    }
  }
}

/** Downloads the first `count` of the days, and then the others. */
async function fetchHalves(
  extraction: Extraction,
  { first, last }: DayRange,
  count: number,
  options: RangeOptions,
): Promise<DaysResult[]> {
  const middle = addDays(first, count - 1);
  return [
    ...(await fetchRange(extraction, { first, last: middle }, options)),
    ...(await fetchRange(extraction, { first: addDays(middle, 1), last }, options)),
  ];
}

/**
 * True if the service exports a day without the days after it, so that it had refused the number of days. It is not
 * asked about a day that is older than the configured history.
 */
async function isExported(extraction: Extraction, day: Day, to: Day, waitBudget: WaitBudget): Promise<boolean> {
  if (!extraction.facts.isInHistory(day)) return false;
  const alone = await fetchDays(extraction, { from: day, to, through: day, splitByNames: false }, waitBudget);
  await discard(extraction, alone);
  return alone.kind !== 'gone';
}

/** True if fewer days can be requested, and would not share a day with the next window. */
function canBeHalved({ plan, facts }: Extraction, days: DayRange): boolean {
  const sharesDays =
    plan.proveFirst && facts.known.singleDaysInclusive !== true && facts.known.rangesInclusive === true;
  return lengthOf(days) >= (sharesDays ? 4 : 2);
}

/**
 * Earlier values of `to_date`, which are requested one after the other while the service refuses days in the future by
 * either clock. The first ends with today in UTC (tomorrow is its `to_date` if the end is not included), the next with
 * today in UTC-12.
 */
const earlierEnds = (machine: number, earlier: number): Day[] =>
  [machine, earlier].flatMap((now) => [addDays(todayUtc(now), 1), todayUtc(now), earliestToday(now)]);

export const refusalError = ({ first, last }: DayRange, message: string) =>
  configError(`The service refuses the export of ${nameDays(daysOf(first, last))}: ${message}`, {
    where: { window: first },
  });
