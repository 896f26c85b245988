// The day of a CSV file that the provider sent, or that an earlier download left. It is checked as a download is.

import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { addDays, type Day, startOf } from '../base/days.ts';
import { codeOf, configError, UserError } from '../base/errors.ts';
import { unseparatedCount } from '../base/quantities.ts';
import type { Runtime } from '../base/runtime.ts';
import type { ColumnScan } from '../cells/columns/column-scanner.ts';
import type { Suppression } from '../cells/columns/export-scanner.ts';
import { MalformedCsv, UnusableCsv } from '../cells/csv/malformed.ts';
import { whyUnreadable } from '../fs/disk-failure.ts';
import { RunFolder } from '../fs/run-folder.ts';
import { checkBody } from '../service/export/checked-body.ts';
import { lastDayOver, oldestExportedDay } from './calendar.ts';
import { type CheckedDay, type CheckedFile, checkedDayOf, type Receipt, type ReceiptSummary } from './checked-day.ts';
import { type ExportSettings, fingerprintsOf, scannerOptionsOf } from './export-settings.ts';
import { type CommitInfo, checkState, type ExportState } from './export-state.ts';
import { checkedFileOf, openSpoolOutput } from './spool.ts';

const READ_BYTES = 1 << 20;

export interface FileToLoad {
  readonly file: string;
  readonly day: Day;
  readonly settings: ExportSettings & { readonly spoolDir: string };
  /** What the place has stored of earlier loads, and of each day. */
  readonly state: ExportState | undefined;
  readonly receipts: ReadonlyMap<Day, ReceiptSummary & Pick<Receipt, 'day' | 'sha256'>>;
  readonly suppression: Suppression | undefined;
}

/**
 * Checks a file as the export of a day, and calls `store` with a checked copy. Throws a configuration failure for a day
 * that a sync can still load. Throws one for a file that is not whole, not of the day, stored under the day
 * beside it, or has fewer rows than are stored. Throws what `store` throws.
 */
export async function loadDayFromFile<T>(
  fileToLoad: FileToLoad,
  { clock, signal }: Pick<Runtime, 'clock' | 'signal'>,
  store: (checkedDay: CheckedDay, commitInfo: CommitInfo) => Promise<T>,
): Promise<T> {
  const { day, settings, state } = fileToLoad;
  const now = clock.now();
  const fingerprints = fingerprintsOf(settings);
  checkState(state, fingerprints, { now, fullRefresh: false });
  const oldestDay = oldestExportedDay(now, settings.historyDays);
  checkNeedsFile(fileToLoad, oldestDay, lastDayOver(now));
  const requestedAt = await lastChangeOf(fileToLoad, now);
  const spool = await RunFolder.open(settings.spoolDir, clock);
  try {
    const copy = await copyToSpool(fileToLoad, spool, signal);
    checkContent(copy, fileToLoad);
    const checkedDay = checkedDayOf([copy], {
      day,
      // Nobody knows where the provider cuts a day: the file may have rows of the days beside it.
      to_date: addDays(day, 1),
      requestedAt,
      is_over: true,
      filters: fingerprints.filtersHash,
      exports: 0,
      verifiedAt: clock.now(),
      source: 'file',
    });
    checkAgainstStored(checkedDay.receipt, fileToLoad);
    return await store(checkedDay, { start: state?.start_date ?? day, fingerprints, alwaysWrites: true });
  } finally {
    await spool.remove();
  }
}

const fileError = (day: Day, message: string, cause?: unknown): UserError =>
  configError(message, { cause, where: { day } });

function checkNeedsFile({ day, receipts }: FileToLoad, oldestDay: Day, lastOver: Day): void {
  const storedReceipt = receipts.get(day);
  const isLoaded = storedReceipt?.is_over === true && storedReceipt.pruned !== true;
  if (day < oldestDay || (day <= lastOver && !isLoaded)) return;
  const why = day > lastOver ? 'is not over' : 'is loaded, and the service still exports it';
  throw fileError(day, `${day} ${why}: read it again with sync … --from ${day} --to ${day}.`);
}

