import { addDays, type Day, daysBetween, daysOf, earlierOf } from '../../base/days.ts';
import { configError } from '../../base/errors.ts';
import { type DayRange, earliestToday, lengthOf, toDateFor, todayUtc } from '../plan/days.ts';
import { type DaysResult, type Download, type NoDownload, noDownload } from './download.ts';
import { earlierClock, isSurelyGone, type Run } from './run.ts';
import { fetchDays } from './split.ts';

/**
 * Downloads consecutive days, with fewer days an export if one is too large. A form of request that is not proved to contain
 * its end (S62) asks for one day more. `assumed`: the end of several days is taken as contained, and the caller proves it.
 */
export async function fetchRange(run: Run, days: DayRange, assumed?: true): Promise<DaysResult[]> {
  const { inclusive: single, rangesInclusive } = run.known;
  const inclusive = (days.first === days.last ? single : (assumed ?? rangesInclusive)) === true;
  if (!inclusive && rangesInclusive !== false && run.plan.appends) {
    return [noDownload(days, 'later', 'whether an export contains its to_date is not proved')];
  }
  const wanted = toDateFor(days, inclusive);
  const to = run.known.latestToDate === undefined ? wanted : earlierOf(wanted, run.known.latestToDate);
  if (to < leastToDate(days, inclusive)) return [noDownload(days, 'invalid', 'it has not begun at the service')];
  const range = new RangeFetch(run, days, inclusive, assumed);
  return range.result(to, await range.fetch(to));
}

/** The smallest `to_date` with which the first day is still asked for. */
const leastToDate = (days: DayRange, inclusive: boolean): Day => (inclusive ? days.first : addDays(days.first, 1));

class RangeFetch {
  readonly #run: Run;
  readonly #days: DayRange;
  readonly #inclusive: boolean;
  readonly #assumed: true | undefined;

  constructor(run: Run, days: DayRange, inclusive: boolean, assumed: true | undefined) {
    this.#run = run;
    this.#days = days;
    this.#inclusive = inclusive;
    this.#assumed = assumed;
  }

  fetch(to: Day): Promise<Download | NoDownload<'gone' | 'invalid' | 'too_big'>> {
    const { first, last } = this.#days;
    return fetchDays(this.#run, { from: first, to, through: last, splitByNames: !this.#canBeHalved });
  }

  /**
   * Fewer days are asked for where that is possible. A single day, while that is not proved to be whole, would share its end
   * with the next window; two days that are known to contain their end share nothing.
   */
  get #canBeHalved(): boolean {
    const { plan, known } = this.#run;
    const sharesDays = plan.proveFirst && known.inclusive !== true && known.rangesInclusive === true;
    return lengthOf(this.#days) >= (sharesDays ? 4 : 2);
  }

  /** The results for the answer to a request that ended at `to`, after any further requests. */
  async result(to: Day, download: Download | NoDownload<'gone' | 'invalid' | 'too_big'>): Promise<DaysResult[]> {
    switch (download.kind) {
      case 'rows': {
        if (download.split === 'names' && lengthOf(this.#days) > 1) this.#lowerWindowDays();
        const last = this.#inclusive ? to : addDays(to, -1);
        return [{ ...download, days: this.#days, contains: earlierOf(this.#days.last, last) }];
      }
      case 'gone':
        return this.#withoutFirst(download.message);
      case 'too_big':
        return this.#halves();
      case 'invalid':
        return this.#lowered(to, download.message);
    }
  }

  /** The service no longer has the first day: requests the others, without those that are known to be gone as well. */
  async #withoutFirst(message: string): Promise<DaysResult[]> {
    const { first, last } = this.#days;
    const gone = daysOf(first, last).filter((day) => day === first || isSurelyGone(this.#run, day));
    const results = gone.map((day) => noDownload({ first: day, last: day }, 'gone', message));
    const next = addDays(first, gone.length);
    return next > last ? results : [...results, ...(await fetchRange(this.#run, { first: next, last }, this.#assumed))];
  }

  async #halves(): Promise<DaysResult[]> {
    const { first, last } = this.#days;
    const middle = addDays(first, this.#lowerWindowDays() - 1);
    return [
      ...(await fetchRange(this.#run, { first, last: middle }, this.#assumed)),
      ...(await fetchRange(this.#run, { first: addDays(middle, 1), last }, this.#assumed)),
    ];
  }

  /** Later windows have half as many days as this one, or fewer. Returns how many that are. */
  #lowerWindowDays(): number {
    const { known } = this.#run;
    const count = Math.ceil(lengthOf(this.#days) / 2);
    known.maxWindowDays = Math.min(count, known.maxWindowDays ?? count);
    return count;
  }

  /** A 400 for a range that may end in the future: requested again with an earlier end (S3). */
  async #lowered(to: Day, message: string): Promise<DaysResult[]> {
    const run = this.#run;
    const now = earlierClock(run);
    const limit = earlierEnds(run.deps.clock.now(), now).find((day) => day < to);
    if (limit === undefined) throw refused(this.#days, message);
    if (limit < leastToDate(this.#days, this.#inclusive)) {
      // All days of the range are not over in every time zone: a later run reads them.
      if (daysBetween(this.#days.first, earliestToday(now)) > 0) throw refused(this.#days, message);
      return [noDownload(this.#days, 'invalid', message)];
    }
    const download = await this.fetch(limit);
    if (download.kind === 'rows') run.known.latestToDate = limit;
    return this.result(limit, download);
  }
}

/**
 * Ends to request one after the other while the service takes them for days in the future, by either clock: through today in
 * UTC, which has tomorrow as `to_date` where that is not included, then in UTC-12.
 */
const earlierEnds = (machine: number, earlier: number): Day[] =>
  [machine, earlier].flatMap((now) => [addDays(todayUtc(now), 1), todayUtc(now), earliestToday(now)]);

export const refused = (days: DayRange, message: string) =>
  configError(`The service refuses the export of ${days.first}: ${message}`, { where: { window: days.first } });
