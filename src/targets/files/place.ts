import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import pLimit from 'p-limit';
import type { Day } from '../../base/days.ts';
import { transientError } from '../../base/errors.ts';
import { identifier, literal, pathLiteral } from '../../cells/types/sql.ts';
import { describe } from '../../engine/conversions.ts';
import type { Engine } from '../../engine/session/engine.ts';
import { openEngine } from '../../engine/session/open.ts';
import { RunFolder } from '../../extract/spool.ts';
import type { Storage } from '../../storage/storage.ts';
import { profilesOf, type StoredProfiles, type TableState } from '../../table/place-state.ts';
import type { StoredReceipt } from '../../table/receipts.ts';
import { EVENTS, USER_PROFILES } from '../../table/tables.ts';
import { filesError, folderError, noTableError } from '../failures.ts';
import type {
  Change,
  CommitChange,
  DayFile,
  FilesFormat,
  FilesLog,
  FilesOptions,
  LogParts,
  NewFile,
  OpenMode,
  Snapshot,
} from './format.ts';
import { fetchColumns } from './id-columns.ts';
import { readParquet, rowsOfFile, writeParquet } from './parquet-file.ts';
import { describeFile, PARTITION_COLUMN, selectConformed } from './rows.ts';

/** Number of files that are copied at the same time. */
const COPY_CONCURRENCY = 4;
const READ_ATTEMPTS = 5;
/** The column with the path of a row's file. */
const FILE = '_dfinery_file';

/** An open place, with the operations on its files. */
export class FilesPlace {
  readonly name: string;
  readonly storage: Storage;
  readonly engine: Engine;
  readonly log: FilesLog;
  readonly #run: RunFolder;
  readonly #copies = new Map<string, string>();

  private constructor(name: string, { storage, engine }: LogParts, log: FilesLog, run: RunFolder) {
    this.name = name;
    this.storage = storage;
    this.engine = engine;
    this.log = log;
    this.#run = run;
  }

  /** Opens a place. Throws UserError. */
  static async open(format: FilesFormat, options: FilesOptions, mode: OpenMode): Promise<FilesPlace> {
    const storage = await format.storageOf(options);
    let run: RunFolder | undefined;
    let engine: Engine | undefined;
    try {
      const own = storage.workFolder;
      if (mode === 'rewrite' && own !== undefined && !(await hasFiles(storage))) throw noTableError(options.place);
      if (mode === 'load' && own !== undefined) await format.refuseForeign(storage);
      const isHere = mode !== 'read' && own !== undefined;
      run = await RunFolder.open(
        isHere ? own : options.spoolDir,
        options.clock,
        'files',
        isHere ? folderError : undefined,
      );
      engine = await openEngine({ ...options, file: join(run.path, 'engine'), lockWaitMs: 0 });
      // Files are replaced under their names.
      await engine.run('SET enable_external_file_cache = false');
      const parts = { storage, engine, folder: run.path };
      const log = format.logOf(parts, options, mode);
      await log.read();
      if (mode === 'rewrite' && log.snapshot === undefined) throw noTableError(options.place);
      return new FilesPlace(options.place, parts, log, run);
    } catch (error) {
      await engine?.close();
      storage.close();
      await run?.remove();
      throw error;
    }
  }

  /** The latest version. Throws UserError if nothing was loaded yet. */
  get snapshot(): Snapshot {
    const { snapshot } = this.log;
    if (snapshot === undefined) throw noTableError(this.name);
    return snapshot;
  }

  /** The folder of this run. */
  get folder(): string {
    return this.#run.path;
  }

