import { addDays, type Day } from '../../base/days.ts';
import { configError } from '../../base/errors.ts';
import type { ColumnScan } from '../../schema/scan.ts';
import { type DayRanges, lastDayOver, lastSettledDay, only, todayUtc } from '../plan/days.ts';
import type { NoFile } from '../ports.ts';
import { type DaysResult, type Download, noDownload, rowCount, sentAtOf } from './download.ts';
import { fetchRange, refused } from './range.ts';
import { discard, earlierClock, type Run } from './run.ts';
import { dayRequest, fetchDays } from './split.ts';

/*
 * Whether an export contains its `to_date` (S2, S62). A single day, [D,D], and several days, [D,D+n], are two forms of
 * request, and a proof holds for the form that was asked. Only rows are observations: a 400 proves nothing.
 *
 * [D,D] with a pair of rows that are an hour apart: single days are whole (`known.inclusive`).
 * [D,D+n] with rows that are n days and two hours apart (a day has 25 hours at most): ranges contain their end
 * (`known.rangesInclusive`).
 * "Apart" means in every datetime system column that has values. In whichever of them the service selects, an end that is
 * not included, or that means midnight (server BETWEEN 'D' AND 'D'), leaves an instant of that day at most; the columns
 * that it does not select on may show hours all the same.
 *
 * While single days are not proved whole, a day D is requested as follows, each export reused where it can be:
 *
 *   [D,D]              [D,D+1]    [D+1,D+1]   then                                          window of D
 *   a pair             -          -           single days are whole, proved                 [D,D]
 *   no row, or a 400   no row     -           D is empty under both readings                [D,D+1]
 *   no row             rows       no row      single days hold nothing, proved (D was over) [D,D+1]
 *   a 400              rows       any         unproved                                      [D,D+1]
 *   rows, no pair      any        any         unproved: D+1 is asked the same way           [D,D+1]
 *   D not over, rows   a 400      -           unproved: D+1 has not begun                   [D,D], covering nothing
 *   D after today in UTC, a 400   -           unproved: D has not begun                     none
 *
 * [D,D+1] contains D under both readings, so neighbouring windows share their boundary until something is proved. If
 * [D-1,D] had no row, [D,D] has none either and is not requested. Once a day that had begun was refused on its own, a 400
 * no longer shows that D has not begun.
 *
 * Settled deliveries and full refreshes hand each row on once (`proveFirst`), so there no boundary may be shared. If
 * [D,D+1] has rows, [D+1,D+1] is requested too, and the first line that holds decides:
 *
 *   ranges contain their end, D+1 is wanted           the window is [D,D+1], for both days
 *   [D+1,D+1] has a pair                              single days are whole, proved: [D,D]
 *   |[D,D+1]| <= |[D,D]| + |[D+1,D+1]|, no 400        [D,D] is all of D
 *   |[D,D+2]| = |[D,D+1]| + |[D+1,D+2]|               no row of D+1 is in [D,D+1]: [D,D+1]. If both have rows and no day
 *                                                     fits between them, ranges leave their end out, proved
 *   D+2 is not settled                                where rows are appended: D is left to a later run
 *   none of these                                     where rows are appended: a failure; else [D,D+1]
 */

const HOUR_MS = 3_600_000;
/** Hours of the longest day, and an hour that no instant has. */
const LONGEST_DAY_AND_HOUR = 26;
/** Less than the shortest day. */
const GAP_MS = 22 * HOUR_MS;
const EVENT_DATETIME = 'df_event_datetime';
const PROOF_COLUMNS = new Set(['df_server_datetime', 'df_correction_datetime', EVENT_DATETIME]);

const proofColumns = (columns: readonly ColumnScan[]): ColumnScan[] =>
  columns.filter(({ source, type }) => PROOF_COLUMNS.has(source) && type !== undefined);

