// This folder: one day, from its request to a checked download. `day.ts` says what an answer means for a day,
// `end-day.ts` finds out whether an export includes its end, and `parts.ts` divides a day that is too large.

import { type Day, laterOf } from '../../base/days.ts';
import { configError, transientError, UserError } from '../../base/errors.ts';
import { plainCount } from '../../base/quantities.ts';
import { downloadChecked } from '../../service/export/download.ts';
import type { ExportRefusal } from '../../service/export/protocol.ts';
import {
  type CheckedFile,
  type DayDownload,
  dayDownload,
  discard,
  type ExportResult,
  rowCount,
  type SendExport,
} from '../day-download.ts';
import { lastDayOver } from '../plan/calendar.ts';
import { hasOtherFilters } from '../receipt.ts';
import { findEndDay } from './end-day.ts';
import { fetchParts, withoutDay } from './parts.ts';
import type { Run } from './run.ts';

/** What became of one day of a plan. */
export type DayResult =
  | { readonly kind: 'loaded'; readonly day: Day; readonly download: DayDownload }
  /** It is over and was answered without data, twice: a day without rows, if the service exports other days. */
  | { readonly kind: 'empty'; readonly day: Day; readonly download: DayDownload; readonly answeredWith: string }
  /** The service no longer exports it. */
  | { readonly kind: 'gone'; readonly day: Day }
  /** It is not over, and was not loaded: the next run reads it. */
  | { readonly kind: 'open'; readonly day: Day; readonly error: UserError }
  /** It is over and cannot be loaded; other days may. */
  | { readonly kind: 'failed'; readonly day: Day; readonly error: UserError };

/** Codes of bodies that no other download makes readable. */
const UNREADABLE = new Set(['not_csv', 'zip', 'content_encoding', 'charset']);

/** Downloads one day and checks it. Throws a failure that ends the run. */
export async function downloadDay(run: Run, day: Day): Promise<DayResult> {
  if (run.goneThrough !== undefined && day <= run.goneThrough) return { kind: 'gone', day };
  const result = await new DayExport(run, day).download();
  if (result.kind === 'gone') run.goneThrough = laterOf(day, run.goneThrough ?? day);
  return result;
}

class DayExport {
  readonly #run: Run;
  readonly #day: Day;
  /** Instant before the first request (ms since 1970). */
  readonly #began: number;
  readonly #isOver: boolean;
  /** Requests that were sent. */
  #exports = 0;

  constructor(run: Run, day: Day) {
    this.#run = run;
    this.#day = day;
    this.#began = run.deps.clock.now();
    this.#isOver = day <= lastDayOver(this.#began);
  }

  /** Exports the day until the answer is final. Throws a failure of the quota, of the clocks or of the disk. */
  readonly #export: SendExport = async (changes) => {
    const run = this.#run;
    const { service, timezone, suppression, edits } = run.deps;
    const request = { ...run.plan.filters, from: this.#day, to: run.toDateOf(this.#day), ...changes };
    const result = await downloadChecked({
      ...run.deps,
      signal: run.signal,
      label: request.from,
      finalNewline: run.finalNewline,
      mayGrow: !this.#isOver,
      send: (signal) => {
        this.#exports++;
        return service.exportEvents(request, signal);
      },
      open: () => run.folder.newFile(),
      scan: { timezone, requireSystem: true, suppression, edits },
    });
    if (result.kind === 'checked') run.recordExported(result);
    return result;
  };

