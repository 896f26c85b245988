import { daysOf } from '../base/days.ts';
import { configError } from '../base/errors.ts';
import { plainCount } from '../base/quantities.ts';
import { unlisted } from '../schema/column-edits.ts';
import { Cursor, filesOf, foundBy, receiptOf } from './cursor.ts';
import type { DaysResult, Download } from './download/download.ts';
import { earlierClock, type Run } from './download/run.ts';
import { gapError, nameDays } from './plan/gaps.ts';
import type { Receipt, Window } from './window.ts';

/** Makes windows of downloads in the order of days, and reports the days that are lost between them. */
export class WindowBuilder {
  readonly #run: Run;
  readonly #cursor: Cursor;
  #lost: string[] = [];
  #clamped: string[] = [];
  #refusal: string | undefined;
  /** Names of the lists of dropped and hashed columns that a header had; undefined before the first header. */
  #listed: Set<string> | undefined;

  constructor(run: Run) {
    this.#run = run;
    this.#cursor = new Cursor(run.plan);
  }

  /** The window of a download; undefined where there is none. Throws the gap's failure under `on_gap: fail`. */
  take(result: DaysResult): Window | undefined {
    const { days } = result;
    switch (result.kind) {
      case 'gone':
        this.#lose(days.first);
        return undefined;
      case 'invalid':
        this.#refusal = result.message;
        this.#run.deps.logger.debug('window.dropped', `${days.first}: ${result.message}`);
        return undefined;
      case 'later':
        this.#run.deps.logger.info(
          'window.later',
          `${nameDays(daysOf(days.first, days.last))}: left to a later run, ${result.message}.`,
          { window: days.first },
        );
        return undefined;
      case 'rows':
        this.#reportLosses();
        return this.#window(result);
    }
  }

  /** Called after the last window: reports the remaining losses; throws if every request was refused as invalid. */
  finish(): void {
    this.#reportLosses();
    this.#warnOfUnseen();
    if (this.#refusal !== undefined && !this.#run.known.answered) {
      throw configError(
        `The service refuses the export of ${this.#run.plan.firstDay}, which is not over everywhere yet: ${this.#refusal}`,
      );
    }
  }

  #lose(day: string): void {
    if (this.#cursor.lose(day) === 'gap') this.#lost.push(day);
    else this.#clamped.push(day);
  }

  /** Reports consecutive lost days in one message. */
  #reportLosses(): void {
    const { logger } = this.#run.deps;
    const [lost, clamped] = [this.#lost, this.#clamped];
    this.#lost = [];
    this.#clamped = [];
    if (clamped.length > 0) {
      logger.warn('window.clamped', `The service no longer exports ${nameDays(clamped)}: reading goes on after that.`);
    }
    if (lost.length === 0) return;
    this.#run.tally.gaps.push(...lost);
    if (this.#run.plan.onGap === 'fail') throw gapError(lost, this.#run.tally.windows > 0);
    logger.warn('window.gap', `The service no longer exports ${nameDays(lost)}: recorded as a gap.`);
  }

  /** Once a run: warns of listed columns that no export had, since a misspelt name protects nothing. */
  #warnOfUnseen(): void {
    const { edits } = this.#run.deps.options;
    const seen = this.#listed;
    if (edits === undefined || seen === undefined) return;
    const unseen = unlisted(edits, seen);
    if (unseen.length === 0) return;
    this.#run.deps.logger.warn(
      'columns.unseen',
      `columns_drop and columns_hash name what no export of this run had: ${unseen.join(', ')}. Names count letter by letter.`,
      { columns: unseen.join(', ') },
    );
  }

  #window(download: Download): Window {
    for (const { scan } of download.files) {
      if (scan.listed !== undefined) this.#listed = new Set([...(this.#listed ?? []), ...scan.listed]);
    }
    const { deps, known, tally } = this.#run;
    const receipt = receiptOf(download, deps.options.timezone !== undefined);
    const found = foundBy(known, this.#run.plan, this.#cursor.state);
    const state = this.#cursor.take(receipt, found, earlierClock(this.#run));
    this.#warnOfFewerRows(receipt);
    this.#warnOfInvalidUtf8(download);
    tally.windows++;
    return { receipt, files: filesOf(download), state };
  }

  #warnOfFewerRows({ from, to, rows, suppressed }: Receipt): void {
    const before = this.#run.plan.rowsOf?.(from, to);
    if (before === undefined || rows + suppressed >= before) return;
    this.#run.deps.logger.warn(
      'window.fewer_rows',
      `${from} has ${plainCount(rows, 'row')} now and had ${before} when it was read before: rows were removed at the service, or a download was cut.`,
      { window: from, rows, before },
    );
  }

  /** Warns of cells with invalid UTF-8, whose bytes are replaced by U+FFFD: how many, and where the first is. */
  #warnOfInvalidUtf8({ from, files }: Download): void {
    for (const { scan } of files) {
      const { cells, first } = scan.invalidUtf8;
      if (first === undefined) continue;
      this.#run.deps.logger.warn(
        'window.invalid_utf8',
        `${from}: bytes that are not valid UTF-8 are kept as U+FFFD, in ${plainCount(cells, 'cell')}, first in row ${first.row}, column ${first.column}.`,
        { window: from, cells, row: first.row, column: first.column },
      );
    }
  }
}
