// This folder: one day, from its request to a checked download. `day-download.ts` says what a download means for a day.
// `end-day.ts` proves whether an export includes its end. `parts.ts` divides a day that is too large.
// `download-queue.ts` downloads several days at once.

import type { Day } from '../../base/days.ts';
import { configError, transientError, UserError } from '../../base/errors.ts';
import { unseparatedCount } from '../../base/quantities.ts';
import { sentenceOf } from '../../base/text.ts';
import type { RunFolder } from '../../fs/run-folder.ts';
import { downloadChecked, downloadError } from '../../service/export/download.ts';
import type { DownloadFailure, EventRequest } from '../../service/export/export-service.ts';
import { lastDayOver } from '../calendar.ts';
import { type CheckedDay, type CheckedFile, checkedDayOf, type DayRequest, hasOtherFilters } from '../checked-day.ts';
import { filtersOf } from '../export-settings.ts';
import type { ExtractDeps } from '../extract-deps.ts';
import { checkedFileOf, openSpoolOutput, removeFiles, type SpooledDownload } from '../spool.ts';
import { type RunPlan, toDateOf } from '../which-days.ts';
import { proveEndDay } from './end-day.ts';
import { adviceToSkip, downloadParts } from './parts.ts';

/** What became of a day. `gone`: the service no longer exports it. */
export type DayResult = DownloadedDay | EmptyAnswerDay | { readonly kind: 'gone'; readonly day: Day } | FailedDay;

interface DownloadedDay {
  readonly kind: 'downloaded';
  readonly day: Day;
  readonly checkedDay: CheckedDay;
}

/** A day with two empty answers. If the service has exported another day by its turn, it is one without rows. */
export interface EmptyAnswerDay {
  readonly kind: 'empty_answer';
  readonly day: Day;
  readonly emptyAnswer: DownloadFailure;
  readonly request: DayRequest;
}

/** A day that was not loaded; other days may be. The next run reads one that is not over. */
export interface FailedDay {
  readonly kind: 'failed';
  readonly day: Day;
  readonly error: UserError;
  readonly isOver: boolean;
}

export interface DownloadDeps extends ExtractDeps, Pick<RunPlan, 'settings' | 'fingerprints' | 'receipts'> {
  readonly spool: RunFolder;
  /** The day that shows whether an export includes its end; undefined if that is known, or if no day is over. */
  readonly endProofDay: Day | undefined;
}

/** Downloads one day and checks it, by as many exports as it takes. */
export class DayDownloader {
  readonly #day: Day;
  readonly #deps: DownloadDeps;
  /** Instant before the first request (ms since 1970). */
  readonly #requestedAt: number;
  readonly #isOver: boolean;
  /** Requests that were sent. */
  #exportCount = 0;

  constructor(day: Day, deps: DownloadDeps) {
    this.#day = day;
    this.#deps = deps;
    this.#requestedAt = deps.clock.now();
    this.#isOver = day <= lastDayOver(this.#requestedAt);
  }

  /** The `to_date` of its requests and of its receipt. It changes once, for the day that proves the end. */
  get #toDate(): Day {
    return toDateOf(this.#day, this.#deps.service.includesToDate);
  }

