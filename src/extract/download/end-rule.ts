import { addDays, type Day, daysBetween } from '../../base/days.ts';
import { HOUR_MS } from '../../base/durations.ts';
import { configError } from '../../base/errors.ts';
import type { ColumnScan } from '../../schema/scan.ts';
import { type DayRanges, lastDayOver, lastSettledDay, only, todayUtc } from '../plan/days.ts';
import type { NoFile } from '../ports.ts';
import { type DaysResult, type Download, noDownload, rowCount, sentAtOf } from './download.ts';
import { fetchRange, refusalError } from './range.ts';
import { discard, earlierClock, type Run } from './run.ts';
import { dayRequest, fetchDays } from './split.ts';

/*
 * Whether an export contains its `to_date` (S2, S62). A single day, [D,D], and several days, [D,D+n], are two forms of
 * request, and a proof holds for the form that was asked. Only rows are observations: a 400 proves nothing.
 *
 * [D,D] with rows that are an hour apart: single days are whole (`cache.inclusive`).
 * [D,D+n] with rows that are n days and two hours apart: ranges contain their end (`cache.rangesInclusive`).
 * What "apart" means is said at the end of this file.
 *
 * While single days are not proved whole, a day D is requested as follows, each export reused where it can be. The first row
 * that holds decides; the code cites it by its number:
 *
 *      [D,D]       [D,D+1]            [D+1,D+1]   then                                           window of D
 *   1  a 400       -                  -           D is after today in UTC: it has not begun      none
 *   2  apart       -                  -           single days are whole, proved                  [D,D]
 *   3  any         a 400, D was over  -           a failure
 *   4  not a file  a 400              -           D+1 has not begun                              none
 *   5  a file      a 400              -           D+1 has not begun                              [D,D], covering nothing
 *   6  not a row   no row             -           D is empty under both readings                 [D,D+1]
 *   7  no row      rows               no row      single days hold nothing, proved (D was over)  [D,D+1]
 *   8  any         rows               any         unproved: D+1 is asked the same way            [D,D+1]
 *
 * [D,D+1] contains D under both readings, so neighbouring windows share their boundary until something is proved. If
 * [D-1,D] had no row, [D,D] has none either and is not requested. Once a day that had begun was refused on its own, a 400
 * no longer shows that D has not begun. Where the service says that it no longer has the days, there is no window.
 *
 * Settled deliveries and full refreshes hand each row on once (`proveFirst`), so there no boundary may be shared. If
 * [D,D+1] has rows, [D+1,D+1] is requested too, and the first row that holds decides:
 *
 *   9   ranges contain their end, D+1 is wanted          the window is [D,D+1], for both days
 *   10  [D+1,D+1] has rows apart, [D,D] is a file        single days are whole, proved: [D,D]
 *   11  |[D,D+1]| <= |[D,D]| + |[D+1,D+1]|, no 400       [D,D] is all of D
 *   12  ranges contain their end, D+1 is not wanted      where rows are appended: D is left to a later run; else [D,D+1]
 *   13  |[D,D+2]| = |[D,D+1]| + |[D+1,D+2]|              no row of D+1 is in [D,D+1]: [D,D+1]. If both have rows and no day
 *                                                        fits between them, ranges leave their end out, proved
 *   14  rows are appended, D+2 is settled                a failure
 *   15  none of these                                    where rows are appended: D is left to a later run; else [D,D+1]
 */

/** Records what an export of several days proves about its end; true if several days are known to contain their end. */
export function observeRange(run: Run, download: Download): boolean {
  const { cache, deps } = run;
  if (cache.rangesInclusive === undefined && provesRange(run, download)) {
    cache.rangesInclusive = true;
    const { from, to } = download;
    const message = `The export of ${from} to ${to} proves that several days contain their to_date.`;
    deps.logger.info('rule.ranges_proved', message, { window: from, to_date_inclusive: true });
  }
  return cache.rangesInclusive === true;
}

/** The answer for a day that needs no request: an export of more days had no row of it. */
const KNOWN_EMPTY = { kind: 'empty', files: [] } as const;

type Answer = Download | NoFile | typeof KNOWN_EMPTY;

/** The answer to [D,D], or the knowledge from [D-1,D] that D is empty. */
interface SingleDay {
  readonly day: Day;
  readonly answer: Answer;
  /** Instant of the request (ms since 1970), by the earlier of the two clocks. */
  readonly requestedAt: number;
}

/**
 * Proves the rule, day by day, while it downloads the windows of these days. It is used for one day at a time, in
 * order.
 */
