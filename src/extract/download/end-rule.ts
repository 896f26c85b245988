import { addDays, type Day, daysBetween } from '../../base/days.ts';
import { HOUR_MS } from '../../base/durations.ts';
import { configError } from '../../base/errors.ts';
import { CORRECTION_DATETIME, SERVER_DATETIME } from '../../cells/columns/groups.ts';
import type { ColumnScan } from '../../cells/columns/scan.ts';
import type { LastRefusal } from '../../service/export/retry.ts';
import { type DayRange, type DayRanges, lastDayOver, lastSettledDay, only, todayUtc } from '../plan/days.ts';
import { type DaysResult, type Download, type NoDownload, noDownload, rowCount, sentAtOf } from './download.ts';
import { discard, type Extraction } from './extraction.ts';
import { fetchRange, refusalError } from './range.ts';
import { dayRequest, fetchDays } from './split.ts';

/*
 * Whether an export contains its `to_date`. A single day, [D,D], and several days, [D,D+n], are two forms of
 * request, and a proof holds for the form that was asked. Only rows are observations: a 400 proves nothing.
 *
 * [D,D] with rows that are an hour apart: single days are whole (`facts.known.singleDaysInclusive`).
 * [D,D+n] with rows that are n days and two hours apart: ranges contain their end (`facts.known.rangesInclusive`).
 * [D,D] and [D+1,D+1] without a row and [D,D+1] with rows, D over: single days hold nothing.
 * |[D,D+2]| = |[D,D+1]| + |[D+1,D+2]|, both with rows and no day between them: ranges leave their end out.
 * What "apart" means is said at the end of this file.
 *
 * While single days are not proved whole, `decide` says after each answer what is requested next for a day D, or what
 * its window is. [D,D+1] contains D under both readings, so neighbouring windows share their boundary until something
 * is proved. Settled deliveries and full refreshes hand each row on once (`proveFirst`): there no boundary may be
 * shared.
 */

/** The answer for a day that needs no request: an export of more days had no row of it. */
const KNOWN_EMPTY = { kind: 'empty' } as const;

type DayAnswer = Download | LastRefusal | typeof KNOWN_EMPTY;

/** The answer to [D,D], or the knowledge from [D-1,D] that D is empty. */
interface SingleDay {
  readonly day: Day;
  readonly answer: DayAnswer;
  /** True if its rows are apart: they prove that single days are whole. */
  readonly isProof: boolean;
  /** True if the day was over in every time zone when it was requested, so that no row of it came later. */
  readonly wasOver: boolean;
}

/** The answers for a day D so far: to [D,D], [D,D+1] and [D+1,D+1]; undefined for what was not requested. */
interface Answers {
  readonly single: SingleDay;
  readonly twoDays?: Download | LastRefusal;
  readonly next?: SingleDay;
  /** True if, by the numbers of rows of [D,D+2] and [D+1,D+2], no row of D+1 is in [D,D+1]. */
  readonly sharesNoRow?: boolean;
}

/** What else decides on D. */
interface Circumstances extends Pick<Extraction['plan'], 'proveFirst' | 'appends'> {
  /** True for a day that has begun in UTC, and for one that is over in every time zone. */
  readonly hasBegun: boolean;
  readonly isOver: boolean;
  /** True for a day that the service most likely still exports: else it may have left between two requests. */
  readonly isInHistory: boolean;
  /** True once a day that had begun was refused on its own: then a refusal does not show that a day has not begun. */
  readonly refusesSingleDays: boolean;
  readonly rangesInclusive: boolean;
  /** True if D+1 is the next wanted day. */
  readonly isNextWanted: boolean;
  /** True if D+2 has been over for the settle hours, by both clocks: else it is not delivered in this run. */
  readonly isEndSettled: boolean;
}

type WantedAnswer = 'twoDays' | 'next' | 'sharesNoRow';