  async download(): Promise<DayResult> {
    const findsEnd = this.#day === this.#run.plan.endDayOn;
    const answer = findsEnd ? await findEndDay(this.#run, this.#day, this.#export) : await this.#export();
    const result = await this.#resultOf(answer);
    return Array.isArray(result) ? this.#unlessFewer(result) : result;
  }

  /**
   * The files of the day, or what became of it without any.
   *
   *   answer                     a day that is over                       a day that is not over
   *   a file                     its rows                                 its rows
   *   without data               no rows, if it comes twice               left to the next run
   *   retry_or_split             its parts                                left to the next run
   *   gone                       gone                                     left to the next run
   *   retry, wait                failed                                   left to the next run
   *   a body of another format   failed: another download is the same     left to the next run
   *   config, invalid            ends the run                             left to the next run
   */
  async #resultOf(answer: ExportResult): Promise<CheckedFile[] | DayResult> {
    const day = this.#day;
    if (answer.kind === 'checked') return [answer];
    if (!this.#isOver) return { kind: 'open', day, error: refusalError(day, answer) };
    if (answer.emptyAs !== undefined) return this.#confirmEmpty(answer.emptyAs);
    switch (answer.kind) {
      case 'gone':
        return { kind: 'gone', day };
      case 'retry_or_split':
        return this.#inParts();
      case 'retry':
      case 'wait':
        return this.#failed(refusalError(day, answer));
      case 'config':
      case 'invalid':
        if (UNREADABLE.has(answer.code)) return this.#failed(unreadableError(day, answer));
        throw refusalError(day, answer);
    }
  }

  #failed(error: UserError): DayResult {
    return { kind: 'failed', day: this.#day, error };
  }

  /** Asks once more after an answer without data. Such an answer never replaces rows. */
  async #confirmEmpty(answeredWith: string): Promise<CheckedFile[] | DayResult> {
    const day = this.#day;
    const second = await this.#export();
    if (second.kind === 'checked' || second.emptyAs === undefined) return this.#resultOf(second);
    if (second.emptyAs !== answeredWith) {
      return this.#failed(transientError(`${day} was answered with ${answeredWith}, then with ${second.emptyAs}.`));
    }
    const stored = this.#storedRows();
    if (stored.rows === 0) return { kind: 'empty', day, download: this.#downloadOf([]), answeredWith };
    const message = `${day} has ${plainCount(stored.rows, 'row')} and is now answered with ${answeredWith}: the stored rows stay. Run again later.`;
    return this.#failed(transientError(message, { where: { day } }));
  }

  /** Requests a day that is too large in parts. */
  async #inParts(): Promise<CheckedFile[] | DayResult> {
    const day = this.#day;
    const message = `${day} is too large for one export: it is requested in parts by event name.`;
    this.#run.deps.logger.warn('day.parts', message, { day });
    const parts = await fetchParts(this.#run, day, this.#export);
    return parts instanceof UserError ? this.#failed(parts) : [...parts];
  }

  /** The day with these files; it is downloaded once more if they have fewer rows than are stored. */
  async #unlessFewer(files: CheckedFile[]): Promise<DayResult> {
    const { logger } = this.#run.deps;
    const day = this.#day;
    const stored = this.#storedRows();
    const rows = rowCount(files);
    const isEnough = (count: number) => count >= stored.rows || (count > 0 && !stored.isSameRequest);
    if (isEnough(rows)) return this.#loaded(files);
    const again = await this.#resultOf(await this.#export());
    await discard(...files);
    if (!Array.isArray(again)) return again;
    const rowsAgain = rowCount(again);
    if (isEnough(rowsAgain)) return this.#loaded(again);
    if (rowsAgain === rows) {
      const message = `${day} has ${plainCount(rows, 'row')} now and had ${stored.rows}: two downloads agree, the day is replaced.`;
      logger.warn('day.fewer_rows', message, { day, rows, before: stored.rows });
      return this.#loaded(again);
    }
    await discard(...again);
    const message =
      `${day} had ${plainCount(stored.rows, 'row')} and came with ${rows}, then with ${rowsAgain}: ` +
      'downloads may have been cut, the stored rows stay. Run again later.';
    const error = transientError(message, { where: { day } });
    return this.#isOver ? this.#failed(error) : { kind: 'open', day, error };
  }

  /**
   * The rows that the day had: as counted by the same request, else those of the place. With another `to_date`, a
   * request may have counted rows of the next day, and so says only whether the day has any. Counts under other filters
   * do not compare.
   */
  #storedRows(): { readonly rows: number; readonly isSameRequest: boolean } {
    const { plan } = this.#run;
    const stored = plan.receipts.get(this.#day);
    if (stored === undefined || stored.pruned === true || hasOtherFilters(stored, plan.hashes)) {
      return { rows: 0, isSameRequest: false };
    }
    const isSameRequest = stored.to_date === this.#run.toDateOf(this.#day);
    return { rows: isSameRequest ? stored.rows : (stored.rows_stored ?? 0), isSameRequest };
  }

  #loaded(files: readonly CheckedFile[]): DayResult {
    return { kind: 'loaded', day: this.#day, download: this.#downloadOf(files) };
  }

  #downloadOf(files: readonly CheckedFile[]): DayDownload {
    const { plan, deps } = this.#run;
    return dayDownload(files, {
      day: this.#day,
      to_date: this.#run.toDateOf(this.#day),
      requested_at: new Date(this.#began).toISOString(),
      is_over: this.#isOver,
      filters: plan.hashes.filters,
      exports: this.#exports,
      verified_at: new Date(deps.clock.now()).toISOString(),
    });
  }
}

function refusalError(day: Day, { kind, code, message, where, emptyAs }: ExportRefusal): UserError {
  const details = { where: { ...where, day }, internal: code };
  if (emptyAs !== undefined) return transientError(`${day} was answered with ${emptyAs}.`, details);
  switch (kind) {
    case 'retry':
    case 'wait':
      return transientError(message, details);
    case 'retry_or_split':
      return transientError(`The service does not export ${day}: ${message}. Run again later.`, details);
    default:
      return configError(`The service does not export ${day}: ${message}`, details);
  }
}

/** The failure of a body that no other download mends. */
function unreadableError(day: Day, { code, message }: ExportRefusal): UserError {
  const advice = `Ask the provider for a CSV file of ${day} and load it: load … --day ${day}.`;
  const platformMessage = `${day}: ${message} Ask the provider to mend the export. ${withoutDay(day)}`;
  return configError(`${day}: ${message} ${advice}`, { where: { day }, internal: code, platformMessage });
}
