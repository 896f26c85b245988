import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { addDays } from '../../base/days.ts';
import { literal, pathLiteral } from '../../base/sql.ts';
import { zoneOf } from '../../cells/types/zone.ts';
import { dateSql, sharedRowIdSql } from '../../engine/column-sql.ts';
import { countRescuedByKey } from '../../engine/rows/row-counts.ts';
import { selectRowsSql } from '../../engine/rows/rows-query.ts';
import { keptRowsOf, storeTypedRows } from '../../engine/rows/typed-rows.ts';
import type { Engine } from '../../engine/session/engine.ts';
import { engineError } from '../../engine/session/engine-errors.ts';
import { type CheckedDay, mayShareRows, type Receipt } from '../../extract/checked-day.ts';
import type { RunFolder } from '../../fs/run-folder.ts';
import { planColumns } from '../../table/column-plan.ts';
import type { ColumnSettings } from '../../table/column-type.ts';
import { EVENTS, type StoredColumn, typedColumns } from '../../table/tables.ts';

/** The rows that a stream gets of a day, in a Parquet file. */
export interface DayFile {
  readonly download: CheckedDay;
  /** Undefined for a day without rows. */
  readonly path: string | undefined;
  /** Number of rows of its record batches, of about `BATCH_BYTES` each. */
  readonly batchRows: number;
  /** Cells in `_rescued`, by their key there. */
  readonly rescuedCells: ReadonlyMap<string, number>;
}

/** Approximate size of a record batch (bytes): larger ones leave the caches of a processor, and take a tenth longer. */
const BATCH_BYTES = 2 * 1024 * 1024;
const MAX_BATCH_ROWS = 15_360;
/** Approximate size of a cell beside its text: a number, a time, or the offset of a text (bytes). */
const CELL_BYTES = 8;
/** Number of record batches of a row group, which the decoder holds in memory. */
const BATCHES_PER_ROW_GROUP = 4;
/** Different values at which a column gives up a dictionary, which takes time: ids never repeat. */
const MAX_DICTIONARY_VALUES = 4_096;
/** Temporary table: the ids of the rows of the last day that may share rows with the next one. */
const SENT_ROWS = '_dfinery_sent_rows';

/** The days of a stream, its columns, which no longer change, and how the cells of the days are read. */
export interface StreamPlan {
  readonly downloads: AsyncIterable<CheckedDay> | Iterable<CheckedDay>;
  readonly columns: readonly StoredColumn[];
  readonly columnSettings: ColumnSettings;
}

/** Writes a file for each day into the folder of the run, and removes the files of the export. Throws UserError. */
export async function* writeDayFiles(plan: StreamPlan, engine: Engine, runFolder: RunFolder): AsyncGenerator<DayFile> {
  // A stream has the rows in the order of the export. They would lose it if this optimizer exchanged the sides of a join.
  await engine.run("SET disabled_optimizers = 'build_side_probe_side'");
  await engine.run(`CREATE TEMP TABLE ${SENT_ROWS} (event_date DATE, row_id VARCHAR)`);
  for await (const download of plan.downloads) {
    let dayFile: DayFile = { download, path: undefined, batchRows: 0, rescuedCells: new Map() };
    try {
      if (keptRowsOf(download) > 0)
        dayFile = await engine.transaction(() => writeDayFile(download, plan, engine, runFolder.path));
    } catch (error) {
      engine.throwIfAborted();
      throw engineError(error, 'the Arrow stream', runFolder.diskContext.subject);
    }
    for (const { path } of download.files) await rm(path, { force: true });
    yield dayFile;
  }
}

/** Writes the rows of a day but for those that the day before has, too. */
async function writeDayFile(download: CheckedDay, plan: StreamPlan, engine: Engine, folder: string): Promise<DayFile> {
  const { receipt } = download;
  const { columnSettings } = plan;
  // The columns and their types stay. This only adds how the cells of this day are written.
  const { columns } = planColumns(plan.columns, [download], columnSettings, false);
  const batchRows = batchRowsOf(receipt, typedColumns(columns).length);
  const writeParquet = (select: string, path: string) =>
    engine.run(
      `COPY (${select}) TO ${literal(path)} (FORMAT parquet, COMPRESSION lz4_raw, ` +
        `ROW_GROUP_SIZE ${BATCHES_PER_ROW_GROUP * batchRows}, DICTIONARY_SIZE_LIMIT ${MAX_DICTIONARY_VALUES})`,
    );
  await engine.keepOrder();
  const allRowsPath = join(folder, `${receipt.day}.parquet`);
  const zone = zoneOf(columnSettings.timezone);
  await storeTypedRows(engine, { table: EVENTS, columns, downloads: [download] }, zone, (query) =>
    writeParquet(selectRowsSql(query, columns, EVENTS.programColumns, zone), allRowsPath),
  );
  const rowId = sharedRowIdSql(columns);
  const sentRowsSql = `SELECT row_id FROM ${SENT_ROWS} WHERE event_date = ${dateSql(addDays(receipt.day, -1))}`;
  let path = allRowsPath;
  if ((await engine.count(`(${sentRowsSql})`)) > 0) {
    path = join(folder, `${receipt.day}-rest.parquet`);
    await writeParquet(`FROM ${readFileSql(allRowsPath)} WHERE ${rowId} NOT IN (${sentRowsSql})`, path);
    await rm(allRowsPath);
  }
  if (mayShareRows(receipt)) {
    const select = `SELECT event_date, ${rowId} AS row_id FROM ${readFileSql(path)}`;
    await engine.run(`CREATE OR REPLACE TEMP TABLE ${SENT_ROWS} AS ${select}`);
  }
  return { download, path, batchRows, rescuedCells: await countRescuedByKey(engine, readFileSql(path)) };
}

function batchRowsOf({ bytes, rows }: Receipt, columnCount: number): number {
  const rowBytes = columnCount * CELL_BYTES + bytes / rows;
  return Math.max(1, Math.min(MAX_BATCH_ROWS, Math.floor(BATCH_BYTES / rowBytes)));
}

const readFileSql = (path: string): string => `read_parquet([${pathLiteral(path)}], hive_partitioning = false)`;