  /** Makes a free path in the folder of this run. */
  newPath(): string {
    return join(this.#run.path, randomUUID());
  }

  /** The local path of a file: on a disk the file itself, else a copy, made once. */
  async fetch({ day, path }: DayFile): Promise<string> {
    const known = this.#copies.get(path);
    if (known !== undefined) return known;
    const local = await this.storage.localFile(path, join(this.#run.path, `${PARTITION_COLUMN}=${day}`, randomUUID()));
    this.#copies.set(path, local);
    return local;
  }

  /** A local file of which only `columns` may be read: `fetchColumns`. */
  async fetchColumns(file: DayFile, columns: readonly string[]): Promise<string> {
    return this.#copies.get(file.path) ?? fetchColumns(this, file, columns, this.newPath());
  }

  /**
   * A relation of the rows of files: `event_date`, `_key`, `_rescued` and all columns of the state. Undefined if there is
   * no file.
   */
  async rowsOf(files: Iterable<DayFile>): Promise<string | undefined> {
    const all = [...files];
    if (all.length === 0) return undefined;
    const paths = await pLimit(COPY_CONCURRENCY).map(all, (file) => this.fetch(file));
    const isUnfinished = this.log.unfinished.size > 0;
    const found = isUnfinished ? await describe(this.engine, `SELECT * FROM ${readParquet(paths)}`) : [];
    const there = new Set(isUnfinished ? found.map(({ name }) => name) : all.flatMap(({ columns }) => [...columns]));
    const values = this.log.columnsOf(this.snapshot.state).map(({ name, type }) => {
      const value = there.has(name) ? identifier(name) : 'NULL';
      return `CAST(${value} AS ${type}) AS ${identifier(name)}`;
    });
    // Not as a Hive partition: a folder above may be named like one, too.
    const day = `CAST(regexp_extract(${FILE}, '${PARTITION_COLUMN}=([0-9-]{10})[^=]*$', 1) AS DATE) AS ${PARTITION_COLUMN}`;
    const from = readParquet(paths, `hive_partitioning = false, filename = ${literal(FILE)}`);
    return `(SELECT ${[day, ...values].join(', ')} FROM ${from})`;
  }

  /** A relation of the rows of profiles, with all columns of their state; undefined if there are none. */
  async rowsOfProfiles(): Promise<string | undefined> {
    const { state, profiles: file } = this.snapshot;
    const table = profilesOf(state);
    if (table === undefined || file === undefined) return undefined;
    const local = await this.fetch(file);
    return `(${selectConformed(local, await describeFile(this.engine, local), table)})`;
  }

  /** Writes a query into a local file, which the next commit may store. `profiles`: it is that of the profiles. */
  async write(query: string, rows: number, receipt: StoredReceipt, profiles?: StoredProfiles): Promise<NewFile> {
    const source = { query, rows, receipt, profiles };
    const { columns: facts, ...written } = await writeParquet(this.engine, source, this.newPath());
    const { day } = receipt;
    const path = this.log.pathOf(day, profiles === undefined ? EVENTS.name : USER_PROFILES.name);
    return { ...written, day, path, columns: new Set(facts.keys()), facts };
  }

  /**
   * Writes a file anew with `columns` in their types, without the rows that meet a condition. Undefined if no row is
   * left.
   */
  async rewrite(
    file: DayFile,
    state: Pick<TableState, 'columns' | 'timezone' | 'receipts'>,
    {
      without,
      lost = 0,
      changedAt,
      profiles,
    }: {
      readonly without?: string;
      readonly lost?: number;
      readonly changedAt?: string;
      readonly profiles?: StoredProfiles;
    } = {},
  ): Promise<NewFile | undefined> {
    const receipt = state.receipts.get(file.day);
    const rows = file.rows - lost;
    if (rows === 0 || receipt === undefined) return undefined;
    const local = await this.fetch(file);
    const found = await describeFile(this.engine, local);
    const all = selectConformed(local, found, state);
    const there = new Set(found.map(({ name }) => name));
    const kept = this.log.columnsOf(state).filter(({ name }) => this.log.isUniform || there.has(name));
    const where = without === undefined ? '' : ` WHERE NOT coalesce(${without}, false)`;
    const query = `SELECT ${kept.map(({ name }) => identifier(name)).join(', ')} FROM (${all})${where}`;
    const after = { ...receipt, rows_stored: rows, ...(changedAt !== undefined && { changed_at: changedAt }) };
    const written = await this.write(query, rows, after, profiles);
    if (written.rows === rows) return written;
    throw new RangeError(`${file.path} came to ${written.rows} rows instead of ${rows}`);
  }

  /** The rows of days by the footers of their files; a day without a file is left out. */
  async countRows(days: readonly Day[]): Promise<Map<Day, number>> {
    const counted = new Map<Day, number>();
    for (const day of days) {
      const file = this.snapshot.files.get(day);
      if (file !== undefined) counted.set(day, await rowsOfFile(this.engine, await this.fetchColumns(file, [])));
    }
    return counted;
  }

  /** As `exclusively` of the log; a commit then removes local files that were written for it. */
  exclusively<T>(work: (commit: CommitChange) => Promise<T>): Promise<T> {
    return this.log.exclusively((commit) => work((change) => this.#commit(change, commit)));
  }

  async #commit(change: Change, commit: CommitChange): Promise<void> {
    this.#run.checkHeld();
    await commit(change);
    const { removed, added, profiles } = change;
    for (const { path } of [...removed, ...(profiles?.removed === undefined ? [] : [profiles.removed])]) {
      this.#copies.delete(path);
    }
    const written = [...added, ...(profiles?.added === undefined ? [] : [profiles.added])];
    for (const { local } of written) await rm(local, { force: true });
  }

  async close(): Promise<void> {
    try {
      await this.engine.close();
    } finally {
      this.storage.close();
      await this.#run.remove();
    }
  }
}

async function hasFiles(storage: Storage): Promise<boolean> {
  for await (const _ of storage.list('events')) return true;
  return (await storage.read('_dfinery.json')) !== undefined;
}

/** SQL of the rows of a JSON file of keys, of one day. */
export const keysOf = (path: string, day: Day): string =>
  `SELECT key FROM read_json(${pathLiteral(path)}, format = 'newline_delimited', columns = {day: 'VARCHAR', key: 'VARCHAR'})
  WHERE day = ${literal(day)}`;

/** Opens a place, runs work and closes it. Throws UserError. */
export async function withPlace<T>(
  format: FilesFormat,
  options: FilesOptions,
  mode: OpenMode,
  work: (place: FilesPlace) => Promise<T>,
): Promise<T> {
  try {
    const place = await FilesPlace.open(format, options, mode);
    try {
      return await place.engine.withSignal(options.signal, () => work(place));
    } finally {
      await place.close();
    }
  } catch (error) {
    options.signal?.throwIfAborted();
    throw filesError(error, options.place);
  }
}

/**
 * Opens a place and reads it. If a writer changed it meanwhile, the work runs again, unless its result `isCertain`: a
 * version that is read whole.
 */
export function reading<T>(
  format: FilesFormat,
  options: FilesOptions,
  work: (place: FilesPlace) => Promise<T>,
  isCertain: (found: T) => boolean = () => true,
): Promise<T> {
  return withPlace(format, options, 'read', async (place) => {
    for (let attempt = 1; ; attempt++) {
      const [found] = await Promise.allSettled([work(place)]);
      options.signal?.throwIfAborted();
      const isDecided = found.status === 'fulfilled' && isCertain(found.value);
      if (isDecided || (await place.log.isUnchanged())) {
        if (found.status === 'fulfilled') return found.value;
        throw found.reason;
      }
      if (attempt === READ_ATTEMPTS) {
        throw transientError(`${options.place} is written all the time: try again once its writer is done.`);
      }
      await place.log.read();
    }
  });
}
