import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { addDays } from '../../base/days.ts';
import { literal, pathLiteral } from '../../base/sql.ts';
import type { Zone } from '../../cells/types/zone.ts';
import { dateSql, sharedRowIdSql } from '../../engine/column-sql.ts';
import { countRescuedByKey } from '../../engine/rows/row-counts.ts';
import { selectRowsSql } from '../../engine/rows/rows-query.ts';
import { keptRowsOf, storeTypedRows } from '../../engine/rows/typed-rows.ts';
import type { Engine } from '../../engine/session/engine.ts';
import { engineError } from '../../engine/session/engine-errors.ts';
import { type CheckedDay, mayShareRows } from '../../extract/checked-day.ts';
import type { RunFolder } from '../../fs/run-folder.ts';
import type { PlannedColumn } from '../../table/column-plan.ts';
import { EVENTS, typedColumns } from '../../table/tables.ts';

/** A download of a stream, with the columns of the stream, which say how its cells are read. */
export interface PlannedDay {
  readonly download: CheckedDay;
  readonly columns: readonly PlannedColumn[];
}

/** The rows that a stream gets of a day, in a Parquet file. */
export interface DayFile {
  readonly download: CheckedDay;
  /** Undefined for a day without rows. */
  readonly path: string | undefined;
  /** Number of rows of a record batch, of about `RECORD_BATCH_BYTES`. */
  readonly recordBatchRows: number;
  /** Cells in `_rescued`, by their key there. */
  readonly rescuedCells: ReadonlyMap<string, number>;
}

/** Approximate size of a record batch (bytes): larger ones leave the caches of a processor, and take a tenth longer. */
const RECORD_BATCH_BYTES = 2 * 1024 * 1024;
const MAX_RECORD_BATCH_ROWS = 15_360;
/** Approximate size of a cell beside its text: a number, a time, or the offset of a text (bytes). */
const CELL_BYTES = 8;
/** Number of record batches of a row group, which the decoder holds in memory. */
const RECORD_BATCHES_PER_ROW_GROUP = 4;
/** Different values at which a column gives up a dictionary, which takes time: ids never repeat. */
const MAX_DICTIONARY_VALUES = 4_096;
/** Temporary table: the ids of the rows of the last day that may share rows with the next one. */
const SENT_ROWS = '_dfinery_sent_rows';

/** Writes a file for each day into the folder of the run, and removes the files of the export. Throws UserError. */
export async function* writeDayFiles(
  plannedDays: AsyncIterable<PlannedDay> | Iterable<PlannedDay>,
  zone: Zone | undefined,
  engine: Engine,
  runFolder: RunFolder,
): AsyncGenerator<DayFile> {
  // A stream has the rows in the order of the export. They would lose it if this optimizer exchanged the sides of a join.
  await engine.run("SET disabled_optimizers = 'build_side_probe_side'");
  await engine.run(`CREATE TEMP TABLE ${SENT_ROWS} (event_date DATE, row_id VARCHAR)`);
  for await (const plannedDay of plannedDays) {
    const { download } = plannedDay;
    let dayFile: DayFile;
    try {
      dayFile = await engine.transaction(() => writeDayFile(plannedDay, zone, engine, runFolder.path));
    } catch (error) {
      engine.throwIfAborted();
      throw engineError(error, 'the Arrow stream', runFolder.diskContext.subject);
    }
    for (const { path } of download.files) await runFolder.withDiskErrors(rm(path, { force: true }));
    yield dayFile;
  }
}

/** Writes the rows of a day. A row of the day before, too, was sent with that; a place would keep it under this day. */
async function writeDayFile(
  { download, columns }: PlannedDay,
  zone: Zone | undefined,
  engine: Engine,
  folder: string,
): Promise<DayFile> {
  if (keptRowsOf(download) === 0) return { download, path: undefined, recordBatchRows: 0, rescuedCells: new Map() };
  const { receipt } = download;
  const rowBytes = typedColumns(columns).length * CELL_BYTES + receipt.bytes / receipt.rows;
  const recordBatchRows = Math.max(1, Math.min(MAX_RECORD_BATCH_ROWS, Math.floor(RECORD_BATCH_BYTES / rowBytes)));
  const writeParquet = (select: string, path: string) =>
    engine.run(
      `COPY (${select}) TO ${literal(path)} (FORMAT parquet, COMPRESSION lz4_raw, ` +
        `ROW_GROUP_SIZE ${RECORD_BATCHES_PER_ROW_GROUP * recordBatchRows}, DICTIONARY_SIZE_LIMIT ${MAX_DICTIONARY_VALUES})`,
    );
  await engine.keepOrder();
  const allRowsPath = join(folder, `${receipt.day}.parquet`);
  await storeTypedRows(engine, { table: EVENTS, columns, zone }, [download], (query) =>
    writeParquet(selectRowsSql(query, columns, EVENTS.programColumns, zone), allRowsPath),
  );
  const rowIdSql = sharedRowIdSql(columns);
  const dayBeforeSql = `SELECT row_id FROM ${SENT_ROWS} WHERE event_date = ${dateSql(addDays(receipt.day, -1))}`;
  let path = allRowsPath;
  if ((await engine.count(`(${dayBeforeSql})`)) > 0) {
    path = join(folder, `${receipt.day}-unsent.parquet`);
    await writeParquet(`FROM ${readFileSql(allRowsPath)} WHERE ${rowIdSql} NOT IN (${dayBeforeSql})`, path);
    await rm(allRowsPath);
  }
  if (mayShareRows(receipt)) {
    const select = `SELECT event_date, ${rowIdSql} AS row_id FROM ${readFileSql(path)}`;
    await engine.run(`CREATE OR REPLACE TEMP TABLE ${SENT_ROWS} AS ${select}`);
  }
  return { download, path, recordBatchRows, rescuedCells: await countRescuedByKey(engine, readFileSql(path)) };
}

const readFileSql = (path: string): string => `read_parquet([${pathLiteral(path)}], hive_partitioning = false)`;
