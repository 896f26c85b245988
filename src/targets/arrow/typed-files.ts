import { join } from 'node:path';
import { asText, literal } from '../../cells/types/sql.ts';
import { type Zone, zoneOf } from '../../cells/types/zone.ts';
import { rereadDate } from '../../engine/row-dates.ts';
import { checkRowCount, rescuedOfBatch } from '../../engine/rows/counts.ts';
import { fileQuery, type TypedRows, typedValues, type WindowLoad } from '../../engine/rows/file-query.ts';
import { Prewriter } from '../../engine/rows/prewriter.ts';
import { dropStaging, stageWindow } from '../../engine/rows/staging.ts';
import { baseId } from '../../engine/rows/superseded.ts';
import type { Engine } from '../../engine/session/engine.ts';
import { engineError } from '../../engine/session/faults.ts';
import { openEngine } from '../../engine/session/open.ts';
import { hasDuplicateOrMissingIds, type Window } from '../../extract/window.ts';
import { type StoredColumn, typedColumns } from '../../table/columns.ts';
import { incomingColumns } from '../../table/incoming.ts';
import { planColumns, type Rules } from '../../table/plan.ts';
import { DICTIONARY_VALUES, forgetReadFiles, readFiles } from '../files/parquet-file.ts';
import type { PlaceOptions } from '../place-options.ts';
import { batchRows, loadDecoder } from './ipc-stream.ts';

interface TypedFile {
  readonly path: string;
  /** Number of rows of a record batch. */
  readonly batchRows: number;
  /** Cells in `_rescued`, by source column name. */
  readonly rescued: ReadonlyMap<string, number>;
}

interface TypedFilesOptions extends Rules, Pick<PlaceOptions, 'clock' | 'memoryLimit' | 'signal'> {
  /** A private folder. */
  readonly folder: string;
}

const PLACE = 'the Arrow stream';
/** Number of record batches of a row group, which the decoder holds in memory. */
const GROUP_BATCHES = 4;
/** Temporary table: base id and date of rows of the previous window, which the next one may contain again. */
const SENT = '_dfinery_sent';

/** Writes windows as Parquet files with the columns of a stream, in the order of their rows. Throws UserError. */
export class TypedFiles {
  readonly #options: TypedFilesOptions;
  readonly #engine: Engine;
  readonly #zone: Zone | undefined;
  readonly #prewriter: Prewriter<string>;
  #count = 0;
  #hasSent = false;

  private constructor(engine: Engine, options: TypedFilesOptions) {
    this.#engine = engine;
    this.#options = options;
    this.#zone = zoneOf(options.timezone);
    this.#prewriter = new Prewriter(engine, (load) => this.#writePlain(load));
  }

  static async open(options: TypedFilesOptions): Promise<TypedFiles> {
    const engine = await openEngine({ ...options, file: join(options.folder, 'engine'), lockWaitMs: 0 });
    const files = new TypedFiles(engine, options);
    try {
      // A stream has the rows in the order of the export, also those of `#withoutSent`.
      await engine.run('SET preserve_insertion_order = true');
      await engine.run("SET disabled_optimizers = 'build_side_probe_side'");
      await forgetReadFiles(engine);
      return files;
    } catch (error) {
      await files.close();
      throw engineError(error, PLACE);
    }
  }

  /** Begins to write a window before the stream is known; `columns` are those of the windows so far. */
  begin(window: Window, columns: readonly StoredColumn[]): void {
    this.#prewriter.begin(this.#loadOf(window, columns));
  }

