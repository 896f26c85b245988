import { addDays, type Day, formatDays, laterOf } from '../base/days.ts';
import { configError, EXIT, messageOf, severityOf, transientError, type UserError } from '../base/errors.ts';
import { groupBy } from '../base/group.ts';
import { plainCount } from '../base/quantities.ts';
import { type CheckedDay, hasOtherFilters, type Receipt, type ReceiptSummary } from './checked-day.ts';
import type { DayResult, FailedDay, UnprovenDay } from './download/day-download.ts';
import type { CommitInfo } from './export-state.ts';
import type { ExtractDeps } from './extract-deps.ts';
import { usualRowsIfImplausible } from './plausibility.ts';
import type { RunPlan } from './which-days.ts';

/** Failures of the service after which a run gives up: it is probably down. */
const MAX_SERVICE_FAILURES = 3;

/**
 * The results of the days of one plan, and what follows: warnings, failures, the next state of a place or stream.
 *
 *   a day that was not loaded     what follows
 *   gone, and wanted or named     a gap: fails the run, or is recorded (`on_gap`)
 *   gone, and wanted by nobody    a warning
 *   failed, and over              fails the run; at once, if it is the third that the service failed for
 *   failed, and open              a warning; fails a run that loaded no day
 *   unproven                      a day without rows, if the service has exported another day by then; else it fails
 *                                 the run
 */
export class RunResults {
  /** Receipts before the run, and of the days that it loaded. */
  readonly receipts: Map<Day, ReceiptSummary>;
  readonly implausibleDays: Day[] = [];
  readonly #plan: RunPlan;
  readonly #deps: ExtractDeps;
  readonly #loadedReceipts: Receipt[] = [];
  /** Days that are gone, in order. */
  readonly #goneDays: Day[] = [];
  /** Of the days that are over and failed. */
  readonly #dayErrors: UserError[] = [];
  readonly #unprovenDays: UnprovenDay[] = [];
  /** Of the first day that failed and is not over. */
  #openDayError: UserError | undefined;

  constructor(plan: RunPlan, deps: ExtractDeps) {
    this.#plan = plan;
    this.#deps = deps;
    this.receipts = new Map(plan.receipts);
  }

  /** Takes the result of the next day; returns what is to be stored. Throws once too many days have failed. */
  add(dayResult: DayResult): CheckedDay | undefined {
    switch (dayResult.kind) {
      case 'downloaded':
        return this.#addDownloaded(dayResult.checkedDay);
      case 'unproven':
        return this.#addUnproven(dayResult);
      case 'gone':
        this.#goneDays.push(dayResult.day);
        return undefined;
      case 'failed':
        return this.#addFailed(dayResult);
    }
  }

  #addDownloaded(checkedDay: CheckedDay): CheckedDay {
    const { receipt } = checkedDay;
    const { day, rows, to_date, is_over, requested_at } = receipt;
    if (day === this.#plan.lookedBackTo) this.#warnOfLateRows(receipt, this.receipts.get(day));
    this.#loadedReceipts.push(receipt);
    this.receipts.set(day, { rows, to_date, is_over, requested_at });
    const usualRows = usualRowsIfImplausible(day, this.receipts);
    if (usualRows !== undefined) this.#addImplausible(receipt, usualRows);
    return checkedDay;
  }

