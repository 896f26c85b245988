import { createHash } from 'node:crypto';
import { addDays, type Day } from '../../base/days.ts';
import { configError, transientError, UserError } from '../../base/errors.ts';
import { plainCount } from '../../base/quantities.ts';
import { lastDayOver, lastDayOverFor } from '../plan/calendar.ts';
import type { DayDownload, Receipt } from '../receipt.ts';
import type { ExportFile } from './attempt.ts';
import { type DayAnswer, findEndDay } from './end-day.ts';
import { discard, type Exported, fetchExport, newEffort, rowCount } from './export.ts';
import { fetchParts } from './parts.ts';
import type { Run } from './run.ts';

/** What became of one day of a plan. */
export type DayResult =
  | { readonly kind: 'day'; readonly day: Day; readonly download: DayDownload }
  /** The service no longer exports it. */
  | { readonly kind: 'gone'; readonly day: Day }
  /** It is not over, and was not loaded: the next run reads it. */
  | { readonly kind: 'open'; readonly day: Day; readonly error: UserError }
  /** It is over and cannot be loaded; other days may. */
  | { readonly kind: 'failed'; readonly day: Day; readonly error: UserError };

/** An answer that means something only if the service exports another day. */
export interface Unproven {
  readonly kind: 'unproven';
  /** What became of the day, once it is known whether another day was exported as CSV. */
  decide(isExported: boolean): Promise<DayResult>;
}

/** Downloads one day and checks it. Throws a failure that ends the run. */
export async function downloadDay(run: Run, day: Day): Promise<DayResult | Unproven> {
  const { facts, plan } = run;
  const now = facts.earlierTime();
  const isOver = day <= lastDayOver(now);
  if (plan.settleHours !== undefined && day > lastDayOverFor(now, plan.settleHours)) {
    const error = transientError(`${day} has not been over for ${plan.settleHours} hours by the clock of the service.`);
    return { kind: 'open', day, error };
  }
  if (facts.goneThrough !== undefined && day <= facts.goneThrough) return { kind: 'gone', day };
  const result = await new DayDownloader(run, day, isOver).download();
  if (result.kind === 'gone') facts.recordGone(day);
  return result;
}

/** The files of a day, with the `to_date` that was sent. */
interface Found {
  readonly to: Day;
  readonly files: readonly ExportFile[];
}

type Outcome = Found | DayResult;

/** An outcome, or the way to it once it is known whether another day was exported. */
type Step = Outcome | ((isExported: boolean) => Promise<Outcome>);

class DayDownloader {
  readonly #run: Run;
  readonly #day: Day;
  readonly #isOver: boolean;
  readonly #effort = newEffort();

  constructor(run: Run, day: Day, isOver: boolean) {
    this.#run = run;
    this.#day = day;
    this.#isOver = isOver;
  }

