import { join } from 'node:path';
import { literal, pathLiteral } from '../../cells/types/sql.ts';
import { identity, rescuedCells } from '../../engine/rows/counts.ts';
import { checkRowCount, selectRows, withTypedRows } from '../../engine/rows/typed-rows.ts';
import type { Engine } from '../../engine/session/engine.ts';
import { engineError } from '../../engine/session/faults.ts';
import { openEngine } from '../../engine/session/open.ts';
import type { DayDownload } from '../../extract/receipt.ts';
import { type PlannedBatch, planBatch, rescuesNothing } from '../../table/batch.ts';
import type { ColumnRules } from '../../table/column-plan.ts';
import { type StoredColumn, typedColumns } from '../../table/tables.ts';
import type { PlaceOptions } from '../contract.ts';
import { batchRows, loadDecoder, OWN_IN_ARROW } from './ipc-stream.ts';

interface TypedFile {
  readonly path: string;
  /** Number of rows of a record batch. */
  readonly batchRows: number;
  /** Cells in `_rescued`, by source column name. */
  readonly rescued: ReadonlyMap<string, number>;
}

interface TypedFilesOptions extends ColumnRules, Pick<PlaceOptions, 'clock' | 'memoryLimit' | 'signal'> {
  /** A private folder. */
  readonly folder: string;
}

const PLACE = 'the Arrow stream';
/** Number of record batches of a row group, which the decoder holds in memory. */
const GROUP_BATCHES = 4;
/** Different values at which a column gives up a dictionary, which takes time: ids never repeat. */
const DICTIONARY_VALUES = 4_096;
/** Temporary table: what tells the rows of the day before, which this one may have again. */
const SENT = '_dfinery_sent';

/** Writes days as Parquet files with the columns of a stream, in the order of their rows. Throws UserError. */
export class TypedFiles {
  readonly #options: TypedFilesOptions;
  readonly #engine: Engine;
  #count = 0;
  #hasSent = false;

  private constructor(engine: Engine, options: TypedFilesOptions) {
    this.#engine = engine;
    this.#options = options;
  }

  static async open(options: TypedFilesOptions): Promise<TypedFiles> {
    const engine = await openEngine({ ...options, file: join(options.folder, 'engine'), lockWaitMs: 0 });
    try {
      // A stream has the rows in the order of the export, also those that are left of it.
      await engine.run('SET preserve_insertion_order = true');
      await engine.run("SET disabled_optimizers = 'build_side_probe_side'");
      return new TypedFiles(engine, options);
    } catch (error) {
      await engine.close();
      throw engineError(error, PLACE);
    }
  }

  /** Writes the next day that has rows; `columns` are all of the stream, which no longer change. */
  async write(day: DayDownload, columns: readonly StoredColumn[]): Promise<TypedFile> {
    const { signal } = this.#options;
    // What a stream with a given schema lacks goes to `_rescued`.
    const rules =
      this.#options.pinned === undefined ? this.#options : { ...this.#options, schemaMode: 'freeze' as const };
    const batch = planBatch({ columns, isFirst: false }, [day], rules);
    try {
      return await this.#engine.transaction(() => this.#write(day, batch), signal);
    } catch (error) {
      signal?.throwIfAborted();
      throw engineError(error, PLACE);
    }
  }

  close(): Promise<void> {
    return this.#engine.close();
  }

  async #write({ receipt, mayShareRows }: DayDownload, batch: PlannedBatch): Promise<TypedFile> {
    const engine = this.#engine;
    const rowsABatch = batchRows(typedColumns(batch.columns).length, receipt.bytes / receipt.rows);
    const copy = (query: string, path: string) =>
      engine.run(
        `COPY (${query}) TO ${literal(path)} (FORMAT parquet, COMPRESSION lz4_raw, ` +
          `ROW_GROUP_SIZE ${GROUP_BATCHES * rowsABatch}, DICTIONARY_SIZE_LIMIT ${DICTIONARY_VALUES})`,
      );
    let path = this.#newPath();
    await withTypedRows(engine, batch, batch.days, async (rows) => {
      // What will read the file is loaded while it is written.
      const [written] = await Promise.all([copy(selectRows(rows, batch, OWN_IN_ARROW), path), loadDecoder()]);
      checkRowCount(batch.days, written, PLACE);
    });
    const same = identity(batch.columns);
    if (this.#hasSent) {
      const all = path;
      path = this.#newPath();
      await copy(`SELECT * FROM ${readFile(all)} WHERE ${same} NOT IN (FROM ${SENT})`, path);
    }
    this.#hasSent = mayShareRows;
    if (mayShareRows) {
      await engine.run(`CREATE OR REPLACE TEMP TABLE ${SENT} AS SELECT ${same} AS same FROM ${readFile(path)}`);
    }
    const rescued = rescuesNothing(batch) ? new Map<string, number>() : await rescuedCells(engine, readFile(path));
    return { path, batchRows: rowsABatch, rescued };
  }

  #newPath(): string {
    return join(this.#options.folder, `${++this.#count}.parquet`);
  }
}

const readFile = (path: string): string => `read_parquet([${pathLiteral(path)}], hive_partitioning = false)`;
