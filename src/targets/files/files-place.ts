import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import pLimit from 'p-limit';
import type { Day } from '../../base/days.ts';
import { identifier, literal } from '../../base/sql.ts';
import { describe } from '../../engine/conversions.ts';
import type { Engine } from '../../engine/session/engine.ts';
import { openEngine } from '../../engine/session/open-engine.ts';
import { RunFolder } from '../../fs/run-folder.ts';
import type { Storage } from '../../storage/storage.ts';
import { profilesAsTable, type StoredProfiles, type TableState } from '../../table/place-state.ts';
import type { StoredReceipt } from '../../table/receipts.ts';
import { EVENTS, USER_PROFILES } from '../../table/tables.ts';
import { folderError, noTableError } from '../failures.ts';
import { fetchColumns } from './fetch-columns.ts';
import {
  type DayFile,
  type FilesFormat,
  type FilesLog,
  type FilesOptions,
  type NewFile,
  newFileOf,
  type OpenMode,
  type PlaceVersion,
  type PlannedChange,
} from './format.ts';
import {
  describeFile,
  PARTITION_COLUMN,
  readParquet,
  rewriteParquet,
  rowsOfFile,
  selectConformed,
  writeParquet,
} from './parquet-file.ts';

/** Number of files that are copied at the same time. */
const COPY_CONCURRENCY = 4;
/** The column with the path of a row's file. */
const FILE = '_dfinery_file';

/** What an open place holds on to, until it is closed. */
interface OpenResources {
  readonly storage: Storage;
  readonly run: RunFolder;
  readonly engine: Engine;
}

/** An open place: its log, and what can be read from its files and written into new ones. */
export class FilesPlace {
  readonly address: string;
  readonly format: FilesFormat;
  readonly storage: Storage;
  readonly engine: Engine;
  readonly log: FilesLog;
  readonly #resources: OpenResources;
  /** The local copies of files of a bucket, by the path of the file. */
  readonly #copies = new Map<string, string>();

  private constructor(address: string, format: FilesFormat, resources: OpenResources, log: FilesLog) {
    this.address = address;
    this.format = format;
    this.storage = resources.storage;
    this.engine = resources.engine;
    this.log = log;
    this.#resources = resources;
  }

  /** Opens a place, and reads its latest version. Throws UserError. */
  static async open(format: FilesFormat, options: FilesOptions, mode: OpenMode): Promise<FilesPlace> {
    const storage = await format.storageOf(options);
    const { workFolder } = storage;
    let run: RunFolder | undefined;
    let engine: Engine | undefined;
    try {
      // On a disk the folder of the run lies in the place. Nothing is made in one of somebody else.
      if (mode === 'rewrite' && !(await format.isLoaded(storage))) throw noTableError(options.address);
      if (mode === 'load') await format.refuseForeign(storage);
      run =
        mode === 'read' || workFolder === undefined
          ? await RunFolder.open(options.spoolDir, options.clock, 'files')
          : await RunFolder.open(workFolder, options.clock, 'files', folderError);
      engine = await openEngine({ ...options, file: join(run.path, 'engine'), lockWaitMs: 0 });
      // Files are replaced under their names.
      await engine.run('SET enable_external_file_cache = false');
      const log = format.logOf({ storage, engine, runFolder: run.path }, options, mode);
      await log.read();
      if (mode === 'rewrite' && log.version === undefined) throw noTableError(options.address);
      return new FilesPlace(options.address, format, { storage, run, engine }, log);
    } catch (error) {
      await closeAll({ storage, run, engine });
      throw error;
    }
  }

  /** Runs work, and closes the place. */
  async use<T>(work: (place: FilesPlace) => Promise<T>): Promise<T> {
    try {
      return await work(this);
    } finally {
      await this.close();
    }
  }