  async download(): Promise<DayResult | Unproven> {
    const { plan } = this.#run;
    const day = this.#day;
    const first = day === plan.endDayOn ? await findEndDay(this.#run, day, this.#effort) : await this.#request();
    const step = await this.#filesOf(first);
    if (typeof step !== 'function') return this.#finish(step);
    return { kind: 'unproven', decide: async (isExported) => this.#finish(await step(isExported)) };
  }

  async #finish(found: Outcome): Promise<DayResult> {
    const kept = 'kind' in found ? found : await this.#notFewer(found);
    return 'kind' in kept ? kept : { kind: 'day', day: this.#day, download: this.#downloadOf(kept) };
  }

  async #request(
    to = this.#run.facts.toDateInclusive === true ? this.#day : addDays(this.#day, 1),
  ): Promise<DayAnswer> {
    const request = { ...this.#run.plan.filters, from: this.#day, to, effort: this.#effort };
    return { to, answer: await fetchExport(this.#run, request) };
  }

  /**
   *   answer      a day that is over                                        a day that is not over
   *   file        its rows                                                  its rows
   *   empty       no rows, if it comes twice and others are exported        left to the next run
   *   too_big     its parts, if others are exported                         left to the next run
   *   gone        gone                                                      left to the next run
   *   failed      failed; a configuration failure ends the run              left to the next run
   *   invalid     a configuration failure ends the run                      left to the next run
   */
  async #filesOf({ to, answer }: DayAnswer): Promise<Step> {
    const day = this.#day;
    if (answer.kind === 'file') return { to, files: [answer] };
    if (!this.#isOver) return { kind: 'open', day, error: this.#refusal(answer) };
    switch (answer.kind) {
      case 'gone':
        return { kind: 'gone', day };
      case 'empty':
        return this.#confirmEmpty(to, answer.what);
      case 'too_big':
        return this.#parts(to, answer);
      case 'failed':
        if (answer.error.kind === 'config') throw answer.error;
        return this.#failed(answer.error);
      case 'invalid':
        throw this.#refusal(answer);
    }
  }

  #refusal(answer: Exclude<Exported, ExportFile>): UserError {
    if (answer.kind === 'failed') return answer.error;
    const where = { day: this.#day };
    if (answer.kind === 'empty') return transientError(`${this.#day} was answered with ${answer.what}.`, { where });
    const message = `The service does not export ${this.#day}: ${answer.message}`;
    return answer.kind === 'too_big'
      ? transientError(`${message}. Run again later.`, { where })
      : configError(message, { where });
  }

  #failed(error: UserError): DayResult {
    return { kind: 'failed', day: this.#day, error };
  }

  /** Asks once more after an answer without data (rule *Empty answers*). */
  async #confirmEmpty(to: Day, what: string): Promise<Step> {
    const day = this.#day;
    const { facts, plan } = this.#run;
    const again = await this.#request();
    if (again.answer.kind !== 'empty') return this.#filesOf(again);
    if (again.answer.what !== what) {
      return this.#failed(transientError(`${day} was answered with ${what}, then with ${again.answer.what}.`));
    }
    const where = { day };
    const stored = this.#stored(to);
    if (stored.rows > 0) {
      const message = `${day} has ${plainCount(stored.rows, 'row')} and is now answered with ${what}: the stored rows stay. Run again later.`;
      return this.#failed(transientError(message, { where }));
    }
    const decide = async (isExported: boolean) => this.#empty(to, what, isExported);
    return facts.hasExported || plan.receipts.size > 0 ? decide(true) : decide;
  }

  /** The files of a day that was answered without data, twice. */
  #empty(to: Day, what: string, isExported: boolean): Found {
    const day = this.#day;
    const where = { day };
    if (isExported) {
      const message = `${day} is answered with ${what}, twice: it counts as a day without rows.`;
      this.#run.deps.logger.warn('day.empty_answer', message, { day });
      return { to, files: [] };
    }
    if (what === '404') {
      const message = `The service knows no export under base_url (404) for ${day} and others: is base_url right?`;
      throw configError(message, { where });
    }
    const message =
      `${day} is answered with ${what}, and no other day is exported as CSV: ` +
      'whether there are no events is not known. Run again later.';
    throw transientError(message, { where });
  }

  /** Requests a day that is too large in parts, if the service can export another one. */
  #parts(to: Day, answer: Exclude<Exported, ExportFile>): Step | Promise<Outcome> {
    const { plan, facts, deps } = this.#run;
    const day = this.#day;
    const decide = async (isExported: boolean): Promise<Outcome> => {
      if (!isExported) return this.#failed(this.#refusal(answer));
      const message = `${day} is too large for one export: it is requested in parts by event name.`;
      deps.logger.warn('day.parts', message, { day });
      const files = await fetchParts(this.#run, { ...plan.filters, from: day, to, effort: this.#effort });
      return files instanceof UserError ? this.#failed(files) : { to, files };
    };
    const over = lastDayOver(facts.earlierTime());
    const isAlone = !plan.days.some((other) => other !== day && other <= over);
    return isAlone || facts.hasExported ? decide(true) : decide;
  }

  /** Downloads a day once more if it has fewer rows than are stored (rule *Fewer rows*). */
  async #notFewer(found: Found): Promise<Outcome> {
    const { deps } = this.#run;
    const day = this.#day;
    const stored = this.#stored(found.to);
    const rows = rowCount(found.files);
    const isEnough = (count: number) => count >= stored.rows || (count > 0 && !stored.isSameRequest);
    if (isEnough(rows)) return found;
    const step = await this.#filesOf(await this.#request(found.to));
    // This day was exported as CSV: nothing is left to be proved.
    const again = typeof step === 'function' ? await step(true) : step;
    await discard(...found.files);
    if ('kind' in again) return again;
    const now = rowCount(again.files);
    if (isEnough(now)) return again;
    if (now === rows) {
      const message = `${day} has ${plainCount(rows, 'row')} now and had ${stored.rows}: two downloads agree, the day is replaced.`;
      deps.logger.warn('day.fewer_rows', message, { day, rows, before: stored.rows });
      return again;
    }
    await discard(...again.files);
    const message =
      `${day} had ${plainCount(stored.rows, 'row')} and came with ${rows}, then with ${now}: ` +
      'downloads may have been cut, the stored rows stay. Run again later.';
    const error = transientError(message, { where: { day } });
    return this.#isOver ? this.#failed(error) : { kind: 'open', day, error };
  }

  /**
   * The rows that the day had: as counted by the same request, else those of the place. With another `to_date`, a request
   * may have counted rows of the next day, and so says only whether the day has any.
   */
  #stored(to: Day): { readonly rows: number; readonly isSameRequest: boolean } {
    const { plan } = this.#run;
    const stored = plan.isMixed ? undefined : plan.receipts.get(this.#day);
    if (stored === undefined || stored.pruned === true) return { rows: 0, isSameRequest: false };
    const isSameRequest = stored.to_date === to;
    return { rows: isSameRequest ? stored.rows : (stored.rows_stored ?? 0), isSameRequest };
  }

  #downloadOf({ to, files }: Found): DayDownload {
    const { facts, deps } = this.#run;
    const sentAt = files.length === 0 ? facts.earlierTime() : Math.min(...files.map((file) => file.sentAt));
    const sum = (of: (file: ExportFile) => number) => files.reduce((total, file) => total + of(file), 0);
    const receipt: Receipt = {
      v: 1,
      day: this.#day,
      to_date: to,
      requested_at: new Date(sentAt).toISOString(),
      is_over: this.#day <= lastDayOver(sentAt),
      filters: this.#run.plan.hashes.filters,
      rows: rowCount(files),
      suppressed: sum((file) => file.scan.suppressed),
      bytes: sum((file) => file.bytes),
      sha256: hashOf(files),
      exports: this.#effort.exports,
      invalid_utf8: sum((file) => file.scan.invalidUtf8.cells),
      verified_at:
        files
          .map((file) => file.verifiedAt)
          .sort()
          .at(-1) ?? new Date(deps.clock.now()).toISOString(),
    };
    this.#warnOfInvalidUtf8(files);
    return { receipt, files: files.map(({ path, scan }) => ({ path, ...scan })), mayShareRows: to > this.#day };
  }

  #warnOfInvalidUtf8(files: readonly ExportFile[]): void {
    for (const { scan } of files) {
      const { cells, first } = scan.invalidUtf8;
      if (first === undefined) continue;
      const message =
        `${this.#day}: bytes that are not valid UTF-8 are kept as U+FFFD, in ${plainCount(cells, 'cell')}, ` +
        `first in row ${first.row}, column ${first.column}.`;
      this.#run.deps.logger.warn('day.invalid_utf8', message, { day: this.#day, cells, ...first });
    }
  }
}

/** SHA-256 of one file, of several that of their hashes, of none that of no byte. */
function hashOf(files: readonly ExportFile[]): string {
  const [first, ...others] = files;
  if (first !== undefined && others.length === 0) return first.sha256;
  return createHash('sha256')
    .update(files.map((file) => file.sha256).join(''))
    .digest('hex');
}
