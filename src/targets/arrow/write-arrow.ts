// This folder: the target `arrow`. DuckDB writes the typed rows of a day as a temporary Parquet file, which is decoded
// into record batches (`typed-files.ts`). These are sent as one stream (`ipc-stream.ts`).

import { once } from 'node:events';
import { createWriteStream, statSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { DAY_MS } from '../../base/clock.ts';
import { codeOf, UserError } from '../../base/errors.ts';
import { plainCount } from '../../base/quantities.ts';
import { VERSION } from '../../base/version.ts';
import { zoneOf } from '../../cells/types/zone.ts';
import { openEngine } from '../../engine/session/open-engine.ts';
import type { CheckedDay, SpoolFile } from '../../extract/checked-day.ts';
import { removeTemporaries, replaceFileFrom, temporaryPathOf } from '../../fs/atomic-file.ts';
import { diskError } from '../../fs/disk-failure.ts';
import { replaceablePath } from '../../fs/named-file.ts';
import { OWNER_FILE_MODE } from '../../fs/permissions.ts';
import { RunFolder } from '../../fs/run-folder.ts';
import { planDays } from '../../table/batch-plan.ts';
import { logRescued, logWidened } from '../../table/changes.ts';
import { FIRST_COLUMNS, type StoredColumn, type Typed, typedColumns } from '../../table/tables.ts';
import type { OnSent, OpenOptions, Streamed } from '../contract.ts';
import { IpcStream, streamSchema } from './ipc-stream.ts';
import { type WrittenDay, writtenDays } from './typed-files.ts';

/**
 * Writes days as one Arrow IPC stream into a file, or on a stream that stays open. Its schema is the pinned one, if
 * there is one. Else all days stay on disk until the last has come, and the schema has the columns of all. Throws
 * UserError; an unfinished file is removed.
 */
export async function writeArrow(
  days: AsyncIterable<CheckedDay>,
  out: string | Writable,
  options: OpenOptions,
  onSent: OnSent,
): Promise<Streamed> {
  const folder = await RunFolder.open(options.spoolDir, options.clock, 'arrow');
  const writeTo = async (stream: Writable): Promise<Streamed> => {
    // The database file holds no rows: DuckDB spills beside it.
    const engine = await openEngine({ ...options, file: join(folder.path, 'engine') });
    try {
      const { columns, days: plannedDays } = await planStream(days, folder.path, options);
      const written = writtenDays(plannedDays, { engine, folder: folder.path, columns, rules: options });
      return await sendDays(prefetch(written), typedColumns(columns), stream, { ...options, onSent });
    } finally {
      await engine.close();
    }
  };
  try {
    return await (typeof out === 'string' ? intoFile(out, options.clock.now(), writeTo) : writeTo(out));
  } catch (error) {
    options.signal.throwIfAborted();
    if (error instanceof UserError || codeOf(error) === undefined) throw error;
    throw diskError(error, { path: typeof out === 'string' ? out : 'the Arrow stream' });
  } finally {
    await folder.remove();
  }
}

/**
 * Writes a file that appears under its name once it is complete. A device or a pipe is written directly. Files
 * that killed runs left unfinished are removed after a day. Throws the system's error.
 */
async function intoFile(path: string, now: number, write: (stream: Writable) => Promise<Streamed>): Promise<Streamed> {
  const file = replaceablePath(path);
  // Without this check only the rename at the very end would find that a folder has this name.
  if (file !== undefined && statSync(file, { throwIfNoEntry: false })?.isDirectory()) {
    throw Object.assign(new Error(`${path} is a folder`), { code: 'EISDIR' });
  }
  const writtenPath = file === undefined ? path : temporaryPathOf(file);
  const stream = createWriteStream(writtenPath, file === undefined ? {} : { flags: 'wx', mode: OWNER_FILE_MODE });
  const closed = once(stream, 'close');
  closed.catch(() => undefined);
  try {
    await once(stream, 'open');
    // A younger one may be that of a run that waits for its first day.
    if (file !== undefined) await removeTemporaries(file, now - DAY_MS).catch(() => undefined);
    const streamed = await write(stream);
    // The reader of a pipe has left.
    if (stream.destroyed) return streamed;
    stream.end();
    await closed;
    if (file !== undefined) await replaceFileFrom(file, writtenPath);
    return streamed;
  } finally {
    stream.destroy();
    if (file !== undefined) await rm(writtenPath, { force: true });
  }
}

/** The days and the columns of a stream. Without a pinned schema all files are kept until the columns are known. */
async function planStream(
  days: AsyncIterable<CheckedDay>,
  folder: string,
  options: OpenOptions,
): Promise<{ readonly days: AsyncIterable<CheckedDay>; readonly columns: readonly StoredColumn[] }> {
  if (options.pinned !== undefined) {
    return { days, columns: planDays(undefined, [], options).columns };
  }
  const waitingDays: CheckedDay[] = [];
  let columns: readonly StoredColumn[] | undefined;
  for await (const day of days) {
    const planned = planDays(columns, [day], options);
    logWidened(options.logger, planned.changes);
    columns = planned.columns;
    const files: SpoolFile[] = [];
    for (const [i, file] of day.files.entries()) {
      const path = join(folder, `${waitingDays.length}-${i}.csv`);
      await rename(file.path, path);
      files.push({ ...file, path });
    }
    waitingDays.push({ ...day, files });
  }
  return { days: removingFiles(waitingDays), columns: columns ?? FIRST_COLUMNS };
}

/** Yields days, and removes the files of each once the next one is requested. */
async function* removingFiles(days: readonly CheckedDay[]): AsyncGenerator<CheckedDay> {
  for (const day of days) {
    yield day;
    for (const { path } of day.files) await rm(path, { force: true });
  }
}

/** Sends all days. If one fails, the reader has taken those before it. */
async function sendDays(
  days: AsyncIterable<WrittenDay>,
  columns: readonly Typed[],
  out: Writable,
  { timezone, logger, signal, onSent }: OpenOptions & { readonly onSent: OnSent },
): Promise<Streamed> {
  const stream = new IpcStream(out, streamSchema(columns, zoneOf(timezone), VERSION), signal);
  const rescued = new Map<string, number>();
  let daysTaken = 0;
  let readerLeft = false;
  try {
    for await (const { day, rescued: cellsByKey, batches } of days) {
      let rowsTaken = 0;
      for await (const { messages, rows } of batches) {
        await stream.write(messages);
        rowsTaken += rows;
      }
      daysTaken++;
      for (const [name, cells] of cellsByKey) rescued.set(name, (rescued.get(name) ?? 0) + cells);
      onSent(day, rowsTaken);
    }
    await stream.end();
  } catch (error) {
    if (!isReaderGone(error)) throw error;
    readerLeft = true;
    const message = `The reader closed the Arrow stream before its end, after ${plainCount(daysTaken, 'whole day')}.`;
    logger.warn('arrow.reader_left', message, { days: daysTaken });
  } finally {
    stream.release();
  }
  logRescued(logger, rescued);
  const columnsAdded = readerLeft && daysTaken === 0 ? [] : columns.map(({ name }) => name);
  return { columnsAdded, rescued };
}

/** True if the reader closed its end of the stream, which is no failure of this program. */
const isReaderGone = (error: unknown): boolean =>
  ['EPIPE', 'ERR_STREAM_DESTROYED', 'ERR_STREAM_WRITE_AFTER_END'].includes(codeOf(error) ?? '');

/** Requests the next item while the last one is in use. */
async function* prefetch<T>(items: AsyncGenerator<T>): AsyncGenerator<T> {
  let next = items.next();
  try {
    for (;;) {
      const { done, value } = await next;
      if (done === true) return;
      next = items.next();
      // A failure is thrown when the item is requested.
      next.catch(() => undefined);
      yield value;
    }
  } finally {
    await next.catch(() => undefined);
    await items.return(undefined);
  }
}
