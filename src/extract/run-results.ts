import { addDays, type Day, formatDays, laterOf } from '../base/days.ts';
import type { UserError } from '../base/errors.ts';
import { unseparatedCount } from '../base/quantities.ts';
import { type CheckedDay, hasOtherFilters, type Receipt, type ReceiptSummary } from './checked-day.ts';
import type { DayResult, FailedDay } from './download/day-download.ts';
import type { CommitInfo } from './export-state.ts';
import type { ExtractDeps } from './extract-deps.ts';
import { usualRowsIfImplausible } from './plausibility.ts';
import { RunFailures } from './run-failures.ts';
import type { RunPlan } from './which-days.ts';

/**
 * The results of the days of one plan, and what follows: warnings, failures, the next state of a place or stream.
 *
 *   a day that was not loaded     what follows
 *   gone, and wanted or named     a gap: fails the run, or is recorded (`on_gap`)
 *   gone, and wanted by nobody    a warning
 *   failed, and over              fails the run; at once, if it is the third that the service failed for
 *   failed, and open              a warning; fails a run that loaded no day
 *   empty answers, nothing more    fails the run
 */
export class RunResults {
  /** Receipts before the run, and of the days that it loaded. */
  readonly receipts: Map<Day, ReceiptSummary>;
  readonly implausibleDays: Day[] = [];
  /** Days that an earlier run wanted, or that the caller named, and that the service no longer exports. */
  readonly gaps: Day[] = [];
  readonly #plan: RunPlan;
  readonly #deps: ExtractDeps;
  readonly #loadedReceipts: Receipt[] = [];
  /** Days that are no longer exported, and that nobody wanted before this run. */
  readonly #unwantedDays: Day[] = [];
  readonly #failures = new RunFailures();

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
      case 'empty_answer':
        this.#failures.addEmptyAnswerDay(dayResult);
        return undefined;
      case 'gone':
        return this.#addGone(dayResult.day);
      case 'failed':
        return this.#addFailed(dayResult);
    }
  }

  #addDownloaded(checkedDay: CheckedDay): CheckedDay {
    const { receipt } = checkedDay;
    const { day, rows, to_date, is_over, requested_at } = receipt;
    if (day === this.#plan.oldestLookbackDay) this.#warnOfLateRows(receipt, this.receipts.get(day));
    this.#loadedReceipts.push(receipt);
    this.receipts.set(day, { rows, to_date, is_over, requested_at });
    const usualRows = usualRowsIfImplausible(day, this.receipts);
    if (usualRows !== undefined) this.#addImplausible(receipt, usualRows);
    return checkedDay;
  }

  #addImplausible({ day, rows }: Receipt, usualRows: number): void {
    this.implausibleDays.push(day);
    const message =
      `${day} has ${unseparatedCount(rows, 'row')}; its weekday has ${Math.round(usualRows)} as a rule. The provider may be ` +
      'late, or may have changed whether an export includes its to_date (see to_date_inclusive).';
    this.#deps.logger.warn('day.implausible', message, { day, rows, usual: usualRows });
  }

  /** Warns if the oldest day that was looked back at gained rows: days before it may have gained some, too. */
  #warnOfLateRows({ day, rows, to_date }: Receipt, before: ReceiptSummary | undefined): void {
    const { filtersHash } = this.#plan.fingerprints;
    if (before?.is_over !== true || before.to_date !== to_date || rows <= before.rows) return;
    if (hasOtherFilters(before, filtersHash)) return;
    const message =
      `${day} has ${unseparatedCount(rows - before.rows, 'row')} more than before. It is the oldest day that this run looked back ` +
      'at, so later events may be missing: set lookback_days to a larger number.';
    this.#deps.logger.warn('day.late_rows', message, { day, rows: rows - before.rows });
  }

  #addGone(day: Day): undefined {
    const isGap = this.#isGap(day);
    (isGap ? this.gaps : this.#unwantedDays).push(day);
    if (isGap && this.#failsAtGap) this.#failures.setGaps(this.gaps, this.#plan.mode);
  }

  #isGap(day: Day): boolean {
    const { mode, state } = this.#plan;
    if (mode !== 'sync') return mode === 'named';
    const wasWanted = state !== undefined && day >= state.from_date;
    return wasWanted && this.receipts.get(day)?.is_over !== true;
  }

  get #failsAtGap(): boolean {
    const { mode, settings } = this.#plan;
    return mode === 'named' || settings.onGap === 'fail';
  }

  #addFailed(failedDay: FailedDay): undefined {
    const { service, logger } = this.#deps;
    const { day, error, isOver } = failedDay;
    this.#failures.addFailedDay(failedDay);
    if (this.#failures.isServiceDown(service.hasExportedDay)) throw this.failure;
    if (isOver) return;
    const message = `${day} is not over and was not loaded, the next run reads it: ${error.message}`;
    logger.warn('day.open', message, { day });
  }

  commitInfo(): CommitInfo {
    const { settings, fingerprints, mode, state, start } = this.#plan;
    const lastUnwanted = this.#unwantedDays.at(-1);
    // A history that has no start yet begins after the days that nobody wanted before.
    const isShortened = lastUnwanted !== undefined && state?.start_date === undefined;
    const { includesToDate, hasFinalNewline } = this.#deps.service;
    return {
      start: isShortened ? laterOf(start, addDays(lastUnwanted, 1)) : start,
      fingerprints,
      alwaysWrites: mode !== 'sync',
      gaps: this.#failsAtGap ? [] : [...this.gaps],
      includesToDate: settings.toDateInclusive === 'auto' ? includesToDate : undefined,
      hasFinalNewline,
    };
  }

  /** Why the run fails, whatever the days to come bring. */
  get failure(): UserError | undefined {
    return this.#failures.certainError;
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
    const error = this.#failures.errorAtEnd(hasLoaded);
    if (error !== undefined) throw error;
  }

  /** Logs days that are gone or empty, and the failures but for `reported`, which the caller reports. Called once. */
  logEnd(reported?: unknown): void {
    const { logger } = this.#deps;
    const logGone = (event: string, days: readonly Day[]) => {
      if (days.length === 0) return;
      logger.warn(event, `The service no longer exports ${formatDays(days)}: reading goes on after that.`);
    };
    logGone('plan.shortened', this.#unwantedDays);
    // Gaps at which the run fails are in its failure.
    if (!this.#failsAtGap) logGone('day.gap', this.gaps);
    const emptyDays = this.#loadedReceipts.filter(({ is_over, rows }) => is_over && rows === 0).map(({ day }) => day);
    if (emptyDays.length > 0) logger.info('day.empty', `Days without rows: ${formatDays(emptyDays)}.`);
    for (const { message, where } of this.#failures.otherErrors(reported))
      logger.error('day.failed', message, { ...where });
  }

  /** Days that the caller named, and that were not over when they were loaded. */
  get openDays(): readonly Day[] {
    if (this.#plan.mode !== 'named') return [];
    return this.#loadedReceipts.filter(({ is_over }) => !is_over).map(({ day }) => day);
  }
}
