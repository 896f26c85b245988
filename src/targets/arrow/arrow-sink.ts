// This folder: the target `arrow`: one stream of all days, of which nothing is stored. DuckDB writes the typed rows of
// a day into a temporary Parquet file (`day-files.ts`). Its record batches are sent as one stream (`ipc-stream.ts`), into
// a file, a pipe or stdout (`output.ts`).

import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import tty from 'node:tty';
import { codeOf, configError, UserError } from '../../base/errors.ts';
import { unseparatedCount } from '../../base/quantities.ts';
import { zoneOf } from '../../cells/types/zone.ts';
import { openEngine } from '../../engine/session/open-engine.ts';
import type { CheckedDay } from '../../extract/checked-day.ts';
import { diskError } from '../../fs/disk-failure.ts';
import { RunFolder } from '../../fs/run-folder.ts';
import { columnsOfNewTable, logWidened, planColumns } from '../../table/column-plan.ts';
import { NOTHING_STORED } from '../../table/commit.ts';
import { type TypedColumn, typedColumns } from '../../table/tables.ts';
import type { LoadOptions, OnSent, StreamSink } from '../contract.ts';
import { type DayFile, type PlannedDay, writeDayFiles } from './day-files.ts';
import { ipcStream, recordBatches, streamSchema } from './ipc-stream.ts';
import { withOutput } from './output.ts';

/** One Arrow IPC stream, into a file or on a stream that stays open. Throws a configuration failure for a terminal. */
export function openArrowSink(pathOrStream: string | Writable, options: LoadOptions): StreamSink {
  if (pathOrStream instanceof tty.WriteStream) {
    throw configError('stdout is a terminal, and an Arrow stream is binary: write it into a file or a pipe.');
  }
  return {
    kind: 'stream',
    state: undefined,
    // A file gets its name once it is complete. Without a pinned schema nothing is sent before the last day. A pipe
    // that is given by its path counts as a file: after a failure nothing of it is reported as loaded.
    isAllOrNothing: typeof pathOrStream === 'string' || !isPinned(options),
    write: (downloads, onSent) => writeStream(downloads, pathOrStream, options, onSent),
    async recordRun() {},
    async close() {},
  };
}

/** True if the schema is known before the first day: then each day is sent as it comes. */
const isPinned = ({ columnSettings }: LoadOptions): boolean => columnSettings.pinnedTypes !== undefined;

/**
 * Writes the stream. Its schema is the pinned one, if there is one. Else all days stay on disk until the last has come,
 * and the schema has the columns of all. Throws UserError; an unfinished file is removed.
 */
async function writeStream(
  downloads: AsyncIterable<CheckedDay>,
  pathOrStream: string | Writable,
  options: LoadOptions,
  onSent: OnSent,
): Promise<void> {
  const runFolder = await RunFolder.open(options.spoolDir, options.clock);
  try {
    await withOutput(pathOrStream, options, async (output) => {
      // The database file holds no rows: DuckDB spills beside it.
      const engine = await openEngine(join(runFolder.path, 'engine'), 'write', options);
      try {
        const zone = zoneOf(options.columnSettings.timezone);
        const { columns, changes, plannedDays } = isPinned(options)
          ? planEachDay(downloads, options)
          : await planAllDays(downloads, runFolder, options);
        const dayFiles = writeDayFiles(plannedDays, zone, engine, runFolder);
        await sendDays(dayFiles, columns, output, options, onSent);
        logWidened(options.logger, changes);
      } finally {
        await engine.close();
      }
    });
  } catch (error) {
    options.signal.throwIfAborted();
    if (error instanceof UserError || codeOf(error) === undefined) throw error;
    throw diskError(error, typeof pathOrStream === 'string' ? { path: pathOrStream } : { subject: 'the Arrow stream' });
  } finally {
    await runFolder.remove();
  }
}

/** Plans a stream of the pinned columns. Its days are planned as they come. */
function planEachDay(downloads: AsyncIterable<CheckedDay>, { columnSettings }: LoadOptions) {
  const columns = typedColumns(columnsOfNewTable(columnSettings));
  // The stream gets no further column, not even one that `column_types` names: its cells go to `_rescued`.
  const pinnedTypes = new Map(columns.map(({ source, type }) => [source, type]));
  const frozenSettings = { ...columnSettings, schemaMode: 'freeze', columnTypes: new Map(), pinnedTypes } as const;
  async function* planDays(): AsyncGenerator<PlannedDay> {
    for await (const download of downloads) {
      yield { download, columns: planColumns(columns, [download], frozenSettings, false).columns };
    }
  }
  return { columns, changes: [], plannedDays: planDays() };
}

/** Plans a stream of the columns of all days. Their files wait in the folder of the run until the last has come. */
async function planAllDays(
  downloads: AsyncIterable<CheckedDay>,
  runFolder: RunFolder,
  { columnSettings }: LoadOptions,
) {
  // Settings that do not fit are refused before the first request.
  const columnsBefore = columnsOfNewTable(columnSettings);
  const movedDownloads: CheckedDay[] = [];
  for await (const { receipt, files } of downloads) {
    const movedFiles = files.map((file, i) => ({ ...file, path: join(runFolder.path, `${receipt.day}-${i}.csv`) }));
    for (const [i, { path }] of files.entries()) await runFolder.withDiskErrors(rename(path, movedFiles[i].path));
    movedDownloads.push({ receipt, files: movedFiles });
  }
  const { columns, changes } = planColumns(columnsBefore, movedDownloads, columnSettings, true);
  const plannedDays = movedDownloads.map((download) => ({ download, columns }));
  return { columns: typedColumns(columns), changes, plannedDays };
}

/** Sends all days. If one fails, the reader has taken those before it. */
async function sendDays(
  dayFiles: AsyncIterable<DayFile>,
  columns: readonly TypedColumn[],
  output: Writable,
  { columnSettings, logger, signal }: LoadOptions,
  onSent: OnSent,
): Promise<void> {
  const stream = ipcStream(output, streamSchema(columns, zoneOf(columnSettings.timezone)), signal);
  let daysTaken = 0;
  try {
    for await (const dayFile of dayFiles) {
      const { download, rescuedCells } = dayFile;
      let rows = 0;
      for await (const { rows: batchRows, messages } of recordBatches(dayFile)) {
        await stream.write(messages);
        rows += batchRows;
      }
      const { day } = download.receipt;
      const columnsAdded = daysTaken === 0 ? columns.map(({ name }) => name) : [];
      const counts = { rowsWritten: rows, rowsGained: rows, rescuedCells };
      onSent(download, { ...NOTHING_STORED, daysWritten: [day], daysChanged: [day], columnsAdded, ...counts });
      daysTaken++;
    }
    await stream.end();
  } catch (error) {
    // The reader closed its end of the stream, which is no failure of this program.
    if (codeOf(error) !== 'EPIPE') throw error;
    const message = `The reader closed the Arrow stream before its end, after ${unseparatedCount(daysTaken, 'whole day')}.`;
    logger.warn('arrow.reader_left', message, { days: daysTaken });
  }
}