/** True when every datetime system column that has values, one at least, shows rows that many hours or more apart. */
export function spans(columns: readonly ColumnScan[], hours: number): boolean {
  const filled = proofColumns(columns);
  return filled.length > 0 && filled.every(({ first, last }) => msOf(last) - msOf(first) >= hours * HOUR_MS);
}

/** Milliseconds of an ISO text without a zone; micros are cut. NaN for none, which no comparison holds for. */
const msOf = (text: string | undefined): number =>
  text === undefined ? Number.NaN : Date.parse(`${text.slice(0, 23)}Z`);

/** Without `df_event_datetime`, the one such column that can be dropped, nothing is proved. */
const canProve = ({ deps }: Run): boolean => deps.options.edits?.drop.has(EVENT_DATETIME) !== true;

const provesSingleDays = (run: Run, download: Download): boolean =>
  canProve(run) && download.files.some((part) => spans(part.scan.columns, 1));

/** Takes in what an export of several days shows of its end; true when ranges are known to contain it. */
export function observeRange(run: Run, download: Download): boolean {
  const { known, deps } = run;
  const { from, to, files } = download;
  if (known.rangesInclusive !== undefined || !canProve(run)) return known.rangesInclusive === true;
  const hours = (Date.parse(to) - Date.parse(from)) / HOUR_MS + LONGEST_DAY_AND_HOUR - 24;
  if (from === to || !files.some((file) => spans(file.scan.columns, hours))) return false;
  known.rangesInclusive = true;
  const message = `The export of ${from} to ${to} proves that several days contain their to_date.`;
  deps.logger.info('rule.ranges_proved', message, { window: from, to_date_inclusive: true });
  return true;
}

/** True when in no datetime system column a whole day fits between the last row of one download and the first of the other. */
function followsClosely(before: Download, after: Download): boolean {
  const bounds = (download: Download, source: string) => {
    const scans = download.files.flatMap((part) => proofColumns(part.scan.columns).filter((c) => c.source === source));
    return { first: scans.map((c) => msOf(c.first)), last: scans.map((c) => msOf(c.last)) };
  };
  const gaps = [...PROOF_COLUMNS].flatMap((source) => {
    const [a, b] = [bounds(before, source), bounds(after, source)];
    return a.last.length + b.first.length === 0 ? [] : [Math.min(...b.first) - Math.max(...a.last)];
  });
  return gaps.length > 0 && gaps.every((gap) => gap < GAP_MS && gap !== Number.NEGATIVE_INFINITY);
}

/** A day without rows and without a file: an export of more days had no row of it. */
const KNOWN_EMPTY = { kind: 'empty', files: [] } as const;

type Answer = Download | NoFile | typeof KNOWN_EMPTY;

/** The download of [D,D], or that it is known to be empty from [D-1,D]. */
interface SingleDay {
  readonly day: Day;
  readonly download: Answer;
  /** When it was requested (ms since 1970), by the earlier of the two clocks. */
  readonly requestedAt: number;
}

/** Proves the rule, day by day, while it downloads the windows of these days. Used one day at a time, in order. */
export class EndRule {
  readonly #run: Run;
  /** The days that are not requested yet; a window of two days takes its second one from here. */
  readonly #ranges: DayRanges;
  /** [D+1,D+1], if it was already requested for D. */
  #ahead: SingleDay | undefined;
  /** The window of the day before, when this one may prove that single days hold nothing. */
  #before: Download | undefined;
  /** True once a day that had begun was refused on its own: a refusal then does not show that a day has not begun. */
  #refusesSingleDays = false;

  constructor(run: Run, ranges: DayRanges) {
    this.#run = run;
    this.#ranges = ranges;
  }

