import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { addDays, type Day } from '../base/days.ts';
import { codeOf, configError, messageOf } from '../base/errors.ts';
import { plainCount } from '../base/quantities.ts';
import type { ColumnEdits } from '../cells/columns/column-edits.ts';
import type { ColumnScan } from '../cells/columns/column-scan.ts';
import type { Suppression } from '../cells/columns/scanner.ts';
import { MalformedCsv, UnusableCsv } from '../cells/csv/malformed.ts';
import { checkBody } from '../service/export/download.ts';
import { toDateOf } from './export-request.ts';
import { lastDayOver, oldestDay } from './plan/calendar.ts';
import { type CheckedFile, type DayDownload, dayDownload, type PriorReceipt } from './receipt.ts';
import type { RunFolder } from './spool.ts';

// A day whose export lies in a file: the provider sent it, or an earlier download left it. The checks are those of a download.

const READ_BYTES = 1 << 20;

export interface FileDayOptions {
  /** Keeps the checked copy. */
  readonly folder: RunFolder;
  /** Hash of the filters with which the file is taken to be exported. */
  readonly filters: string;
  readonly timezone: string | undefined;
  readonly edits: ColumnEdits | undefined;
  readonly suppression: Suppression | undefined;
  /** Whether an export includes its `to_date`; undefined while it is not known. */
  readonly toDateInclusive: boolean | undefined;
  /** False if the files of the service end without a line end. */
  readonly finalNewline: boolean | undefined;
  /** Time now (ms since 1970). */
  readonly now: number;
  readonly signal: AbortSignal;
}

/** Throws a configuration failure for a day that a sync can still load, or has loaded. */
export function checkNeedsFile(
  day: Day,
  stored: PriorReceipt | undefined,
  { now, historyDays }: { readonly now: number; readonly historyDays: number },
): void {
  const isLoaded = stored?.is_over === true && stored.pruned !== true;
  if (day < oldestDay(now, historyDays) || (day <= lastDayOver(now) && !isLoaded)) return;
  const why = day > lastDayOver(now) ? 'is not over' : 'is loaded, and the service still exports it';
  throw configError(`${day} ${why}: read it again with sync … --from ${day} --to ${day}.`, { where: { day } });
}

/** Checks a file as the export of a day, and copies it. Throws a configuration failure for one that is not whole, or not of the day. */
export async function dayFromFile(file: string, day: Day, options: FileDayOptions): Promise<DayDownload> {
  const { now, signal, filters } = options;
  const where = { file, day };
  const modified = await modifiedAt(file);
  if (modified > now)
    throw configError(`${file} was changed in the future: set its time, or the clock, right.`, { where });
  if (day > lastDayOver(modified)) {
    const at = new Date(modified).toISOString().slice(0, 16);
    throw configError(`${file} was last changed at ${at} UTC, when ${day} was not over: rows may be missing.`, {
      where,
    });
  }
  const copy = await copyChecked(file, options).catch((error) => {
    signal.throwIfAborted();
    if (error instanceof MalformedCsv) throw configError(`${file} is no whole export: ${error.sentence}.`, { where });
    if (error instanceof UnusableCsv) throw configError(`${file} has ${error.fault}: convert it first.`, { where });
    if (codeOf(error) === undefined) throw error;
    throw configError(`${file} cannot be read: ${messageOf(error)}`, { cause: error, where });
  });
  const { scan } = copy;
  if (!scan.finalNewline && options.finalNewline !== false) {
    throw configError(`The last row of ${file} has no line end, and may be cut: if it is whole, add a line end.`, {
      where,
    });
  }
  if (!scan.columns.some((column) => isAbout(day, column))) {
    throw configError(`${file} has no system column whose first and last time are of ${day}: is it of another day?`, {
      where,
    });
  }
  return dayDownload([copy], {
    day,
    to_date: toDateOf(day, options.toDateInclusive),
    requested_at: new Date(modified).toISOString(),
    is_over: true,
    filters,
    exports: 0,
    verified_at: new Date(now).toISOString(),
    source: 'file',
  });
}

/** Throws a configuration failure for a file with fewer rows than a place has of its day. */
export function checkNotFewer(file: string, { receipt: { day, rows } }: DayDownload, stored: PriorReceipt | undefined) {
  const before = stored?.pruned === true ? 0 : (stored?.rows_stored ?? 0);
  if (rows >= before) return;
  const message = `${file} has ${plainCount(rows, 'row')} of ${day}, and the place has ${before}: the stored rows stay.`;
  throw configError(message, { where: { file, day } });
}

async function modifiedAt(file: string): Promise<number> {
  try {
    return (await stat(file)).mtimeMs;
  } catch (error) {
    throw configError(`${file} cannot be read: ${messageOf(error)}`, { cause: error, where: { file } });
  }
}

async function copyChecked(file: string, options: FileDayOptions): Promise<CheckedFile> {
  const { timezone, edits, suppression: dropRows, signal, folder } = options;
  const bytes = createReadStream(file, { highWaterMark: READ_BYTES, signal });
  const scan = { timezone, requireSystem: true, dropRows, edits };
  return checkBody(bytes, await folder.newFile(), { scan, signal });
}

/** True for a system column whose first and last time lie on the day, or on one beside it. */
function isAbout(day: Day, { group, first, last }: ColumnScan): boolean {
  if (group !== 'system' || first === undefined || last === undefined) return false;
  return first.slice(0, 10) >= addDays(day, -1) && last.slice(0, 10) <= addDays(day, 1);
}
