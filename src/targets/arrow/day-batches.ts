import { openAsBlob } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { addDays, type Day } from '../../base/days.ts';
import { literal, pathLiteral } from '../../base/sql.ts';
import { zoneOf } from '../../cells/types/zone.ts';
import { sharedRowIdSql } from '../../engine/column-sql.ts';
import { countRescuedByKey } from '../../engine/rows/row-counts.ts';
import { selectRowsSql, storeTypedRows, sumRows } from '../../engine/rows/typed-rows.ts';
import type { Engine } from '../../engine/session/engine.ts';
import { engineError } from '../../engine/session/engine-errors.ts';
import { type CheckedDay, mayShareRows, type Receipt } from '../../extract/checked-day.ts';
import { PROGRAM_COLUMNS } from '../../table/column-names.ts';
import { planColumns } from '../../table/column-plan.ts';
import type { ColumnRules } from '../../table/new-columns.ts';
import { EVENTS, type StoredColumn, typedColumns } from '../../table/tables.ts';
import { messagesOf } from './ipc-stream.ts';

/** A day, and what a stream gets of it. */
export interface DayBatches {
  readonly download: CheckedDay;
  /** Cells in `_rescued`, by their key there. */
  readonly rescuedCells: ReadonlyMap<string, number>;
  /** The rows as messages, from a temporary file that is removed behind the last batch. */
  readonly batches: AsyncIterable<{ readonly rows: number; readonly messages: Uint8Array }> | readonly [];
}

/** Approximate size of a record batch (bytes): larger ones leave the caches of a processor, and take a tenth longer. */
const BATCH_BYTES = 2 * 1024 * 1024;
const MAX_BATCH_ROWS = 15_360;
/** Minimum size of a column in a row: a value, or the offset of a text (bytes). */
const COLUMN_BYTES = 8;
/** Number of record batches of a row group, which the decoder holds in memory. */
const GROUP_BATCHES = 4;
/** Different values at which a column gives up a dictionary, which takes time: ids never repeat. */
const DICTIONARY_VALUES = 4_096;
/** Temporary table: the ids of the rows of a day that the next one may have again. */
const PREVIOUS_ROW_IDS = '_dfinery_previous_row_ids';

/** What all days of a stream have in common. */
interface StreamContext {
  readonly engine: Engine;
  /** A private folder, in which the files are made. */
  readonly folder: string;
  /** The columns of the stream, which no longer change. */
  readonly columns: readonly StoredColumn[];
  readonly rules: ColumnRules;
}

/** Gives the rows of days, in their order, with the columns of a stream. Removes the files of each. Throws UserError. */
export async function* batchesOfDays(
  days: AsyncIterable<CheckedDay> | Iterable<CheckedDay>,
  context: StreamContext,
): AsyncGenerator<DayBatches> {
  const { engine } = context;
  // The day whose rows are in `PREVIOUS_ROW_IDS`.
  let lastSharedDay: Day | undefined;
  for await (const download of days) {
    const { day } = download.receipt;
    let dayBatches: DayBatches = { download, rescuedCells: new Map(), batches: [] };
    if (sumRows(download.files) > 0) {
      const isAfterSharedDay = lastSharedDay === addDays(day, -1);
      try {
        dayBatches = await engine.transaction(() => writeDay(download, context, isAfterSharedDay));
      } catch (error) {
        engine.throwIfAborted();
        throw engineError(error, 'the Arrow stream');
      }
      if (mayShareRows(download.receipt)) lastSharedDay = day;
    }
    for (const { path } of download.files) await rm(path, { force: true });
    yield dayBatches;
  }
}

/** Writes a day with rows into a file. `isAfterSharedDay`: the day before may have some of them, which are left out. */
async function writeDay(
  download: CheckedDay,
  { engine, folder, columns: streamColumns, rules }: StreamContext,
  isAfterSharedDay: boolean,
): Promise<DayBatches> {
  const { receipt } = download;
  const columns = planColumns(streamColumns, [download], rules);
  const batchRows = batchRowsOf(receipt, typedColumns(columns).length);
  const write = (query: string, path: string) =>
    engine.run(
      `COPY (${query}) TO ${literal(path)} (FORMAT parquet, COMPRESSION lz4_raw, ` +
        `ROW_GROUP_SIZE ${GROUP_BATCHES * batchRows}, DICTIONARY_SIZE_LIMIT ${DICTIONARY_VALUES})`,
    );
  // A stream has the rows in the order of the export. This optimizer may exchange the sides of a join: they lose it.
  await engine.keepOrder();
  await engine.run("SET disabled_optimizers = 'build_side_probe_side'");
  let path = join(folder, `${receipt.day}.parquet`);
  const zone = zoneOf(rules.timezone);
  await storeTypedRows(engine, { table: EVENTS, columns, downloads: [download] }, zone, (rows) =>
    write(selectRowsSql(rows, columns, PROGRAM_COLUMNS, zone), path),
  );
  const rowId = sharedRowIdSql(columns);
  if (isAfterSharedDay) {
    const unsentPath = join(folder, `${receipt.day}-unsent.parquet`);
    await write(`SELECT * FROM ${readFileSql(path)} WHERE ${rowId} NOT IN (FROM ${PREVIOUS_ROW_IDS})`, unsentPath);
    await rm(path);
    path = unsentPath;
  }
  if (mayShareRows(receipt)) {
    const select = `SELECT ${rowId} AS row_id FROM ${readFileSql(path)}`;
    await engine.run(`CREATE OR REPLACE TEMP TABLE ${PREVIOUS_ROW_IDS} AS ${select}`);
  }
  const rescuedCells = await countRescuedByKey(engine, readFileSql(path));
  return { download, rescuedCells, batches: recordBatches(path, batchRows) };
}

/** Number of rows of a record batch of about `BATCH_BYTES`. */
function batchRowsOf({ bytes, rows }: Receipt, columns: number): number {
  const rowBytes = columns * COLUMN_BYTES + bytes / rows;
  return Math.max(1, Math.min(MAX_BATCH_ROWS, Math.floor(BATCH_BYTES / rowBytes)));
}

const readFileSql = (path: string): string => `read_parquet([${pathLiteral(path)}], hive_partitioning = false)`;

/** Yields the rows of a file in batches of at most so many, and removes it. A row group is decoded as a whole. */
async function* recordBatches(path: string, batchRows: number) {
  // 5 MB of WebAssembly, which only this needs.
  const { ParquetFile } = await import('parquet-wasm');
  const file = await ParquetFile.fromFile(await openAsBlob(path));
  try {
    for (const rowGroup of file.metadata().rowGroups().keys()) {
      const table = await file.read({ rowGroups: [rowGroup], batchSize: batchRows });
      const batches = table.recordBatches();
      table.free();
      for (const batch of batches) yield { rows: batch.numRows, messages: messagesOf(batch.intoIPCStream()) };
    }
  } finally {
    file.free();
  }
  await rm(path);
}