  #addImplausible({ day, rows }: Receipt, usualRows: number): void {
    this.implausibleDays.push(day);
    const message =
      `${day} has ${plainCount(rows, 'row')}; its weekday has ${Math.round(usualRows)} as a rule. The provider may be ` +
      'late, or may have changed whether an export includes its to_date (see to_date_inclusive).';
    this.#deps.logger.warn('day.implausible', message, { day, rows, usual: usualRows });
  }

  /** Warns if the oldest day that was looked back at gained rows: days before it may have gained some, too. */
  #warnOfLateRows({ day, rows, to_date }: Receipt, before: ReceiptSummary | undefined): void {
    if (before?.to_date !== to_date || hasOtherFilters(before, this.#plan.fingerprints.filters) || rows <= before.rows)
      return;
    const message =
      `${day} has ${plainCount(rows - before.rows, 'row')} more than before. It is the oldest day that this run looked back ` +
      'at, so later events may be missing: set lookback_days to a larger number.';
    this.#deps.logger.warn('day.late_rows', message, { day, rows: rows - before.rows });
  }

  #addUnproven(unprovenDay: UnprovenDay): CheckedDay | undefined {
    const { service, logger } = this.#deps;
    if (!service.hasExportedDay) {
      this.#unprovenDays.push(unprovenDay);
      return undefined;
    }
    const { day, checkedDay, emptyAnswer } = unprovenDay;
    logger.warn('day.empty_answer', `${day}: ${emptyAnswer.clause}, twice. It counts as a day without rows.`, { day });
    return this.#addDownloaded(checkedDay);
  }

  /** Days that an earlier run wanted, or that the caller named, and that the service no longer exports. */
  get gaps(): readonly Day[] {
    return this.#goneDays.filter((day) => this.#isGap(day));
  }

  #isGap(day: Day): boolean {
    const { mode, state } = this.#plan;
    if (mode !== 'sync') return mode === 'named';
    const wasWanted = state !== undefined && day >= state.from_date;
    return wasWanted && this.receipts.get(day)?.is_over !== true;
  }

  #addFailed({ day, error, isOver }: FailedDay): undefined {
    if (isOver) {
      this.#dayErrors.push(error);
      if (this.#isServiceDown) throw this.failure;
      return;
    }
    this.#openDayError ??= error;
    const message = `${day} is not over and was not loaded, the next run reads it: ${error.message}`;
    this.#deps.logger.warn('day.open', message, { day });
  }

  /** A body that can never be read says nothing of other days, once the service has exported one. */
  get #isServiceDown(): boolean {
    const { hasExportedDay } = this.#deps.service;
    const serviceErrors = this.#dayErrors.filter(({ kind }) => kind === 'transient' || !hasExportedDay);
    return serviceErrors.length >= MAX_SERVICE_FAILURES;
  }

  commitInfo(): CommitInfo {
    const { settings, fingerprints, appends, mode, state, start, oldestDay } = this.#plan;
    const lastUnwanted = this.#goneDays.findLast((day) => !this.#isGap(day));
    // A history that has no start yet begins after the days that nobody wanted before.
    const isShortened = lastUnwanted !== undefined && state?.start_date === undefined;
    const { includesToDate, hasFinalNewline } = this.#deps.service;
    return {
      oldestDay,
      start: isShortened ? laterOf(start, addDays(lastUnwanted, 1)) : start,
      fingerprints,
      appends,
      alwaysWrites: mode !== 'sync',
      gaps: this.#failsAtGap ? [] : this.gaps,
      includesToDate: settings.toDateInclusive === 'auto' ? includesToDate : undefined,
      hasFinalNewline,
    };
  }

  get #failsAtGap(): boolean {
    const { mode, settings } = this.#plan;
    return mode === 'named' || settings.onGap === 'fail';
  }

  get #gapError(): UserError | undefined {
    return this.#failsAtGap ? gapError(this.gaps, this.#plan.mode) : undefined;
  }

  /** Why the run fails, whatever the days to come bring. */
  get failure(): UserError | undefined {
    return mostSevere([this.#gapError, ...this.#dayErrors]);
  }

  /** Warns of what is left once all days are known. Throws why the run fails, if it does. */
  finish(): void {
    const { logger, service } = this.#deps;
    const { unseenColumns } = service;
    const hasLoaded = this.#loadedReceipts.length > 0;
    if (unseenColumns.size > 0 && hasLoaded) {
      const columns = [...unseenColumns].join(', ');
      const message = `columns_drop and columns_hash name what no export of this run had: ${columns}. Names count letter by letter.`;
      logger.warn('columns.unseen', message, { columns });
    }
    const error = this.failure ?? unprovenError(this.#unprovenDays) ?? (hasLoaded ? undefined : this.#openDayError);
    if (error !== undefined) throw error;
  }

  /** Logs days that are gone or empty, and the failures but for the one that the caller reports. Called once. */
  logEnd(reported?: unknown): void {
    const { logger } = this.#deps;
    for (const [isGap, days] of groupBy(this.#goneDays, (day) => this.#isGap(day))) {
      // The failure names these.
      if (isGap && this.#failsAtGap) continue;
      const message = `The service no longer exports ${formatDays(days)}: reading goes on after that.`;
      logger.warn(isGap ? 'day.gap' : 'plan.shortened', message);
    }
    const emptyDays = this.#loadedReceipts.filter(({ is_over, rows }) => is_over && rows === 0).map(({ day }) => day);
    if (emptyDays.length > 0) logger.info('day.empty', `Days without rows: ${formatDays(emptyDays)}.`);
    for (const error of [this.#gapError, ...this.#dayErrors, unprovenError(this.#unprovenDays)])
      if (error !== undefined && error.message !== messageOf(reported))
        logger.error('day.failed', error.message, { ...error.where });
  }

  /** Days that the caller named, and that were not over when they were loaded. */
  get openDays(): readonly Day[] {
    if (this.#plan.mode !== 'named') return [];
    return this.#loadedReceipts.filter(({ is_over }) => !is_over).map(({ day }) => day);
  }
}

/** The most severe of these errors; the first of those. */
const mostSevere = (errors: readonly (UserError | undefined)[]): UserError | undefined =>
  errors.filter((error) => error !== undefined).sort((a, b) => severityOf(b.exitCode) - severityOf(a.exitCode))[0];

/** The failure for days without data of which nobody knows whether they have rows; undefined if there are none. */
function unprovenError(unprovenDays: readonly UnprovenDay[]): UserError | undefined {
  if (unprovenDays.length === 0) return undefined;
  const days = formatDays(unprovenDays.map(({ day }) => day));
  return transientError(
    `${days}: ${unprovenDays[0].emptyAnswer.clause} before the service exported any day as CSV. ` +
      'So it is not known whether there are no events: nothing was stored of them, run again later.',
  );
}

/** The failure for gaps (exit 4); undefined if there are none. */
function gapError(days: readonly Day[], mode: RunPlan['mode']): UserError | undefined {
  if (days.length === 0) return undefined;
  const statement = `${plainCount(days.length, 'day')} can no longer be exported`;
  const { lost: exitCode } = EXIT;
  if (mode === 'named')
    return configError(`${statement}: ${formatDays(days)}. Name later days with --from and --to.`, { exitCode });
  const lossSentence = `${statement} and would be lost: ${formatDays(days)}.`;
  const message =
    `${lossSentence} Load a CSV file of each from the provider: load … --day ${days[0]}. ` +
    'Or set on_gap to warn to record the gap and go on.';
  const platformMessage = `${lossSentence} Set on_gap to warn to record the gap and go on.`;
  return configError(message, { exitCode, platformMessage });
}