/** The last change of the file (ms since 1970). Throws if the day was not over by then. */
async function lastChangeOf({ file, day }: FileToLoad, now: number): Promise<number> {
  const { mtimeMs } = await stat(file).catch((error: unknown) => {
    throw fileError(day, `${file} cannot be read: ${whyUnreadable(error)}.`, error);
  });
  if (mtimeMs > now) throw fileError(day, `${file} was changed in the future: set its time, or the clock, right.`);
  if (day <= lastDayOver(mtimeMs)) return mtimeMs;
  const changedAt = new Date(mtimeMs).toISOString().slice(0, 16);
  throw fileError(day, `${file} was last changed at ${changedAt} UTC, when ${day} was not over: rows may be missing.`);
}

/** Copies the file as a download is spooled. Throws unless it is whole. */
async function copyToSpool(
  { file, day, settings, suppression }: FileToLoad,
  spool: RunFolder,
  signal: AbortSignal,
): Promise<CheckedFile> {
  const scannerOptions = scannerOptionsOf(settings, suppression);
  const output = await openSpoolOutput(spool);
  // Opened last: it may fail at once, and a failure that comes before its reader ends the process.
  const bytes = createReadStream(file, { highWaterMark: READ_BYTES, signal });
  const body = await checkBody(bytes, output, { scannerOptions, signal }).catch((error: unknown) => {
    signal.throwIfAborted();
    if (error instanceof MalformedCsv) throw fileError(day, `${file} is no whole export: ${error.clause}.`);
    if (error instanceof UnusableCsv) throw fileError(day, `${file} has ${error.mismatch}: convert it first.`);
    if (error instanceof UserError || codeOf(error) === undefined) throw error;
    throw fileError(day, `${file} cannot be read: ${whyUnreadable(error)}.`, error);
  });
  return checkedFileOf(body);
}

/** Throws unless the last row has its end, each row has a value, and the rows that stay are of the day. */
function checkContent(copy: CheckedFile, { file, day, state }: FileToLoad): void {
  const { hasFinalNewline, columns, rows, keptRows } = copy;
  if (!hasFinalNewline && state?.final_newline !== false)
    throw fileError(day, `The last row of ${file} has no line end, and may be cut: if it is whole, add a line end.`);
  if (rows === 0)
    throw fileError(day, `${file} has no row: if ${day} had no events, set on_gap to warn, and sync again.`);
  // Every export has columns that are filled in each row.
  const blankRows = keptRows - Math.max(...columns.map(({ filledCount }) => filledCount));
  if (blankRows > 0) {
    const blanks = `${unseparatedCount(blankRows, 'row')} without any value, as a spreadsheet leaves them at its end`;
    throw fileError(day, `${file} has ${blanks}: remove them.`);
  }
  // Rows of suppressed people are not scanned: a file of these alone shows no times.
  if (keptRows === 0 || columns.some((column) => hasTimesOf(day, column))) return;
  const question = 'is it of another day, or did a spreadsheet change its times?';
  throw fileError(day, `${file} has no system column whose first and last time are of ${day}: ${question}`);
}

/** Throws if the file is stored under the day beside it, or if the place has more rows of its day. */
function checkAgainstStored({ rows, sha256 }: Receipt, { file, day, receipts }: FileToLoad): void {
  const neighbours = [addDays(day, -1), addDays(day, 1)].map((neighbour) => receipts.get(neighbour));
  const sameFile = neighbours.find((receipt) => receipt?.sha256 === sha256 && receipt.pruned !== true);
  if (sameFile !== undefined)
    throw fileError(day, `${file} is stored as the export of ${sameFile.day}: name the file of ${day}.`);
  const storedReceipt = receipts.get(day);
  const rowsBefore = storedReceipt?.pruned === true ? 0 : (storedReceipt?.rows_stored ?? 0);
  if (rows >= rowsBefore) return;
  const counts = `${unseparatedCount(rows, 'row')} of ${day}, and the place has ${rowsBefore}`;
  throw fileError(day, `${file} has ${counts}: the stored rows stay.`);
}

/** True for a system column whose first and last time lie on the day, or on one beside it. */
function hasTimesOf(day: Day, { group, earliestTime, latestTime }: ColumnScan): boolean {
  if (group !== 'system' || earliestTime > latestTime) return false;
  return earliestTime * 1000 >= startOf(addDays(day, -1)) && latestTime * 1000 < startOf(addDays(day, 2));
}