  close(): Promise<void> {
    return closeAll(this.#resources);
  }

  /** The latest version. Throws UserError if nothing was loaded yet. */
  get version(): PlaceVersion {
    const { version } = this.log;
    if (version === undefined) throw noTableError(this.address);
    return version;
  }

  /** The folder of this run. */
  get runFolder(): string {
    return this.#resources.run.path;
  }

  /** The local path of a file: on a disk the file itself, else a copy, made once. */
  async fetch({ day, path }: DayFile): Promise<string> {
    const copy = this.#copies.get(path);
    if (copy !== undefined) return copy;
    const local = await this.storage.localFile(path, join(this.runFolder, `${PARTITION_COLUMN}=${day}`, randomUUID()));
    this.#copies.set(path, local);
    return local;
  }

  /** A local file of which only `columns` may be read: `fetchColumns`. */
  async fetchColumns(file: DayFile, columns: readonly string[]): Promise<string> {
    return this.#copies.get(file.path) ?? fetchColumns(this, file, columns, this.#newPath());
  }

  /** A relation of all rows of `events`: `event_date`, and all columns of the state. Undefined if there is no file. */
  async eventsRelation(files: Iterable<DayFile> = this.version.files.values()): Promise<string | undefined> {
    const { state, unfinishedDays } = this.version;
    const dayFiles = [...files];
    if (dayFiles.length === 0) return undefined;
    const paths = await pLimit(COPY_CONCURRENCY).map(dayFiles, (file) => this.fetch(file));
    const inFiles =
      unfinishedDays.size > 0
        ? (await describe(this.engine, `SELECT * FROM ${readParquet(paths)}`)).map(({ name }) => name)
        : dayFiles.flatMap(({ columns }) => [...columns]);
    const names = new Set(inFiles);
    const values = this.format.columnsOf(state).map(({ name, type }) => {
      const value = names.has(name) ? identifier(name) : 'NULL';
      return `CAST(${value} AS ${type}) AS ${identifier(name)}`;
    });
    // Not as a Hive partition: a folder above may be named like one, too.
    const day = `CAST(regexp_extract(${FILE}, '${PARTITION_COLUMN}=([0-9-]{10})[^=]*$', 1) AS DATE) AS ${PARTITION_COLUMN}`;
    const from = readParquet(paths, `hive_partitioning = false, filename = ${literal(FILE)}`);
    return `(SELECT ${[day, ...values].join(', ')} FROM ${from})`;
  }

  /** A relation of the rows of profiles, with all columns of their state; undefined if there are none. */
  async profilesRelation(): Promise<string | undefined> {
    const { state, profiles: file } = this.version;
    const table = profilesAsTable(state);
    if (table === undefined || file === undefined) return undefined;
    const local = await this.fetch(file);
    return `(${selectConformed(local, await describeFile(this.engine, local), table)})`;
  }

  /** The rows of days by the footers of their files; a day without a file is left out. */
  async countRows(days: readonly Day[]): Promise<Map<Day, number>> {
    const counted = new Map<Day, number>();
    for (const day of days) {
      const file = this.version.files.get(day);
      if (file !== undefined) counted.set(day, await rowsOfFile(this.engine, await this.fetchColumns(file, [])));
    }
    return counted;
  }

  /** Writes a query into a local file, which the next commit may store. `profiles`: it is that of the profiles. */
  async write(query: string, rows: number, receipt: StoredReceipt, profiles?: StoredProfiles): Promise<NewFile> {
    const written = await writeParquet(this.engine, { query, rows, receipt, profiles }, this.#newPath());
    return newFileOf(written, receipt.day, this.#newFilePath(receipt.day, profiles));
  }

  /** Writes a file anew, with the columns of `table` in their types. Undefined if no row is left. */
  async rewrite(
    file: DayFile,
    table: Pick<TableState, 'columns' | 'timezone' | 'receipts'>,
    { isLeaving, rowsLost = 0, changedAt, profiles }: RowsLeaving = {},
  ): Promise<NewFile | undefined> {
    const receipt = table.receipts.get(file.day);
    const rows = file.rows - rowsLost;
    if (receipt === undefined) throw new RangeError(`${file.day} has no receipt`);
    if (rows === 0) return undefined;
    const after = { ...receipt, rows_stored: rows, ...(changedAt !== undefined && { changed_at: changedAt }) };
    const { isUniform } = this.format;
    const local = await this.fetch(file);
    const source = { local, table, isUniform, isLeaving, rows, receipt: after, profiles };
    const written = await rewriteParquet(this.engine, source, this.#newPath());
    return newFileOf(written, file.day, this.#newFilePath(file.day, profiles));
  }

  /** As `commit` of the log; it fails once another run took this one for dead. */
  commit<T>(plan: () => Promise<PlannedChange<T>>): Promise<T> {
    return this.log.commit(async () => {
      const planned = await plan();
      this.#resources.run.checkHeld();
      return planned;
    });
  }

  /** The path at which the place will store a file. */
  #newFilePath(day: Day, profiles: StoredProfiles | undefined): string {
    return this.format.newPath(day, profiles === undefined ? EVENTS.name : USER_PROFILES.name);
  }

  /** A free path in the folder of this run. */
  #newPath(): string {
    return join(this.runFolder, randomUUID());
  }
}

/** The rows that leave a file when it is written anew, and what it says then. */
interface RowsLeaving {
  /** SQL, TRUE for the rows that leave, else FALSE. */
  readonly isLeaving?: string;
  /** Number of these rows. */
  readonly rowsLost?: number;
  readonly changedAt?: string;
  /** Of the file of profiles: what the place then holds of them. */
  readonly profiles?: StoredProfiles;
}

async function closeAll({
  storage,
  run,
  engine,
}: { [part in keyof OpenResources]: OpenResources[part] | undefined }): Promise<void> {
  await engine?.close();
  storage?.close();
  await run?.remove();
}