/** The window of a day. `warning`: what is not proved of its rows. */
interface WindowStep {
  readonly kind: 'window';
  readonly download: Download;
  readonly days: DayRange;
  /** The last day that the download is known to contain. */
  readonly contains: Day | undefined;
  readonly warning?: string;
}

/** What is done next for a day. */
type RuleStep =
  | { readonly kind: 'request'; readonly wanted: WantedAnswer }
  | { readonly kind: 'none'; readonly why: NoDownload['kind']; readonly message: string }
  | { readonly kind: 'failure'; readonly error: Error }
  | WindowStep;

/** Decides on a day D: the first line that holds. */
function decide({ single, twoDays, next, sharesNoRow }: Answers, circumstances: Circumstances): RuleStep {
  const { day, answer } = single;
  const tomorrow = addDays(day, 1);
  if (answer.kind === 'gone') return none('gone', answer.message);
  if (answer.kind === 'invalid' && !circumstances.hasBegun && !circumstances.refusesSingleDays)
    return none('invalid', answer.message);
  if (answer.kind === 'rows' && single.isProof) return windowOf(answer, day);

  if (twoDays === undefined) return request('twoDays');
  if (twoDays.kind === 'gone' && answer.kind === 'rows' && circumstances.isInHistory) {
    // The service exports the day: it is no gap, though [D,D] may not have had all of it.
    if (circumstances.appends) return { kind: 'failure', error: unprovableEnd(day) };
    return { ...windowOf(answer, day), contains: undefined, warning: onlyAlone(day, twoDays.message) };
  }
  if (twoDays.kind === 'gone') return none('gone', twoDays.message);
  if (twoDays.kind !== 'rows') {
    if (circumstances.isOver) {
      const remedy = answer.kind === 'rows' ? ` It exports ${day} alone: set to_date_inclusive.` : '';
      return { kind: 'failure', error: refusalError({ first: day, last: tomorrow }, `${twoDays.message}${remedy}`) };
    }
    if (answer.kind !== 'rows') return none('invalid', twoDays.message);
    return { ...windowOf(answer, day), contains: undefined };
  }
  if (!circumstances.proveFirst || rowCount(twoDays) === 0) return windowOf(twoDays, day);

  if (circumstances.rangesInclusive && circumstances.isNextWanted) return windowOf(twoDays, day, tomorrow);
  if (next === undefined) return request('next');
  const isAllOfDay = isRead(next.answer) && rowCount(twoDays) <= rowCount(answer) + rowCount(next.answer);
  if (answer.kind === 'rows' && (next.isProof || isAllOfDay)) return windowOf(answer, day);
  // Rows of D+1 may be in [D,D+1]: appended, they would come twice; a consumer that merges by key can get them twice.
  const open = (why: string): RuleStep =>
    circumstances.appends ? none('later', why) : { ...windowOf(twoDays, day), warning: unprovedEnd(day) };
  if (circumstances.rangesInclusive)
    return open(`an export of it contains ${tomorrow} as well, which is not wanted yet`);

  if (sharesNoRow === undefined) return request('sharesNoRow');
  if (sharesNoRow) return windowOf(twoDays, day);
  if (circumstances.appends && circumstances.isEndSettled) return { kind: 'failure', error: unprovableEnd(day) };
  return open('whether an export contains its to_date is not proved yet');
}

const request = (wanted: WantedAnswer): RuleStep => ({ kind: 'request', wanted });
const none = (why: NoDownload['kind'], message: string): RuleStep => ({ kind: 'none', why, message });
const windowOf = (download: Download, first: Day, last = first): WindowStep => ({
  kind: 'window',
  download,
  days: { first, last },
  contains: last,
});

/** Records what an export of several days proves about its end; true if several days are known to contain their end. */
export function observeRange(extraction: Extraction, download: Download): boolean {
  const { facts } = extraction;
  if (facts.known.rangesInclusive === undefined && provesRange(extraction, download))
    facts.recordRangesInclusive(download);
  return facts.known.rangesInclusive === true;
}

