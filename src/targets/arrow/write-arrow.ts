// This folder: the target `arrow`. DuckDB writes the typed rows of days as temporary Parquet files, as for the other
// targets; these are decoded into the record batches of one stream.

import { copyFile, link, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { codeOf, UserError } from '../../base/errors.ts';
import { plainCount } from '../../base/quantities.ts';
import { VERSION } from '../../base/version.ts';
import type { DayDownload, SpoolFile } from '../../extract/receipt.ts';
import { RunFolder } from '../../extract/spool.ts';
import { hasNoLinks } from '../../fs/atomic-file.ts';
import { diskError } from '../../fs/disk-failure.ts';
import { logChanges } from '../../table/changes.ts';
import { type ColumnRules, incomingColumns, planColumns } from '../../table/column-plan.ts';
import { FIRST_COLUMNS, type StoredColumn, typedColumns } from '../../table/tables.ts';
import type { PlaceOptions, Streamed, StreamSink } from '../contract.ts';
import { IpcStream, recordBatches, streamSchema } from './ipc-stream.ts';
import { type ArrowOutput, fileOutput, isReaderGone, streamOutput } from './output.ts';
import { TypedFiles } from './typed-files.ts';

export interface ArrowOptions extends ColumnRules, Omit<PlaceOptions, 'lockWaitMs' | 'env'> {
  /** A file's path, or a stream that stays open. */
  readonly out: string | Writable;
  readonly signal: AbortSignal;
  readonly onSent: Parameters<StreamSink['write']>[1];
}

/** The days and the form of a stream: its columns are known and no longer change. */
interface Stream {
  readonly days: AsyncIterable<DayDownload>;
  readonly columns: readonly StoredColumn[];
}

/**
 * Writes days as one Arrow IPC stream. Its schema is the pinned one, if there is one. Else all days stay on disk until
 * the last has come, and the schema has the columns of all. Throws UserError; an unfinished file is removed.
 */
export async function writeArrow(days: AsyncIterable<DayDownload>, options: ArrowOptions): Promise<Streamed> {
  const { out, pinned } = options;
  const folder = await RunFolder.open(options.spoolDir, options.clock, 'arrow');
  let output: ArrowOutput | undefined;
  let files: TypedFiles | undefined;
  try {
    output = typeof out === 'string' ? fileOutput(out, options.clock.now()) : streamOutput(out);
    await output.ready();
    files = await TypedFiles.open({ ...options, folder: folder.path });
    const stream =
      pinned === undefined
        ? await keepAll(days, folder.path, options)
        : { days, columns: planColumns(FIRST_COLUMNS, new Map(), options, true) };
    const result = await send(stream, files, output.stream, options);
    // A pipe whose reader has left accepts no more bytes.
    if (result.readerLeft) await output.drop();
    else await output.end();
    return result;
  } catch (error) {
    await output?.drop();
    options.signal.throwIfAborted();
    throw outputError(error, out);
  } finally {
    await files?.close();
    await folder.remove();
  }
}

function outputError(error: unknown, out: string | Writable): unknown {
  if (error instanceof UserError || codeOf(error) === undefined) return error;
  const name = typeof out === 'string' ? out : 'the Arrow stream';
  return diskError(error, { what: name, path: name });
}

/** Keeps copies of the files of all days, which the extraction removes, until the columns of all are known. */
async function keepAll(days: AsyncIterable<DayDownload>, folder: string, options: ArrowOptions): Promise<Stream> {
  const kept: DayDownload[] = [];
  let columns: readonly StoredColumn[] = FIRST_COLUMNS;
  for await (const day of days) {
    const plan = planColumns(columns, incomingColumns(day.files), options, kept.length === 0);
    logChanges(options.logger, kept.length === 0 ? [] : plan, new Map());
    columns = plan;
    const files: SpoolFile[] = [];
    for (const [i, file] of day.files.entries()) {
      const path = join(folder, `${kept.length}-${i}.csv`);
      await linkOrCopy(file.path, path);
      files.push({ ...file, path });
    }
    kept.push({ ...day, files });
  }
  return { days: released(kept), columns };
}

async function linkOrCopy(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch (error) {
    if (!hasNoLinks(error) && codeOf(error) !== 'EXDEV') throw error;
    await copyFile(from, to);
  }
}

async function* released(kept: readonly DayDownload[]): AsyncGenerator<DayDownload> {
  for (const day of kept) {
    yield day;
    for (const { path } of day.files) await rm(path, { force: true });
  }
}

async function send(
  { days, columns }: Stream,
  typedFiles: TypedFiles,
  out: Writable,
  options: ArrowOptions,
): Promise<Streamed & { readonly readerLeft: boolean }> {
  const typed = typedColumns(columns);
  const schema = streamSchema(typed, options.timezone !== undefined, VERSION);
  const stream = new IpcStream(out, schema, options.signal);
  const rescued = new Map<string, number>();
  let daysTaken = 0;
  let readerLeft = false;
  try {
    for await (const { day, file } of ahead(written(days, columns, typedFiles))) {
      let sent = 0;
      for await (const { messages, rows } of file === undefined ? [] : recordBatches(file.path, file.batchRows)) {
        options.signal.throwIfAborted();
        await stream.write(messages);
        sent += rows;
      }
      stream.onceAccepted(() => {
        daysTaken++;
        for (const [name, cells] of file?.rescued ?? []) rescued.set(name, (rescued.get(name) ?? 0) + cells);
        options.onSent(day, sent);
      });
      if (file !== undefined) await rm(file.path);
    }
    await stream.end();
  } catch (error) {
    if (!isReaderGone(error)) {
      // What the reader has still to take of the days before the failure.
      await stream.accepted().catch(() => undefined);
      throw error;
    }
    readerLeft = true;
    const message = `The reader closed the Arrow stream before its end, after ${plainCount(daysTaken, 'whole day')}.`;
    options.logger.warn('arrow.reader_left', message, { days: daysTaken });
  } finally {
    stream.release();
  }
  logChanges(options.logger, [], rescued);
  const columnsAdded = readerLeft && daysTaken === 0 ? [] : typed.map(({ name }) => name);
  return { columnsAdded, rescued, readerLeft };
}

async function* written(days: AsyncIterable<DayDownload>, columns: readonly StoredColumn[], typedFiles: TypedFiles) {
  for await (const day of days) {
    const rows = day.files.reduce((sum, file) => sum + file.rows, 0);
    yield { day, file: rows > 0 ? await typedFiles.write(day, columns) : undefined };
  }
}

/** Requests the next item while the last one is in use. */
async function* ahead<T>(items: AsyncGenerator<T>): AsyncGenerator<T> {
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
