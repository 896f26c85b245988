import { createHash } from 'node:crypto';
import { type Day, daysOf, earlierOf } from '../base/days.ts';
import { configError } from '../base/errors.ts';
import type { Logger } from '../base/log.ts';
import { plainCount } from '../base/quantities.ts';
import { unlisted } from '../cells/columns/column-edits.ts';
import { mergeColumns } from '../cells/columns/scan.ts';
import { Cursor } from './cursor.ts';
import { type DaysResult, type Download, type ExportFile, sentAtOf } from './download/download.ts';
import type { Extraction } from './download/extraction.ts';
import { lastDayOver } from './plan/days.ts';
import { gapError, nameDays } from './plan/gaps.ts';
import type { Receipt, SpoolFile, Window } from './window.ts';

/** Makes windows from downloads in the order of days, and reports the days that are lost between them. */
export class WindowBuilder {
  readonly #extraction: Extraction;
  readonly #logger: Logger;
  readonly #cursor: Cursor;
  #hasWindow = false;
  #lost: Day[] = [];
  #clamped: Day[] = [];
  #refusal: string | undefined;
  /** Names of the lists of dropped and hashed columns that any header had; undefined before the first header. */
  #listed: Set<string> | undefined;

  constructor(extraction: Extraction) {
    this.#extraction = extraction;
    this.#logger = extraction.deps.logger;
    this.#cursor = new Cursor(extraction.plan);
  }

  /** Makes the window of a download; undefined for days without one. Throws the gap's failure under `on_gap: fail`. */
  build(result: DaysResult): Window | undefined {
    const { days } = result;
    switch (result.kind) {
      case 'rows':
        this.#reportLosses();
        return this.#window(result);
      case 'gone':
        (this.#cursor.recordLost(days.first) === 'gap' ? this.#lost : this.#clamped).push(days.first);
        break;
      case 'invalid':
        this.#refusal = result.message;
        this.#logger.debug('window.dropped', `${days.first}: ${result.message}`);
        break;
      case 'later': {
        const named = nameDays(daysOf(days.first, days.last));
        const text = `${named}: left to a later run, ${result.message}.`;
        this.#logger.info('window.later', text, { window: days.first });
      }
    }
    return undefined;
  }

  /**
   * Ends the run after its last window: reports the remaining losses, and listed columns that no export had, since a
   * misspelt name protects nothing. Throws if every request was refused as invalid.
   */
  finish(): void {
    this.#reportLosses();
    const { deps, facts, plan } = this.#extraction;
    const { edits } = deps.options;
    const unseen = edits === undefined || this.#listed === undefined ? [] : unlisted(edits, this.#listed);
    if (unseen.length > 0) {
      const columns = unseen.join(', ');
      const text = `columns_drop and columns_hash name what no export of this run had: ${columns}. Names count letter by letter.`;
      this.#logger.warn('columns.unseen', text, { columns });
    }
    if (this.#refusal === undefined || facts.known.answered) return;
    throw configError(
      `The service refuses the export of ${plan.days[0]}, which is not over everywhere yet: ${this.#refusal}`,
    );
  }

  /** Reports consecutive lost days in one message. */
  #reportLosses(): void {
    const { deps, plan } = this.#extraction;
    const [lost, clamped] = [this.#lost, this.#clamped];
    this.#lost = [];
    this.#clamped = [];
    if (clamped.length > 0) {
      const text = `The service no longer exports ${nameDays(clamped)}: reading goes on after that.`;
      this.#logger.warn('window.clamped', text);
    }
    if (lost.length === 0) return;
    for (const day of lost) deps.counts.gaps.push(day);
    if (plan.onGap === 'fail') throw gapError(lost, this.#hasWindow);
    this.#logger.warn('window.gap', `The service no longer exports ${nameDays(lost)}: recorded as a gap.`);
  }

  #window(download: Download): Window {
    const { deps, facts } = this.#extraction;
    for (const { scan } of download.files) {
      if (scan.listed !== undefined) this.#listed = new Set([...(this.#listed ?? []), ...scan.listed]);
    }
    const receipt = receiptOf(download, deps.options.timezone !== undefined);
    const state = this.#cursor.record(receipt, facts.stored(this.#cursor.state), facts.earlierTime());
    this.#warnOf(receipt, download);
    this.#hasWindow = true;
    return { receipt, files: filesOf(download), state };
  }

  /** Warns of fewer rows than before, and of cells with invalid UTF-8, whose bytes are replaced by U+FFFD. */
  #warnOf({ from, to, rows, suppressed }: Receipt, { files }: Download): void {
    const before = this.#extraction.plan.rowsOf?.(from, to);
    if (before !== undefined && rows + suppressed < before) {
      this.#logger.warn(
        'window.fewer_rows',
        `${from} has ${plainCount(rows, 'row')} now and had ${before} when it was read before: ` +
          'rows were removed at the service, or a download was cut.',
        { window: from, rows, before },
      );
    }
    for (const { scan } of files) {
      const { cells, first } = scan.invalidUtf8;
      if (first === undefined) continue;
      this.#logger.warn(
        'window.invalid_utf8',
        `${from}: bytes that are not valid UTF-8 are kept as U+FFFD, in ${plainCount(cells, 'cell')}, ` +
          `first in row ${first.row}, column ${first.column}.`,
        { window: from, cells, row: first.row, column: first.column },
      );
    }
  }
}

export function receiptOf(download: Download, asInstants: boolean): Receipt {
  const { files, split, from, to, days, contains } = download;
  // A window makes a day complete if it certainly contains the day, and the day was over in every time zone when it was
  // requested.
  const last = contains === undefined ? undefined : earlierOf(contains, lastDayOver(sentAtOf(download)));
  const [first, ...others] = files;
  const columns = mergeColumns(
    files.map((file) => file.scan.columns),
    asInstants,
  );
  const sum = (of: (file: ExportFile) => number) => files.reduce((total, file) => total + of(file), 0);
  const hashOfHashes = () => createHash('sha256').update(files.map((file) => file.sha256).join(''));
  return {
    v: 1,
    id: first.id,
    from,
    to,
    covers_from: days.first,
    covers_to: last === undefined || last < days.first ? null : last,
    bytes: sum((file) => file.bytes),
    sha256: others.length === 0 ? first.sha256 : hashOfHashes().digest('hex'),
    rows: sum((file) => file.scan.rows),
    exports: sum((file) => file.exports),
    // The union of the headers of several files, in the order of first occurrence.
    header: others.length === 0 ? first.scan.header : columns.map((column) => column.source),
    columns,
    split,
    verified_at: files.map((file) => file.verifiedAt).sort()[files.length - 1],
    suppressed: sum((file) => file.scan.suppressed),
    invalid_utf8: sum((file) => file.scan.invalidUtf8.cells),
  };
}

export const filesOf = (download: Download): SpoolFile[] =>
  download.files.flatMap(({ path, scan }) => (path === undefined ? [] : [{ path, ...scan }]));