  /** Writes the next window that has rows; `columns` are all of the stream, also those without a type. */
  async write(window: Window, columns: readonly StoredColumn[]): Promise<TypedFile> {
    const load = this.#loadOf(window, columns);
    const work = async () => {
      const all = (await this.#prewriter.resultFor(load)) ?? (await this.#writeRows(load));
      const path = this.#hasSent ? await this.#withoutSent(all, load) : all;
      await this.#remember(all, load);
      const rescued = await rescuedOfBatch(this.#engine, readFiles([path]), [...load.planned.values()]);
      return { path, batchRows: batchRowsOf(load), rescued };
    };
    const { signal } = this.#options;
    try {
      const file = await this.#engine.transaction(work, signal);
      this.#hasSent = isOpen(window);
      return file;
    } catch (error) {
      signal?.throwIfAborted();
      throw engineError(error, PLACE);
    }
  }

  async close(): Promise<void> {
    await this.#prewriter.close();
    await this.#engine.close();
  }

  /** Plans how the window's cells become values of a stream with these columns and types. */
  #loadOf(window: Window, columns: readonly StoredColumn[]): WindowLoad {
    const incoming = incomingColumns(window.files);
    const plan = planColumns(columns, incoming.columns, this.#options, { isFirst: false }).map((planned, i) => {
      const type = columns[i]?.type ?? null;
      if (planned.type === type) return planned;
      if (type === null) return { ...planned, type, readAs: null, isRefused: planned.readAs !== null };
      return { ...planned, type, readAs: type, isClean: false };
    });
    return { window, windowNumber: 0, incoming, planned: new Map(plan.map((c) => [c.key, c])), zone: this.#zone };
  }

  async #writeRows(load: WindowLoad): Promise<string> {
    // What is still being written of other windows holds memory.
    if (this.#engine.isLowOnMemory) await this.#prewriter.waitForAll();
    return hasDuplicateOrMissingIds(load.window) ? this.#writeStaged(load) : this.#writePlain(load);
  }

  #writePlain(load: WindowLoad): Promise<string> {
    return this.#writeWindow(load, queryOf(fileQuery(load, 0), load), async (sql) => {
      const [row] = await this.#engine.rowsOnOwnConnection(sql);
      return Number(row.Count);
    });
  }

  async #writeStaged(load: WindowLoad): Promise<string> {
    const query = `${queryOf(await stageWindow(this.#engine, load), load)} ORDER BY s.rowid`;
    const path = await this.#writeWindow(load, query, (sql) => this.#engine.run(sql));
    await dropStaging(this.#engine);
    return path;
  }

  /** Writes all rows of a window. `run` returns how many rows a statement wrote. */
  async #writeWindow(load: WindowLoad, query: string, run: (sql: string) => Promise<number>): Promise<string> {
    const path = this.#newPath();
    // What will read the file is loaded while it is written.
    const [rows] = await Promise.all([run(copySql(query, path, load)), loadDecoder()]);
    checkRowCount(load.window, rows, PLACE);
    return path;
  }

  /** Removes rows that the previous window had with the same id and date: they are not sent twice. */
  async #withoutSent(all: string, load: WindowLoad): Promise<string> {
    const path = this.#newPath();
    const { base, date } = this.#identityOf(load);
    const isSent = `EXISTS (SELECT 1 FROM ${SENT} s WHERE s.base = ${base} AND s.date = ${date})`;
    await this.#engine.run(copySql(`SELECT r.* FROM ${readFiles([all])} r WHERE NOT ${isSent}`, path, load));
    return path;
  }

  async #remember(all: string, load: WindowLoad): Promise<void> {
    if (this.#hasSent) await this.#engine.run(`DROP TABLE ${SENT}`);
    if (!isOpen(load.window)) return;
    const { base, date } = this.#identityOf(load);
    await this.#engine.run(
      `CREATE TEMP TABLE ${SENT} AS SELECT ${base} AS base, ${date} AS date FROM ${readFiles([all])}`,
    );
  }

  #identityOf({ planned }: WindowLoad): { readonly base: string; readonly date: string } {
    const columns = typedColumns([...planned.values()]);
    return { base: baseId(columns), date: rereadDate(columns, this.#zone) };
  }

  #newPath(): string {
    return join(this.#options.folder, `${++this.#count}.parquet`);
  }
}

/** The query of a window's rows: `_key`, the columns of the stream, `_rescued`. */
function queryOf(rows: TypedRows, load: WindowLoad): string {
  const own = [`${rows.key} AS _key`, ...typedValues(rows, load), `${asText(rows.rescued)} AS _rescued`];
  return `SELECT ${own.join(', ')} FROM ${rows.from}`;
}

const copySql = (query: string, path: string, load: WindowLoad): string =>
  `COPY (${query}) TO ${literal(path)} (FORMAT parquet, COMPRESSION lz4_raw, ` +
  `ROW_GROUP_SIZE ${GROUP_BATCHES * batchRowsOf(load)}, ` +
  `DICTIONARY_SIZE_LIMIT ${DICTIONARY_VALUES})`;

function batchRowsOf({ window: { receipt }, planned }: WindowLoad): number {
  return batchRows(typedColumns([...planned.values()]).length, receipt.bytes / receipt.rows);
}

/** True if the next window may contain rows of this one again. */
function isOpen({ receipt: { to, covers_to } }: Window): boolean {
  return covers_to === null || to > covers_to;
}
