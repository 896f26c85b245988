import { addDays, type Day } from '../../base/days.ts';
import type { ColumnScan } from '../../schema/scan.ts';
import { lastDayOver, todayUtc } from '../plan/calendar.ts';
import type { DayRange } from '../plan/day-ranges.ts';
import { dayRequest, fetchDays } from './days.ts';
import {
  type Download,
  type Downloaded,
  discard,
  type NotDownloaded,
  type RangeDownload,
  rowCount,
  sentAtOf,
  windowOf,
  withoutWindow,
} from './download.ts';
import { fetchRange, refused } from './range.ts';
import { earlierClock, type Run } from './run.ts';

/*
 * Whether an export contains its `to_date` (S2). For a day D, in this order, each export reused where it can be:
 *
 *   [D,D]              [D,D+1]    [D+1,D+1]       then                                     window of D
 *   a pair             -          -               inclusive, proved                        [D,D]
 *   no row, or a 400   no row     -               D is empty either way                    [D,D+1]
 *   no row, or a 400   rows       no row, a 400   exclusive, proved (D was over)           [D,D+1]
 *   no row, or a 400   rows       a pair          inclusive, proved                        [D,D+1]; settled: [D,D]
 *   rows, no pair      any        any             unproved: D+1 is asked the same way      [D,D+1]; settled: below
 *   D not over, rows   a 400      -               unproved: D+1 has not begun              [D,D], covering nothing
 *   D after today in UTC, a 400   -               unproved: D has not begun                none
 *
 * If [D-1,D] had no row, [D,D] has none either and is not requested (unless it may have to be handed on). Once a day that had
 * begun was refused on its own, a 400 no longer shows that D has not begun.
 *
 * A pair is two rows at least an hour apart in every datetime system column that has values. In whichever of them the
 * service selects, an end that is not included, or that means midnight (server BETWEEN 'D' AND 'D'), leaves at most an
 * instant of [D,D]; the columns that it does not select on may show hours all the same.
 * [D+1,D+1] is the first question of the next day anyway, so an inclusive service costs no export more than there are
 * windows, an exclusive one two more in all, and one that proves nothing two a day. While nothing is proved the days share
 * their boundary: [D,D+1] contains D under both readings. An exclusive end is believed only of a D that was over
 * everywhere when [D,D] was sent; else the rows of [D,D+1] may have come in between.
 *
 * Settled deliveries and full refreshes hand each row on once, so there D waits for [D+1,D+1]. If nothing is proved even
 * then, the counts decide: |[D,D+1]| <= |[D,D]| + |[D+1,D+1]| means that [D,D] is all of D under both readings.
 */

const PROOF_MS = 3_600_000;
const EVENT_DATETIME = 'df_event_datetime';
const PROOF_COLUMNS = new Set(['df_server_datetime', 'df_correction_datetime', EVENT_DATETIME]);

/** True when every datetime system column that has values, one at least, shows rows an hour or more apart. */
export function hasPair(columns: readonly ColumnScan[]): boolean {
  const filled = columns.filter(({ source, type }) => PROOF_COLUMNS.has(source) && type !== undefined);
  return filled.length > 0 && filled.every(isHourWide);
}

const isHourWide = ({ first, last }: ColumnScan): boolean =>
  first !== undefined && last !== undefined && msOf(last) - msOf(first) >= PROOF_MS;

/** Milliseconds of an ISO text without a zone; micros are cut. */
const msOf = (text: string): number => Date.parse(`${text.slice(0, 23)}Z`);

/** The download of [D,D], or that it is known to be empty from [D-1,D]. */
interface SingleDay {
  readonly day: Day;
  readonly download: Download;
  /** When it was requested (ms since 1970), by the earlier of the two clocks. */
  readonly askedAt: number;
}

/** Proves the rule, day by day, while it downloads the windows of these days. Used one day at a time, in order. */
export class EndRule {
  readonly #run: Run;
  /** [D+1,D+1], if it was already requested for D. */
  #ahead: SingleDay | undefined;
  /** The day before, when the next one may prove an exclusive end. */
  #maybeExclusive: Day | undefined;
  /** True once a day that had begun was refused on its own: a refusal then does not show that a day has not begun. */
  #refusesSingleDays = false;

  constructor(run: Run) {
    this.#run = run;
  }