  /** The result; that of a second download, if the first has fewer rows than are stored. Throws what ends the run. */
  async run(): Promise<DayResult> {
    const { service, settings, endProofDay } = this.#deps;
    const provesEnd = this.#day === endProofDay;
    const download = await (provesEnd ? proveEndDay(this.#day, this.#download, service, settings) : this.#download());
    const firstResult = await this.#dayResultOf(download);
    if (firstResult.kind !== 'downloaded') return firstResult;
    if (firstResult.checkedDay.receipt.rows >= this.#storedRows.minRows) return firstResult;
    const secondResult = await this.#dayResultOf(await this.#download());
    await removeFiles(firstResult.checkedDay.files);
    return secondResult.kind === 'downloaded' ? this.#confirmFewerRows(firstResult, secondResult) : secondResult;
  }

  /** Sends exports until the answer is final. Throws a failure of the quota, of the clocks or of the disk. */
  readonly #download = async (overrides?: Partial<EventRequest>): Promise<SpooledDownload> => {
    const { service, spool, settings } = this.#deps;
    const request = { ...filtersOf(settings), from: this.#day, to: this.#toDate, ...overrides };
    const download = await downloadChecked({
      ...this.#deps,
      request,
      label: request.from,
      expectsFinalNewline: service.hasFinalNewline,
      rowsMayChange: !this.#isOver,
      openOutput: () => openSpoolOutput(spool),
    });
    this.#exportCount += download.exportCount;
    if (download.kind === 'checked') service.learnFromScan(download.scan);
    return download;
  };

  /**
   * What a download means for the day. After an empty answer, a day that is over is requested once more.
   *
   *   download                   a day that is over                       a day that is not over
   *   checked                    its rows                                 its rows
   *   empty, twice               empty_answer, if no rows are stored      left to the next run
   *                              under the same filters; else failed
   *   too_large                  its parts                                left to the next run
   *   gone                       gone                                     left to the next run
   *   unsupported                failed: another download is the same     left to the next run
   *   config, invalid            ends the run                             left to the next run
   *   later                      failed                                   left to the next run
   */
  async #dayResultOf(firstDownload: SpooledDownload): Promise<DayResult> {
    const day = this.#day;
    let download = firstDownload;
    if (firstDownload.kind === 'empty' && this.#isOver) {
      download = await this.#download();
      if (download.kind === 'empty') return this.#emptyTwice(firstDownload, download);
    }
    if (download.kind === 'checked') return this.#downloadedDay([checkedFileOf(download)]);
    if (!this.#isOver) return this.#failed(downloadError(day, download));
    switch (download.kind) {
      case 'too_large':
        return this.#downloadInParts();
      case 'gone':
        return { kind: 'gone', day };
      case 'unsupported':
        return this.#failed(unsupportedError(day, download));
      case 'config':
      case 'invalid':
        throw downloadError(day, download);
      default:
        return this.#failed(downloadError(day, download));
    }
  }

  #failed(error: UserError): DayResult {
    return { kind: 'failed', day: this.#day, error, isOver: this.#isOver };
  }

  #failedForNow(message: string): DayResult {
    return this.#failed(transientError(message, { where: { day: this.#day } }));
  }

  /** A day without rows, as far as two empty answers can show it: they never replace rows of the same filters. */
  #emptyTwice(firstAnswer: DownloadFailure, secondAnswer: DownloadFailure): DayResult {
    const day = this.#day;
    if (secondAnswer.code !== firstAnswer.code)
      return this.#failedForNow(`${day}: ${firstAnswer.clause}, and then ${secondAnswer.clause}.`);
    const { rowsBefore } = this.#storedRows;
    // All rows of the day may have been removed since, those of erased people.
    const isStoredEmpty = rowsBefore === 0 || this.#deps.receipts.get(day)?.rows_stored === 0;
    if (isStoredEmpty) return { kind: 'empty_answer', day, emptyAnswer: firstAnswer, request: this.#request };
    return this.#failedForNow(
      `${day} has ${unseparatedCount(rowsBefore, 'row')}, and now ${firstAnswer.clause}: the stored rows stay. Run again later.`,
    );
  }

  async #downloadInParts(): Promise<DayResult> {
    const day = this.#day;
    const message = `${day} is too large for one export: it is requested in parts by event name.`;
    this.#deps.logger.warn('day.parts', message, { day });
    const { settings, service } = this.#deps;
    const parts = await downloadParts(day, filtersOf(settings), service.eventNames, this.#download);
    return parts instanceof UserError ? this.#failed(parts) : this.#downloadedDay(parts);
  }

  /** Takes the second download if it has enough rows, or as many as the first: then the day has changed. */
  async #confirmFewerRows(firstResult: DownloadedDay, secondResult: DownloadedDay): Promise<DayResult> {
    const day = this.#day;
    const { rowsBefore, minRows } = this.#storedRows;
    const { rows } = firstResult.checkedDay.receipt;
    const { rows: rowsAgain } = secondResult.checkedDay.receipt;
    if (rowsAgain >= minRows) return secondResult;
    if (rowsAgain === rows) {
      const message = `${day} has ${unseparatedCount(rows, 'row')} now and had ${rowsBefore}: two downloads agree, the day is replaced.`;
      this.#deps.logger.warn('day.fewer_rows', message, { day, rows, before: rowsBefore });
      return secondResult;
    }
    await removeFiles(secondResult.checkedDay.files);
    return this.#failedForNow(
      `${day} had ${unseparatedCount(rowsBefore, 'row')} and came with ${rows}, then with ${rowsAgain}: ` +
        'downloads may have been cut, the stored rows stay. Run again later.',
    );
  }

  /**
   * What is stored of the day, as far as it compares with a download. One with fewer than `minRows` may have been cut.
   *
   *   stored                                   rowsBefore              minRows
   *   nothing; pruned; of other filters        0                       0
   *   with the same `to_date`, or from a file  those of the download   rowsBefore
   *   with another, perhaps rows of two days   those of the place      1, if the place has any
   */
  get #storedRows() {
    const { receipts, fingerprints } = this.#deps;
    const receipt = receipts.get(this.#day);
    if (receipt === undefined || receipt.pruned === true || hasOtherFilters(receipt, fingerprints.filtersHash))
      return { rowsBefore: 0, minRows: 0 };
    const { rows, rows_stored: rowsInPlace = 0 } = receipt;
    return receipt.to_date === this.#toDate || receipt.source === 'file'
      ? { rowsBefore: rows, minRows: rows }
      : { rowsBefore: rowsInPlace, minRows: Math.min(rowsInPlace, 1) };
  }

  #downloadedDay(files: readonly CheckedFile[]): DownloadedDay {
    return { kind: 'downloaded', day: this.#day, checkedDay: checkedDayOf(files, this.#request) };
  }

  /** How the day was requested, and verified by now. */
  get #request(): DayRequest {
    const { fingerprints, clock } = this.#deps;
    return {
      day: this.#day,
      to_date: this.#toDate,
      requestedAt: this.#requestedAt,
      is_over: this.#isOver,
      filters: fingerprints.filtersHash,
      exports: this.#exportCount,
      verifiedAt: clock.now(),
    };
  }
}

/** The failure of a body that no other download mends. */
function unsupportedError(day: Day, { code, clause }: DownloadFailure): UserError {
  const sentence = sentenceOf(clause);
  const advice = `Ask the provider for a CSV file of ${day} and load it: load … --day ${day}.`;
  const platformMessage = `${day}: ${sentence} Ask the provider to mend the export. ${adviceToSkip(day)}`;
  return configError(`${day}: ${sentence} ${advice}`, { where: { day }, detail: code, platformMessage });
}
