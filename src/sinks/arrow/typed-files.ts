import { join } from 'node:path';
import { hasDuplicateOrMissingIds, type Window } from '../../extract/window.ts';
import { type StoredColumn, typedColumns } from '../../table/columns.ts';
import { type IncomingColumns, incomingColumns } from '../../table/incoming.ts';
import { type PlannedColumn, planColumns, type Rules } from '../../table/plan.ts';
import { literal } from '../../types/sql.ts';
import { type Zone, zoneOf } from '../../types/zone.ts';
import { DICTIONARY_VALUES, readFiles } from '../files/parquet-file.ts';
import { type Engine, openEngine } from '../sql/engine/engine.ts';
import { engineError } from '../sql/engine/faults.ts';
import { rereadDate } from '../sql/row-dates.ts';
import { checkRowCount, rescuedOfBatch } from '../sql/rows/counts.ts';
import { fileQuery, typedValues, type WindowLoad } from '../sql/rows/file-query.ts';
import { dropStaging, stageWindow } from '../sql/rows/staging.ts';
import { baseId } from '../sql/rows/superseded.ts';
import type { PlaceOptions } from '../target.ts';
import { loadDecoder } from './ipc-stream.ts';

interface TypedFile {
  readonly path: string;
  /** Cells in `_rescued`, by source column name. */
  readonly rescued: ReadonlyMap<string, number>;
}

interface TypedFilesOptions extends Rules, Pick<PlaceOptions, 'clock' | 'memoryLimit' | 'signal'> {
  /** A private folder. */
  readonly folder: string;
  /** All columns of the stream, also those without a type. */
  readonly columns: readonly StoredColumn[];
  readonly groupRows: number;
}

const PLACE = 'the Arrow stream';
/** Temporary table: base id and date of rows of the previous window, which the next one may contain again. */
const SENT = '_dfinery_sent';

/** Yields each window that has rows, in order, as a Parquet file with the columns of a stream. Throws UserError. */
export async function* typedFiles(
  windows: AsyncIterable<Window>,
  options: TypedFilesOptions,
): AsyncGenerator<TypedFile> {
  const engine = await openEngine({ ...options, file: join(options.folder, 'engine'), lockWaitMs: 0 });
  try {
    // A stream has the rows in the order of the export, also those of `#withoutSent`.
    await engine.run('SET preserve_insertion_order = true');
    await engine.run("SET disabled_optimizers = 'build_side_probe_side'");
    await engine.run('SET enable_external_file_cache = false');
    const files = new TypedFiles(engine, options);
    for await (const window of windows) if (window.receipt.rows > 0) yield await files.write(window);
  } finally {
    await engine.close();
  }
}

class TypedFiles {
  readonly #options: TypedFilesOptions;
  readonly #engine: Engine;
  readonly #zone: Zone | undefined;
  #count = 0;
  #hasSent = false;

  constructor(engine: Engine, options: TypedFilesOptions) {
    this.#engine = engine;
    this.#options = options;
    this.#zone = zoneOf(options.timezone);
  }

  async write(window: Window): Promise<TypedFile> {
    const incoming = incomingColumns(window.files);
    const plan = this.#planOf(incoming);
    const load = { window, windowNumber: 0, incoming, planned: new Map(plan.map((c) => [c.key, c])), zone: this.#zone };
    const work = async () => {
      const all = await this.#writeRows(load);
      const path = this.#hasSent ? await this.#withoutSent(all) : all;
      await this.#remember(all, isOpen(window));
      return { path, rescued: await rescuedOfBatch(this.#engine, readFiles([path]), plan) };
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

  /** Plans how the window's cells become values of the stream, whose columns and types no longer change. */
  #planOf({ columns }: IncomingColumns): PlannedColumn[] {
    const stored = this.#options.columns;
    return planColumns(stored, columns, this.#options, { isFirst: false }).map((planned, i) => {
      const type = stored[i]?.type ?? null;
      if (planned.type === type) return planned;
      if (type === null) return { ...planned, type, readAs: null, isRefused: planned.readAs !== null };
      return { ...planned, type, readAs: type, isClean: false };
    });
  }

  async #writeRows(load: WindowLoad): Promise<string> {
    const path = this.#newPath();
    const rows = await this.#copy(await this.#rowsOf(load), path);
    if (hasDuplicateOrMissingIds(load.window)) await dropStaging(this.#engine);
    checkRowCount(load.window, rows, PLACE);
    return path;
  }

  /** The query of a window's rows: `_key`, the columns of the stream, `_rescued`. */
  async #rowsOf(load: WindowLoad): Promise<string> {
    const isPlain = !hasDuplicateOrMissingIds(load.window);
    const rows = isPlain ? fileQuery(load, 0) : await stageWindow(this.#engine, load);
    const own = [`${rows.key} AS _key`, ...typedValues(rows, load), `CAST(${rows.rescued} AS VARCHAR) AS _rescued`];
    return `SELECT ${own.join(', ')} FROM ${rows.from}${isPlain ? '' : ' ORDER BY s.rowid'}`;
  }

  /** Removes rows that the previous window had with the same id and date: they are not sent twice (S13). */
  async #withoutSent(all: string): Promise<string> {
    const path = this.#newPath();
    const { base, date } = this.#identity();
    await this.#copy(
      `SELECT r.* FROM ${readFiles([all])} r WHERE NOT EXISTS (SELECT 1 FROM ${SENT} s WHERE s.base = ${base} AND s.date = ${date})`,
      path,
    );
    return path;
  }

  async #remember(all: string, isOpened: boolean): Promise<void> {
    if (this.#hasSent) await this.#engine.run(`DROP TABLE ${SENT}`);
    if (!isOpened) return;
    const { base, date } = this.#identity();
    await this.#engine.run(
      `CREATE TEMP TABLE ${SENT} AS SELECT ${base} AS base, ${date} AS date FROM ${readFiles([all])}`,
    );
  }

  #identity(): { readonly base: string; readonly date: string } {
    const columns = typedColumns(this.#options.columns);
    return { base: baseId(columns), date: rereadDate(columns, this.#zone) };
  }

  /** Writes a query into a file; returns the number of its rows. */
  async #copy(query: string, path: string): Promise<number> {
    const size = `ROW_GROUP_SIZE ${this.#options.groupRows}, DICTIONARY_SIZE_LIMIT ${DICTIONARY_VALUES}`;
    const sql = `COPY (${query}) TO ${literal(path)} (FORMAT parquet, COMPRESSION snappy, ${size})`;
    // What will read the file is loaded while it is written.
    const [rows] = await Promise.all([this.#engine.run(sql), loadDecoder()]);
    return rows;
  }

  #newPath(): string {
    return join(this.#options.folder, `${++this.#count}.parquet`);
  }
}

/** True if the next window may contain rows of this one again. */
function isOpen({ receipt: { to, covers_to } }: Window): boolean {
  return covers_to === null || to > covers_to;
}