export class EndRule {
  readonly #run: Run;
  /** The days that are not requested yet; a window of two days takes its second one from here. */
  readonly #ranges: DayRanges;
  /** The answer to [D+1,D+1], if it was already requested for D. */
  #ahead: SingleDay | undefined;
  /**
   * The download [D-1,D] with rows, if [D-1,D-1] had none although D-1 was over: if [D,D] has none either, single days
   * hold nothing.
   */
  #twoDaysBefore: Download | undefined;
  /** True once a day that had begun was refused on its own: then a refusal does not show that a day has not begun. */
  #refusesSingleDays = false;

  constructor(run: Run, ranges: DayRanges) {
    this.#run = run;
    this.#ranges = ranges;
  }

  /** Downloads the window of one day while the rule is not proved. */
  async fetchDay(day: Day): Promise<DaysResult[]> {
    const single = await this.#fetchSingle(day);
    const { answer } = single;
    if (answer.kind === 'gone') return [noDownload(only(day), 'gone', answer.message)];
    if (answer.kind === 'invalid') {
      if (day <= todayUtc(earlierClock(this.#run))) this.#refusesSingleDays = true;
      else if (!this.#refusesSingleDays) return [noDownload(only(day), 'invalid', answer.message)]; // Row 1.
    }
    if (answer.kind === 'rows' && provesSingleDays(this.#run, answer)) {
      this.#prove(true, day);
      return windowOf(day, answer); // Row 2.
    }
    const before = this.#twoDaysBefore;
    this.#twoDaysBefore = undefined;
    if (before?.to === day && isEmpty(answer)) return this.#withoutSingleDays(single, before); // Row 7 of D-1.
    return this.#fetchTwoDays(single);
  }

  /** The download [D,D] that was requested ahead, if single days have been proved complete since: it is the window of D. */
  ahead(day: Day): Download | undefined {
    const { day: requested, answer } = this.#ahead ?? {};
    return requested === day && answer?.kind === 'rows' && this.#run.cache.inclusive === true ? answer : undefined;
  }

  /** Leaves the download that was requested ahead to the caller, who took it from `ahead`: `close` no longer discards it. */
  releaseAhead(): void {
    this.#ahead = undefined;
  }

  async close(): Promise<void> {
    if (this.#ahead !== undefined) await discard(this.#run, this.#ahead.answer);
    this.#ahead = undefined;
  }

  /** Gives [D,D], requested now or ahead. */
  async #fetchSingle(day: Day): Promise<SingleDay> {
    const ahead = this.#ahead;
    if (ahead?.day !== day) {
      await this.close();
      return this.#requestSingle(day);
    }
    this.#ahead = undefined;
    return ahead;
  }

  async #requestSingle(day: Day): Promise<SingleDay> {
    const requestedAt = earlierClock(this.#run);
    return { day, requestedAt, answer: await fetchDays(this.#run, dayRequest(day, day)) };
  }

  #prove(inclusive: boolean, day: Day): void {
    this.#run.cache.inclusive = inclusive;
    this.#run.deps.counts.inclusive = inclusive;
    this.#run.deps.logger.info(
      'rule.proved',
      `The export of ${day} proves that to_date is ${inclusive ? 'included' : 'not included'}.`,
      { window: day, to_date_inclusive: inclusive },
    );
  }

  /**
   * Ends the proof with row 7: [D-1,D] has rows, and neither [D-1,D-1] nor [D,D] has any, so that single days hold
   * nothing.
   */
  async #withoutSingleDays({ day, answer }: SingleDay, before: Download): Promise<DaysResult[]> {
    await discard(this.#run, answer);
    this.#prove(false, day);
    const results = await fetchRange(this.#run, only(day));
    const [result] = results;
    if (results.length === 1 && result.kind === 'rows') await this.#observeRanges(before, result);
    return results;
  }

  /** Requests [D,D+1] after [D,D] proved nothing. */
  async #fetchTwoDays(single: SingleDay): Promise<DaysResult[]> {
    const { day, answer } = single;
    const next = addDays(day, 1);
    const twoDays = await fetchDays(this.#run, dayRequest(day, next));
    if (twoDays.kind !== 'rows') return this.#refusedTwoDays(single, twoDays); // Rows 3 to 5.
    observeRange(this.#run, twoDays);
    const rows = rowCount(twoDays);
    const { proveFirst } = this.#run.plan;
    if (proveFirst && rows > 0) return this.#withoutSharedDay(single, twoDays); // Rows 9 to 15.
    await discard(this.#run, answer);
    if (isEmpty(answer) && rows > 0 && wasDayOver(single)) this.#twoDaysBefore = twoDays;
    if (rows === 0 && !proveFirst) this.#ahead = { day: next, requestedAt: sentAtOf(twoDays), answer: KNOWN_EMPTY };
    return windowOf(day, twoDays); // Rows 6 to 8.
  }

  /** Decides after [D,D+1] was refused (rows 3 to 5). */
  async #refusedTwoDays({ day, answer }: SingleDay, twoDays: NoFile): Promise<DaysResult[]> {
    if (twoDays.kind === 'gone') {
      await discard(this.#run, answer);
      return [noDownload(only(day), 'gone', twoDays.message)];
    }
    if (day <= lastDayOver(earlierClock(this.#run))) throw refusalError(only(day), twoDays.message); // Row 3.
    if (answer.kind !== 'rows') return [noDownload(only(day), 'invalid', twoDays.message)]; // Row 4.
    return [{ ...answer, days: only(day), contains: undefined }]; // Row 5.
  }

  /** Decides the window of D if no row may be delivered twice (rows 9 to 15). */
  async #withoutSharedDay(single: SingleDay, twoDays: Download): Promise<DaysResult[]> {
    const { day, answer } = single;
    const next = addDays(day, 1);
    if (this.#run.cache.rangesInclusive === true && this.#ranges.peek() === next) {
      this.#ranges.next(1);
      await discard(this.#run, answer);
      return [{ ...twoDays, days: { first: day, last: next }, contains: next }]; // Row 9.
    }
    this.#ahead = await this.#requestSingle(next);
    const after = this.#ahead.answer;
    const isProved = after.kind === 'rows' && provesSingleDays(this.#run, after);
    if (isProved) this.#prove(true, next);
    const isAllOfDay = isRead(after) && rowCount(twoDays) <= rowCount(answer) + rowCount(after);
    if (answer.kind === 'rows' && (isProved || isAllOfDay)) {
      await discard(this.#run, twoDays);
      return windowOf(day, answer); // Rows 10 and 11.
    }
    await discard(this.#run, answer);
    if (isEmpty(answer) && isEmpty(after) && wasDayOver(single)) this.#prove(false, day); // Row 7; the window is of the rows below.
    if (this.#run.cache.rangesInclusive !== true) return this.#byCounts(day, twoDays);
    // Row 12.
    return this.#unproved(day, twoDays, `an export of it contains ${next} as well, which is not wanted yet`);
  }

  /**
   * Decides by the number of rows of [D,D+2] and, requested after it, of [D+1,D+2], whether [D,D+1] has rows of D+1
   * (rows 13 to 15).
   */
  async #byCounts(day: Day, twoDays: Download): Promise<DaysResult[]> {
    const run = this.#run;
    const end = addDays(day, 2);
    const all = await this.#fetchCounted(day, end);
    const nextTwoDays = await this.#fetchCounted(addDays(day, 1), end);
    if (this.#shareNoRow(twoDays, nextTwoDays, all)) return windowOf(day, twoDays); // Row 13.
    const isSettled = end <= lastSettledDay(earlierClock(run), run.plan.settleHours ?? 0);
    if (isSettled && run.plan.appends) throw unprovableEnd(day); // Row 14.
    // Row 15.
    return this.#unproved(day, twoDays, 'whether an export contains its to_date is not proved yet');
  }

  /** Records what [D-1,D] and [D,D+1], of days that are over, prove about the end of ranges; costs one more export. */
  async #observeRanges(before: Download, twoDays: Download): Promise<void> {
    const isOver = twoDays.to === addDays(before.to, 1) && twoDays.to <= lastDayOver(sentAtOf(before));
    if (!isOver || rowCount(twoDays) === 0) return;
    this.#shareNoRow(before, twoDays, await this.#fetchCounted(before.from, twoDays.to));
  }

  /** Downloads several days only to count their rows; their files are removed. */
  async #fetchCounted(from: Day, to: Day): Promise<Download | NoFile> {
    const download = await fetchDays(this.#run, { from, to, through: from, splitByNames: false });
    await discard(this.#run, download);
    return download;
  }

  /**
   * True if [D,D+1] and [D+1,D+2] share no row, by the number of rows of both and of [D,D+2]. Records what that proves.
   */
  #shareNoRow(twoDays: Download, nextTwoDays: Answer, all: Answer): boolean {
    if (nextTwoDays.kind !== 'rows' || all.kind !== 'rows') return false;
    if (rowCount(all) !== rowCount(twoDays) + rowCount(nextTwoDays)) return false;
    const isProof = twoDays.to <= lastDayOver(sentAtOf(twoDays)) && rowCount(twoDays) > 0 && rowCount(nextTwoDays) > 0;
    if (isProof && canProve(this.#run) && followsClosely(twoDays, nextTwoDays)) {
      this.#run.cache.rangesInclusive = false;
      this.#prove(false, twoDays.from);
    }
    return true;
  }

  /**
   * Leaves the day to a later run if rows are appended; else delivers it, since a consumer that merges by key can get
   * shared rows twice.
   */
  async #unproved(day: Day, twoDays: Download, why: string): Promise<DaysResult[]> {
    if (this.#run.plan.appends) {
      await discard(this.#run, twoDays);
      return [noDownload(only(day), 'later', why)];
    }
    this.#run.deps.logger.warn(
      'rule.open',
      `Whether to_date is included could not be proved with ${day}: rows of the next day may come twice; set to_date_inclusive.`,
      { window: day },
    );
    return windowOf(day, twoDays);
  }
}

/** The window of one day, from a download that contains it. */
const windowOf = (day: Day, download: Download): Download[] => [{ ...download, days: only(day), contains: day }];

const unprovableEnd = (day: Day) =>
  configError(
    `Whether an export contains its to_date cannot be found out from the rows of ${day} and the days after it, and rows ` +
      'would come twice or be missing: set to_date_inclusive to true or false, as the provider says, or let the destination ' +
      'merge by key. Nothing of the day was handed on.',
    { where: { window: day } },
  );

/** True if the day was over in every time zone when it was requested, so that no row of it came later. */
const wasDayOver = ({ day, answer, requestedAt }: SingleDay): boolean =>
  day <= lastDayOver(answer.kind === 'rows' ? sentAtOf(answer) : requestedAt);

/** True for an answer that was read, with or without rows; a 400 is not one (S62). */
const isRead = (answer: Answer): boolean => answer.kind === 'rows' || answer.kind === 'empty';

/** True for an answer without any row. */
const isEmpty = (answer: Answer): boolean => isRead(answer) && rowCount(answer) === 0;

// The proofs in the rows of an export. Two rows are apart only if they are apart in every datetime system column that
// has values. Whichever of these columns the service selects by, an end that is not included, or that means midnight
// (server BETWEEN 'D' AND 'D'), leaves at most one instant of that day in it; the columns that it does not select by
// may show hours all the same.

/** Shorter than the shortest day, which has 23 hours. */
const NEARLY_A_DAY_MS = 22 * HOUR_MS;
const EVENT_DATETIME = 'df_event_datetime';
const DATETIMES = new Set(['df_server_datetime', 'df_correction_datetime', EVENT_DATETIME]);

/** False if `df_event_datetime` is dropped, the only such column that can be: then nothing is proved. */
const canProve = ({ deps }: Run): boolean => deps.options.edits?.drop.has(EVENT_DATETIME) !== true;

/** True if an export of a single day has rows an hour apart, so that it contains more of the day than an instant. */
const provesSingleDays = (run: Run, { files }: Download): boolean =>
  canProve(run) && files.some(({ scan }) => spans(scan.columns, 1));

/**
 * True if an export of several days has rows so far apart that some are of its last day; a day has 25 hours at most.
 */
const provesRange = (run: Run, { from, to, files }: Download): boolean =>
  canProve(run) && from < to && files.some(({ scan }) => spans(scan.columns, daysBetween(from, to) * 24 + 2));

/**
 * True if every datetime system column that has values, and there is at least one, has rows at least this many hours
 * apart.
 */
export function spans(columns: readonly ColumnScan[], hours: number): boolean {
  const filled = filledDatetimes(columns);
  return filled.length > 0 && filled.every(({ first, last }) => msOf(last) - msOf(first) >= hours * HOUR_MS);
}

/**
 * True if in no datetime system column a whole day fits between the last row of `before` and the first row of `after`.
 */
function followsClosely(before: Download, after: Download): boolean {
  const scansOf = ({ files }: Download, source: string) =>
    files.flatMap(({ scan }) => filledDatetimes(scan.columns).filter((column) => column.source === source));
  const gaps = [...DATETIMES].flatMap((source) => {
    const last = scansOf(before, source).map((column) => msOf(column.last));
    const first = scansOf(after, source).map((column) => msOf(column.first));
    return last.length + first.length === 0 ? [] : [Math.min(...first) - Math.max(...last)];
  });
  return gaps.length > 0 && gaps.every((gap) => gap < NEARLY_A_DAY_MS);
}

const filledDatetimes = (columns: readonly ColumnScan[]): ColumnScan[] =>
  columns.filter(({ source, type }) => DATETIMES.has(source) && type !== undefined);

/**
 * Milliseconds of an ISO text without a zone; microseconds are cut. NaN for undefined, for which no comparison is true.
 */
const msOf = (text: string | undefined): number =>
  text === undefined ? Number.NaN : Date.parse(`${text.slice(0, 23)}Z`);