  /** The window of one day while the rule is not proved. */
  async fetchDay(day: Day): Promise<DaysResult[]> {
    const single = await this.#single(day);
    const { download } = single;
    if (download.kind === 'gone') return [noDownload(only(day), 'gone', download.message)];
    if (download.kind === 'invalid') {
      if (day <= todayUtc(earlierClock(this.#run))) this.#refusesSingleDays = true;
      else if (!this.#refusesSingleDays) return [noDownload(only(day), 'invalid', download.message)];
    }
    if (download.kind === 'rows' && provesSingleDays(this.#run, download)) {
      this.#prove(true, day);
      return windowOf(day, download);
    }
    const before = this.#before;
    this.#before = undefined;
    if (before?.to !== day || !isEmpty(download)) return this.#withNext(single);
    await discard(this.#run, download);
    this.#prove(false, day);
    const results = await fetchRange(this.#run, only(day));
    const [result] = results;
    if (results.length === 1 && result.kind === 'rows') await this.#compareWindows(before, result);
    return results;
  }

  /** A download requested ahead that is the window of `day` under the rule, which has been proved since. */
  takeAhead(day: Day): Download | undefined {
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
    const requestedAt = earlierClock(this.#run);
    return { day, requestedAt, download: await fetchDays(this.#run, dayRequest(day, day)) };
  }

  #prove(inclusive: boolean, day: Day): void {
    this.#run.known.inclusive = inclusive;
    this.#run.deps.tally.inclusive = inclusive;
    this.#run.deps.logger.info(
      'rule.proved',
      `The export of ${day} proves that to_date is ${inclusive ? 'included' : 'not included'}.`,
      { window: day, to_date_inclusive: inclusive },
    );
  }

  async #withNext(single: SingleDay): Promise<DaysResult[]> {
    const { day, download } = single;
    const next = addDays(day, 1);
    const both = await fetchDays(this.#run, dayRequest(day, next));
    if (both.kind !== 'rows') return this.#refusedWithNext(single, both);
    observeRange(this.#run, both);
    const rows = rowCount(both);
    if (this.#run.plan.proveFirst && rows > 0) return this.#withoutSharedDay(single, both);
    await discard(this.#run, download);
    if (isEmpty(download) && rows > 0 && wasDayOver(single)) this.#before = both;
    if (rows === 0 && !this.#run.plan.proveFirst) {
      this.#ahead = { day: next, requestedAt: sentAtOf(both), download: KNOWN_EMPTY };
    }
    return windowOf(day, both);
  }

  /** [D,D+1] was refused: a failure if D is over; otherwise D+1 has not begun. */
  async #refusedWithNext({ day, download }: SingleDay, both: NoFile): Promise<DaysResult[]> {
    if (both.kind === 'gone') {
      await discard(this.#run, download);
      return [noDownload(only(day), 'gone', both.message)];
    }
    if (day <= lastDayOver(earlierClock(this.#run))) throw refused(only(day), both.message);
    if (download.kind !== 'rows') return [noDownload(only(day), 'invalid', both.message)];
    return [{ ...download, days: only(day), contains: undefined }];
  }

  /** The window of D where no row may be handed on twice (second table above). */
  async #withoutSharedDay(single: SingleDay, both: Download): Promise<DaysResult[]> {
    const { day, download } = single;
    const next = addDays(day, 1);
    if (this.#run.known.rangesInclusive === true && this.#ranges.peek() === next) {
      this.#ranges.next(1);
      await discard(this.#run, download);
      return [{ ...both, days: { first: day, last: next }, contains: next }];
    }
    const requestedAt = earlierClock(this.#run);
    const after = await fetchDays(this.#run, dayRequest(next, next));
    this.#ahead = { day: next, requestedAt, download: after };
    const isProved = after.kind === 'rows' && provesSingleDays(this.#run, after);
    if (isProved) this.#prove(true, next);
    const isAll = isRead(after) && rowCount(both) <= rowCount(download) + rowCount(after);
    if (download.kind === 'rows' && (isProved || isAll)) {
      await discard(this.#run, both);
      return windowOf(day, download);
    }
    await discard(this.#run, download);
    if (isEmpty(download) && isEmpty(after) && wasDayOver(single)) this.#prove(false, day);
    if (this.#run.known.rangesInclusive !== true) return this.#byCounts(day, both);
    return this.#undecided(day, both, `an export of it contains ${next} as well, which is not wanted yet`);
  }

  /** Whether [D,D+1] has rows of D+1, by the number of rows of [D,D+2] and, requested after it, [D+1,D+2]. */
  async #byCounts(day: Day, both: Download): Promise<DaysResult[]> {
    const run = this.#run;
    const end = addDays(day, 2);
    const all = await this.#countRows(day, end);
    const following = await this.#countRows(addDays(day, 1), end);
    if (this.#sharesNoRow(both, following, all)) return windowOf(day, both);
    const isSettled = end <= lastSettledDay(earlierClock(run), run.plan.settleHours ?? 0);
    if (isSettled && run.plan.appends) throw endFailure(day);
    return this.#undecided(day, both, 'whether an export contains its to_date is not proved yet');
  }

  /** Of days that are over, what the window of D and the one of D+1 show of the end of ranges; costs one more export. */
  async #compareWindows(before: Download, following: Download): Promise<void> {
    const isOver = following.to === addDays(before.to, 1) && following.to <= lastDayOver(sentAtOf(before));
    if (!isOver || rowCount(following) === 0) return;
    this.#sharesNoRow(before, following, await this.#countRows(before.from, following.to));
  }

  /** Several days of which only the rows count: no file of them stays. */
  async #countRows(from: Day, to: Day): Promise<Download | NoFile> {
    const download = await fetchDays(this.#run, { from, to, through: from, splitByNames: false });
    await discard(this.#run, download);
    return download;
  }

  /** Whether [D,D+1] and [D+1,D+2] share no row, by the number of rows of both and of [D,D+2]; takes in what that proves. */
  #sharesNoRow(before: Download, following: Answer, all: Answer): boolean {
    if (following.kind !== 'rows' || all.kind !== 'rows') return false;
    if (rowCount(all) !== rowCount(before) + rowCount(following)) return false;
    const isProof = before.to <= lastDayOver(sentAtOf(before)) && rowCount(before) > 0 && rowCount(following) > 0;
    if (isProof && canProve(this.#run) && followsClosely(before, following)) {
      this.#run.known.rangesInclusive = false;
      this.#prove(false, before.from);
    }
    return true;
  }

  /** The day is left to a later run where rows are appended; a consumer that merges by key gets shared rows twice. */
  async #undecided(day: Day, both: Download, why: string): Promise<DaysResult[]> {
    if (this.#run.plan.appends) {
      await discard(this.#run, both);
      return [noDownload(only(day), 'later', why)];
    }
    this.#run.deps.logger.warn(
      'rule.open',
      `Whether to_date is included could not be proved with ${day}: rows of the next day may come twice; set to_date_inclusive.`,
      { window: day },
    );
    return windowOf(day, both);
  }
}

/** The window of one day, which a download contains. */
const windowOf = (day: Day, download: Download): Download[] => [{ ...download, days: only(day), contains: day }];

const endFailure = (day: Day) =>
  configError(
    `Whether an export contains its to_date cannot be found out from the rows of ${day} and the days after it, and rows ` +
      'would come twice or be missing: set to_date_inclusive to true or false, as the provider says, or let the destination ' +
      'merge by key. Nothing of the day was handed on.',
    { where: { window: day } },
  );

/** Whether the day was over in every time zone when it was requested, so that no row of it came later. */
const wasDayOver = ({ day, download, requestedAt }: SingleDay): boolean =>
  day <= lastDayOver(download.kind === 'rows' ? sentAtOf(download) : requestedAt);

/** An answer that was read, with or without rows; a 400 is none (S62). */
const isRead = (download: Answer): boolean => download.kind === 'rows' || download.kind === 'empty';

/** An answer without any row. */
const isEmpty = (download: Answer): boolean => isRead(download) && rowCount(download) === 0;