  /** The window of one day while the rule is not proved. */
  async fetchDay(day: Day): Promise<RangeDownload[]> {
    const single = await this.#single(day);
    const { download } = single;
    if (download.kind === 'gone') return [withoutWindow(only(day), 'gone', download.message)];
    if (download.kind === 'invalid') {
      if (day <= todayUtc(this.#run.deps.clock.now())) this.#refusesSingleDays = true;
      else if (!this.#refusesSingleDays) return [withoutWindow(only(day), 'invalid', download.message)];
    }
    if (download.kind === 'rows' && provesInclusive(this.#run, download)) {
      this.#prove(true, day);
      return [windowOf(only(day), download, day)];
    }
    if (this.#maybeExclusive === addDays(day, -1) && isNone(download)) {
      await discard(this.#run, download);
      this.#prove(false, day);
      return fetchRange(this.#run, only(day), false);
    }
    this.#maybeExclusive = undefined;
    return this.#withNext(single);
  }

  /** A download requested ahead that is the window of `day` under the rule, which has been proved since. */
  takeAhead(day: Day): Downloaded | undefined {
    const ahead = this.#ahead;
    if (ahead?.day !== day || ahead.download.kind !== 'rows' || this.#run.known.inclusive !== true) return undefined;
    this.#ahead = undefined;
    return ahead.download;
  }

  async close(): Promise<void> {
    if (this.#ahead !== undefined) await discard(this.#run, this.#ahead.download);
    this.#ahead = undefined;
  }

  /** [D,D], requested now or ahead. */
  async #single(day: Day): Promise<SingleDay> {
    const ahead = this.#ahead;
    this.#ahead = undefined;
    if (ahead?.day === day) return ahead;
    if (ahead !== undefined) await discard(this.#run, ahead.download);
    const askedAt = earlierClock(this.#run);
    return { day, askedAt, download: await fetchDays(this.#run, dayRequest(day, day)) };
  }

  #prove(inclusive: boolean, day: Day): void {
    this.#run.known.inclusive = inclusive;
    this.#run.tally.inclusive = inclusive;
    this.#run.deps.logger.info(
      'rule.proved',
      `The export of ${day} proves that to_date is ${inclusive ? 'included' : 'not included'}.`,
      { window: day, to_date_inclusive: inclusive },
    );
  }

  async #withNext(single: SingleDay): Promise<RangeDownload[]> {
    const { day, download } = single;
    const next = addDays(day, 1);
    const both = await fetchDays(this.#run, dayRequest(day, next));
    if (both.kind !== 'rows') return this.#refusedWithNext(single, both);
    const rows = rowCount(both);
    const maybeExclusive = isNone(download) && rows > 0 && wasDayOver(single);
    if (this.#run.plan.proveFirst && rows > 0) return this.#proveBeforeHandover(single, both, maybeExclusive);
    await discard(this.#run, download);
    if (maybeExclusive) this.#maybeExclusive = day;
    if (rows === 0 && !this.#run.plan.proveFirst) {
      const sentAt = sentAtOf(both);
      this.#ahead = { day: next, askedAt: sentAt, download: { kind: 'empty', sentAt } };
    }
    return [windowOf(only(day), both, day)];
  }

  /** [D,D+1] was refused: a failure if D is over; otherwise D+1 has not begun. */
  async #refusedWithNext({ day, download }: SingleDay, both: NotDownloaded): Promise<RangeDownload[]> {
    if (both.kind === 'gone') {
      await discard(this.#run, download);
      return [withoutWindow(only(day), 'gone', both.message)];
    }
    if (day <= lastDayOver(this.#run.deps.clock.now())) throw refused(only(day), both.message);
    if (download.kind !== 'rows') return [withoutWindow(only(day), 'invalid', both.message)];
    return [windowOf(only(day), download, undefined)];
  }

  /** Decides before any window is handed on: by [D+1,D+1], or else by the counts. */
  async #proveBeforeHandover(single: SingleDay, both: Downloaded, maybeExclusive: boolean): Promise<RangeDownload[]> {
    const { day, download } = single;
    const next = addDays(day, 1);
    const askedAt = earlierClock(this.#run);
    const after = await fetchDays(this.#run, dayRequest(next, next));
    this.#ahead = { day: next, askedAt, download: after };
    if (after.kind === 'rows' && provesInclusive(this.#run, after)) {
      this.#prove(true, next);
      return this.#useSingle(single, both);
    }
    if (isNone(after) && maybeExclusive) {
      this.#prove(false, day);
      await discard(this.#run, download);
      return [windowOf(only(day), both, day)];
    }
    if (rowCount(both) <= rowCount(download) + rowCount(after)) return this.#useSingle(single, both);
    await discard(this.#run, download);
    this.#run.deps.logger.warn(
      'rule.open',
      `Whether to_date is included could not be proved with ${day}: rows of the next day may come twice; set to_date_inclusive.`,
      { window: day },
    );
    return [windowOf(only(day), both, day)];
  }

  /** The window is [D,D], which is all of D; [D,D+1] if [D,D] was refused. */
  async #useSingle({ day, download }: SingleDay, both: Downloaded): Promise<RangeDownload[]> {
    if (download.kind !== 'rows') return [windowOf(only(day), both, day)];
    await discard(this.#run, both);
    return [windowOf(only(day), download, day)];
  }
}

const only = (day: Day): DayRange => ({ first: day, last: day });

/** Whether the day was over in every time zone when it was requested, so that no row of it came later. */
function wasDayOver({ day, download, askedAt }: SingleDay): boolean {
  if (download.kind === 'rows') return day <= lastDayOver(sentAtOf(download));
  return day <= lastDayOver(download.kind === 'empty' ? download.sentAt : askedAt);
}

/** Without `df_event_datetime`, the one such column that can be dropped, nothing is proved. */
const provesInclusive = ({ deps }: Run, download: Downloaded): boolean =>
  deps.options.edits?.drop.has(EVENT_DATETIME) !== true && download.parts.some((part) => hasPair(part.scan.columns));

/** No row at all; a 400 for [D,D] says as much (S2). */
const isNone = (download: Download): boolean =>
  download.kind === 'invalid' || download.kind === 'empty' || (download.kind === 'rows' && rowCount(download) === 0);
