import { openAsBlob } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { literal, pathLiteral } from '../../base/sql.ts';
import { sharedRowIdSql } from '../../engine/column-sql.ts';
import { countRescuedByKey } from '../../engine/rows/counts.ts';
import { selectRowsSql, withTypedRows } from '../../engine/rows/typed-rows.ts';
import type { Engine } from '../../engine/session/engine.ts';
import { engineError } from '../../engine/session/faults.ts';
import { openEngine } from '../../engine/session/open-engine.ts';
import type { DayDownload } from '../../extract/checked-day.ts';
import { type PlannedBatch, planBatch } from '../../table/batch-plan.ts';
import { type StoredColumn, typedColumns } from '../../table/tables.ts';
import type { OpenOptions } from '../contract.ts';
import { messagesOf, OWN_IN_ARROW } from './ipc-stream.ts';

/** A temporary Parquet file with the rows of a day. */
export interface TypedFile {
  readonly path: string;
  /** Number of rows of a record batch. */
  readonly batchRows: number;
  /** Cells in `_rescued`, by their key there. */
  readonly rescued: ReadonlyMap<string, number>;
}

const PLACE = 'the Arrow stream';
/** Approximate size of a record batch (bytes): larger ones leave the caches of a processor, and take a tenth longer. */
const BATCH_BYTES = 2 * 1024 * 1024;
const MAX_BATCH_ROWS = 15_360;
/** Minimum size of a column in a row: a value, or the offset of a text (bytes). */
const COLUMN_BYTES = 8;
/** Number of record batches of a row group, which the decoder holds in memory. */
const GROUP_BATCHES = 4;
/** Different values at which a column gives up a dictionary, which takes time: ids never repeat. */
const DICTIONARY_VALUES = 4_096;
/** Temporary table: what tells the rows of the day before, which this one may have again. */
const SENT = '_dfinery_sent';

/** Loads the decoder of Parquet: 5 MB of WebAssembly, which take 35 ms and are needed only here. */
const loadDecoder = () => import('parquet-wasm');

/** Writes days as Parquet files with the columns of a stream, in the order of their rows. Throws UserError. */
export class TypedFiles {
  readonly #engine: Engine;
  readonly #folder: string;
  readonly #options: OpenOptions;
  #count = 0;
  /** True if the day before may have rows of the next one. */
  #mayShareRows = false;

  private constructor(engine: Engine, folder: string, options: OpenOptions) {
    this.#engine = engine;
    this.#folder = folder;
    this.#options = options;
  }

  /** `folder`: a private one, in which the files are made. */
  static async open(folder: string, options: OpenOptions): Promise<TypedFiles> {
    // The database file holds no rows: DuckDB spills beside it.
    const engine = await openEngine({ ...options, file: join(folder, 'engine') });
    return new TypedFiles(engine, folder, options);
  }

  /** Writes the next day that has rows; `columns` are all of the stream, which no longer change. */
  async write(day: DayDownload, columns: readonly StoredColumn[]): Promise<TypedFile> {
    const { signal } = this.#options;
    const batch = planBatch(columns, [day], this.#options);
    try {
      const file = await this.#engine.transaction(() => this.#writeDay(day, batch));
      this.#mayShareRows = day.mayShareRows;
      return file;
    } catch (error) {
      signal.throwIfAborted();
      throw engineError(error, PLACE);
    }
  }

  close(): Promise<void> {
    return this.#engine.close();
  }

  async #writeDay({ receipt, mayShareRows }: DayDownload, batch: PlannedBatch): Promise<TypedFile> {
    const engine = this.#engine;
    const rowBytes = typedColumns(batch.columns).length * COLUMN_BYTES + receipt.bytes / receipt.rows;
    const batchRows = Math.max(1, Math.min(MAX_BATCH_ROWS, Math.floor(BATCH_BYTES / rowBytes)));
    const write = async (query: string) => {
      const path = join(this.#folder, `${++this.#count}.parquet`);
      const rows = await engine.run(
        `COPY (${query}) TO ${literal(path)} (FORMAT parquet, COMPRESSION lz4_raw, ` +
          `ROW_GROUP_SIZE ${GROUP_BATCHES * batchRows}, DICTIONARY_SIZE_LIMIT ${DICTIONARY_VALUES})`,
      );
      return { path, rows };
    };
    // A stream has the rows in the order of the export. This optimizer may exchange the sides of a join: they lose it.
    await engine.keepOrder();
    await engine.run("SET disabled_optimizers = 'build_side_probe_side'");
    let path = '';
    await withTypedRows(engine, batch, async (rows) => {
      // What will read the file is loaded while it is written.
      const [written] = await Promise.all([write(selectRowsSql(rows, batch, OWN_IN_ARROW)), loadDecoder()]);
      path = written.path;
      return written.rows;
    });
    const rowId = sharedRowIdSql(batch.columns);
    if (this.#mayShareRows) {
      const unsent = await write(`SELECT * FROM ${readFile(path)} WHERE ${rowId} NOT IN (FROM ${SENT})`);
      await rm(path);
      path = unsent.path;
    }
    if (mayShareRows) {
      await engine.run(`CREATE OR REPLACE TEMP TABLE ${SENT} AS SELECT ${rowId} AS row_id FROM ${readFile(path)}`);
    }
    return { path, batchRows, rescued: await countRescuedByKey(engine, readFile(path)) };
  }
}

const readFile = (path: string): string => `read_parquet([${pathLiteral(path)}], hive_partitioning = false)`;

/** Yields the rows of a file as messages, a record batch at a time. A row group is decoded as a whole. */
export async function* recordBatches({ path, batchRows }: TypedFile) {
  const { ParquetFile } = await loadDecoder();
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
}