/** Requests days and proves the rule with their answers, for one day at a time, in order. */
export class EndRule {
  readonly #extraction: Extraction;
  /** The days that are not requested yet; a window of two days takes its second one from here. */
  readonly #ranges: DayRanges;
  /** The answer to [D+1,D+1], if it was already requested for D. */
  #ahead: SingleDay | undefined;
  /**
   * The download [D-1,D] with rows, if [D-1,D-1] had none although D-1 was over: if [D,D] has none either, single days
   * hold nothing.
   */
  #twoDaysBefore: Download | undefined;
  #refusesSingleDays = false;

  constructor(extraction: Extraction, ranges: DayRanges) {
    this.#extraction = extraction;
    this.#ranges = ranges;
  }

  /** Downloads the window of one day while the rule is not proved. */
  async fetchDay(day: Day): Promise<DaysResult[]> {
    const single = await this.#fetchSingle(day);
    const before = this.#twoDaysBefore;
    this.#twoDaysBefore = undefined;
    if (before?.to === day && isEmpty(single.answer)) return this.#withoutSingleDays(single, before);
    let answers: Answers = { single };
    for (;;) {
      const step = decide(answers, this.#circumstances(day));
      if (step.kind === 'failure') throw step.error;
      if (step.kind === 'request') answers = { ...answers, ...(await this.#request(step.wanted, answers)) };
      else return [await this.#finish(step, answers)];
    }
  }

  /**
   * The download [D,D] that was requested ahead, if single days have been proved complete since: it is the window of D.
   */
  ahead(day: Day): Download | undefined {
    const { day: requested, answer } = this.#ahead ?? {};
    return requested === day && answer?.kind === 'rows' && this.#extraction.facts.known.singleDaysInclusive === true
      ? answer
      : undefined;
  }

  /**
   * Leaves the download that was requested ahead to the caller, who took it from `ahead`: `close` no longer discards
   * it.
   */
  releaseAhead(): void {
    this.#ahead = undefined;
  }

  async close(): Promise<void> {
    if (this.#ahead !== undefined) await discard(this.#extraction, this.#ahead.answer);
    this.#ahead = undefined;
  }

  #circumstances(day: Day): Circumstances {
    const { facts, plan } = this.#extraction;
    const now = facts.earlierTime();
    return {
      hasBegun: day <= todayUtc(now),
      isOver: day <= lastDayOver(now),
      isInHistory: facts.isInHistory(day),
      refusesSingleDays: this.#refusesSingleDays,
      rangesInclusive: facts.known.rangesInclusive === true,
      isNextWanted: this.#ranges.peek() === addDays(day, 1),
      isEndSettled: addDays(day, 2) <= lastSettledDay(now, plan.settleHours ?? 0),
      proveFirst: plan.proveFirst,
      appends: plan.appends,
    };
  }

  /** Carries out the last step for a day. */
  async #finish(step: Exclude<RuleStep, { kind: 'request' | 'failure' }>, answers: Answers): Promise<DaysResult> {
    const { single, twoDays } = answers;
    const { plan, deps } = this.#extraction;
    const used = step.kind === 'window' ? step.download : undefined;
    for (const answer of [single.answer, twoDays]) {
      if (answer !== undefined && answer !== used) await discard(this.#extraction, answer);
    }
    if (step.kind === 'none') return noDownload(only(single.day), step.why, step.message);
    const { download, days, contains } = step;
    if (days.first < days.last) this.#ranges.next(1);
    if (download === twoDays && !plan.proveFirst) this.#rememberTwoDays(download, single);
    if (step.warning !== undefined) deps.logger.warn('rule.open', step.warning, { window: single.day });
    return { ...download, days, contains };
  }

  /** Remembers what the window [D,D+1] says about D+1. */
  #rememberTwoDays(twoDays: Download, { answer, wasOver }: SingleDay): void {
    if (rowCount(twoDays) > 0) this.#twoDaysBefore = isEmpty(answer) && wasOver ? twoDays : undefined;
    else this.#ahead = singleDay(twoDays.to, KNOWN_EMPTY, sentAtOf(twoDays), false);
  }

  /** Gives [D,D], requested now or ahead. */
  async #fetchSingle(day: Day): Promise<SingleDay> {
    const ahead = this.#ahead;
    if (ahead?.day !== day) await this.close();
    this.#ahead = undefined;
    const single = ahead?.day === day ? ahead : await this.#requestSingle(day);
    const hasBegun = day <= todayUtc(this.#extraction.facts.earlierTime());
    if (single.answer.kind === 'invalid' && hasBegun) this.#refusesSingleDays = true;
    return single;
  }

  async #requestSingle(day: Day): Promise<SingleDay> {
    const { facts } = this.#extraction;
    const requestedAt = facts.earlierTime();
    const answer = await fetchDays(this.#extraction, dayRequest(day, day));
    const isProof = answer.kind === 'rows' && provesSingleDays(this.#extraction, answer);
    if (isProof) facts.recordSingleDays(true, day);
    return singleDay(day, answer, answer.kind === 'rows' ? sentAtOf(answer) : requestedAt, isProof);
  }

  /** Requests what `decide` wants to know, and records what it proves. */
  async #request(wanted: WantedAnswer, { single, twoDays }: Answers): Promise<Partial<Answers>> {
    const { day, answer, wasOver } = single;
    const next = addDays(day, 1);
    switch (wanted) {
      case 'twoDays': {
        const found = await fetchDays(this.#extraction, dayRequest(day, next));
        if (found.kind === 'rows') observeRange(this.#extraction, found);
        return { twoDays: found };
      }
      case 'next':
        this.#ahead = await this.#requestSingle(next);
        if (isEmpty(answer) && isEmpty(this.#ahead.answer) && wasOver)
          this.#extraction.facts.recordSingleDays(false, day);
        return { next: this.#ahead };
      case 'sharesNoRow': {
        const end = addDays(day, 2);
        const all = await this.#fetchCounted(day, end);
        return { sharesNoRow: this.#shareNoRow(twoDays, await this.#fetchCounted(next, end), all) };
      }
    }
  }

  /** Proves that single days hold nothing: [D-1,D] has rows, and neither [D-1,D-1] nor [D,D] has any. */
  async #withoutSingleDays({ day, answer }: SingleDay, before: Download): Promise<DaysResult[]> {
    await discard(this.#extraction, answer);
    this.#extraction.facts.recordSingleDays(false, day);
    const results = await fetchRange(this.#extraction, only(day));
    const [result] = results;
    if (results.length === 1 && result.kind === 'rows') await this.#observeRanges(before, result);
    return results;
  }

  /** Records what [D-1,D] and [D,D+1], of days that are over, prove about the end of ranges; costs one more export. */
  async #observeRanges(before: Download, twoDays: Download): Promise<void> {
    const isOver = twoDays.to === addDays(before.to, 1) && twoDays.to <= lastDayOver(sentAtOf(before));
    if (!isOver || rowCount(twoDays) === 0) return;
    this.#shareNoRow(before, twoDays, await this.#fetchCounted(before.from, twoDays.to));
  }

  /** Downloads several days only to count their rows; their files are removed. */
  async #fetchCounted(from: Day, to: Day): Promise<Download | LastRefusal> {
    const download = await fetchDays(this.#extraction, { from, to, through: from, splitByNames: false });
    await discard(this.#extraction, download);
    return download;
  }

  /** True if [D,D+1] and [D+1,D+2] have as many rows as [D,D+2]: they share none. Records what that proves. */
  #shareNoRow(twoDays: DayAnswer | undefined, nextTwoDays: DayAnswer, all: DayAnswer): boolean {
    if (twoDays?.kind !== 'rows' || nextTwoDays.kind !== 'rows' || all.kind !== 'rows') return false;
    if (rowCount(all) !== rowCount(twoDays) + rowCount(nextTwoDays)) return false;
    const isProof = twoDays.to <= lastDayOver(sentAtOf(twoDays)) && rowCount(twoDays) > 0 && rowCount(nextTwoDays) > 0;
    if (isProof && canProve(this.#extraction) && followsClosely(twoDays, nextTwoDays)) {
      this.#extraction.facts.recordRangesExclusive();
      this.#extraction.facts.recordSingleDays(false, twoDays.from);
    }
    return true;
  }
}

const singleDay = (day: Day, answer: DayAnswer, at: number, isProof: boolean): SingleDay => ({
  day,
  answer,
  isProof,
  wasOver: day <= lastDayOver(at),
});

const unprovedEnd = (day: Day): string =>
  `Whether to_date is included could not be proved with ${day}: rows of the next day may come twice; set to_date_inclusive.`;

const onlyAlone = (day: Day, refusal: string): string =>
  `The service exports ${day} alone, but not with ${addDays(day, 1)}: ${refusal} Its rows are kept; that they are all of the ` +
  'day is not proved, so the next run reads it again. Set to_date_inclusive to true, if the provider says that a single ' +
  'day is exported whole.';

const unprovableEnd = (day: Day) =>
  configError(
    `Whether an export contains its to_date cannot be found out from the rows of ${day} and the days after it, and rows ` +
      'would come twice or be missing: set to_date_inclusive to true or false, as the provider says, or let the destination ' +
      'merge by key. Nothing of the day was handed on.',
    { where: { window: day } },
  );

/** True for an answer that was read, with or without rows; a 400 is not one. */
const isRead = (answer: DayAnswer): boolean => answer.kind === 'rows' || answer.kind === 'empty';

/** True for an answer without any row. */
const isEmpty = (answer: DayAnswer): boolean => isRead(answer) && rowCount(answer) === 0;

// The proofs in the rows of an export. Two rows are apart only if they are apart in every datetime system column that
// has values. Whichever of these columns the service selects by, an end that is not included, or that means midnight
// (server BETWEEN 'D' AND 'D'), leaves at most one instant of that day in it; the columns that it does not select by
// may show hours all the same.

/** Shorter than the shortest day, which has 23 hours. */
const NEARLY_A_DAY_MS = 22 * HOUR_MS;
const EVENT_DATETIME = 'df_event_datetime';
const DATETIMES = new Set([SERVER_DATETIME, CORRECTION_DATETIME, EVENT_DATETIME]);

/** False if `df_event_datetime` is dropped, the only such column that can be: then nothing is proved. */
const canProve = ({ deps }: Extraction): boolean => deps.options.edits?.drop.has(EVENT_DATETIME) !== true;

/** True if an export of a single day has rows an hour apart, so that it contains more of the day than an instant. */
const provesSingleDays = (extraction: Extraction, { files }: Download): boolean =>
  canProve(extraction) && files.some(({ scan }) => spans(scan.columns, 1));

/** True if several days have rows so far apart that some are of the last; a day has 25 hours at most. */
const provesRange = (extraction: Extraction, { from, to, files }: Download): boolean =>
  canProve(extraction) && from < to && files.some(({ scan }) => spans(scan.columns, daysBetween(from, to) * 24 + 2));

/** True if the datetime system columns with values, one at least, all have rows so many hours apart. */
export function spans(columns: readonly ColumnScan[], hours: number): boolean {
  const filled = filledDatetimes(columns);
  return filled.length > 0 && filled.every(({ first, last }) => msOf(last) - msOf(first) >= hours * HOUR_MS);
}

/** True if in no datetime system column a whole day fits between `before` and `after`. */
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

/** Milliseconds of an ISO text without a zone; NaN for undefined, for which no comparison is true. */
const msOf = (text: string | undefined): number =>
  text === undefined ? Number.NaN : Date.parse(`${text.slice(0, 23)}Z`);
