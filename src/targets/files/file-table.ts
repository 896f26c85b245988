import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import pLimit from 'p-limit';
import { codeOf, transientError } from '../../base/errors.ts';
import { type Zone, zoneOf } from '../../cells/types/zone.ts';
import { rowsByWindow } from '../../engine/rows/counts.ts';
import type { Engine } from '../../engine/session/engine.ts';
import { openEngine } from '../../engine/session/open.ts';
import { hasLiveRun, RunFolder, runFolders } from '../../extract/spool/run-folder.ts';
import { checkConditionalWrites } from '../../storage/open.ts';
import type { Storage } from '../../storage/storage.ts';
import type { TableName } from '../../table/columns.ts';
import type { TableState } from '../../table/state.ts';
import { filesError, folderError, noTableError } from '../failures.ts';
import type { DataFile, NewFile, ReadableFile } from './data-file.ts';
import type { FilesFormat, OpenFilesOptions, OpenMode, OpenPlace } from './files-format.ts';
import {
  forgetReadFiles,
  PARTITION_COLUMN,
  readFiles,
  type SizedQuery,
  type Writer,
  type WrittenFile,
  writeFile,
} from './parquet-file.ts';
import { dataFilePath, FILE_CONCURRENCY } from './stored-files.ts';
import type { FileChange, Snapshot, TableLog } from './table-log.ts';

/** Attempts at a read while a writer changes its files. */
const READ_ATTEMPTS = 5;

export interface FileToWrite extends SizedQuery {
  readonly date: string | null;
  /** Number of rows of a file of `events` by window; undefined if they are to be counted in the file. */
  readonly windows?: ReadonlyMap<number, number> | undefined;
  readonly source?: string;
  readonly isSorted?: boolean;
}

/** The tables of an open place, with the operations on their files. */
export class FileTable {
  readonly place: string;
  readonly storage: Storage;
  readonly log: TableLog;
  readonly engine: Engine;
  readonly #open: OpenPlace;
  /** Local files with the content of stored ones, by path and columns. */
  readonly #copies = new Map<string, string>();
  /** Paths that `newPath` has returned and that may have a file. */
  readonly #written = new Set<string>();

  constructor(place: string, open: OpenPlace) {
    this.place = place;
    this.#open = open;
    this.storage = open.storage;
    this.log = open.log;
    this.engine = open.engine;
  }

  /** The latest version that was read or committed here; undefined before the first commit. */
  get latest(): Snapshot | undefined {
    return this.log.snapshot;
  }

  /** The latest version. Throws UserError if nothing was loaded yet. */
  get snapshot(): Snapshot {
    if (this.latest !== undefined) return this.latest;
    throw noTableError(this.place);
  }

  /** True if no lock keeps other writers out while the place is open for writing. */
  get isShared(): boolean {
    return this.#open.checkHeld !== undefined;
  }

  filesOf(table: TableName): DataFile[] {
    return this.latest?.files.filter((file) => file.table === table) ?? [];
  }

  get zone(): Zone | undefined {
    return zoneOf(this.snapshot.state.timezone);
  }

  /** Makes a new path in the folder of files that are not stored yet. */
  newPath(what: string): string {
    const path = join(this.#open.folder, `${what}-${randomUUID()}.part`);
    this.#written.add(path);
    return path;
  }

  /** Gives files with a local copy, made at most once in a run. A copy for some `columns` may hold no others. */
  fetch(files: readonly DataFile[], columns?: ReadonlySet<string>): Promise<ReadableFile[]> {
    return pLimit(FILE_CONCURRENCY).map(files, async (file) => {
      return { ...file, copy: file.local ?? (await this.#copyOf(file, columns)) };
    });
  }

  async fetchOne(file: DataFile): Promise<string> {
    return (await this.fetch([file]))[0].copy;
  }

  /** Commits a change; then removes local files that were written for it, and copies of removed files. */
  async commit(change: FileChange): Promise<void> {
    this.#open.checkHeld?.();
    await this.log.commit(change);
    const removed = new Set(change.removed.map(({ path }) => path));
    for (const key of [...this.#copies.keys()]) if (removed.has(key.split('\0')[0])) this.#copies.delete(key);
    const copies = new Set(this.#copies.values());
    for (const path of [...this.#written].filter((one) => !copies.has(one))) {
      await rm(path, { recursive: true, force: true });
      this.#written.delete(path);
    }
  }

  /** Makes a writer. `onOwnConnection`: it works beside other statements, and does not see their temporary tables. */
  writer({ onOwnConnection = false } = {}): Writer {
    const { engine, log } = this;
    const rows = (sql: string) => (onOwnConnection ? engine.rowsOnOwnConnection(sql) : engine.rows(sql));
    return { rows, isLowOnMemory: engine.isLowOnMemory, layout: log.layout };
  }

  /** Writes a query into a local file, which the next commit may store. */
  async write(file: FileToWrite): Promise<NewFile> {
    const written = await writeFile(this.writer(), file, this.newPath(file.table));
    const { table, windows } = file;
    if (table !== 'events' || windows !== undefined) return this.newFile(written, file);
    return this.newFile(written, { ...file, windows: await rowsByWindow(this.engine, readFiles([written.local])) });
  }

  newFile(written: WrittenFile, file: Omit<FileToWrite, 'query' | 'rows'>): NewFile {
    const { table, date, windows = new Map(), source, isSorted = false } = file;
    const id = randomUUID();
    return {
      ...written,
      table,
      path: dataFilePath(table, date, this.log.layout.hasOneFilePerDate === true ? 'data_0' : `part-${id}`),
      id,
      date,
      columns: new Set([...written.statistics.keys()].filter((name) => name !== PARTITION_COLUMN)),
      windows,
      isSorted,
      ...(source !== undefined && { source }),
    };
  }

  /** The folders of other runs in this place; those of `dead` ones its opening could not remove. */
  async otherFolders(): Promise<{ readonly inUse: string[]; readonly dead: string[] }> {
    const { workFolder } = this.storage;
    const all = workFolder === undefined ? [] : await runFolders(workFolder);
    const [inUse, dead]: [string[], string[]] = [[], []];
    for (const folder of all.filter((one) => one !== this.#open.folder)) {
      const isLive = await hasLiveRun(folder).catch((error) => (codeOf(error) === 'ENOENT' ? 'gone' : false));
      // A run without a lease may be about to write it.
      if (isLive !== 'gone') (isLive === false ? dead : inUse).push(folder);
    }
    return { inUse, dead };
  }

  close(): Promise<void> {
    return this.#open.close();
  }

  async #copyOf({ path, bytes }: DataFile, columns?: ReadonlySet<string>): Promise<string> {
    const keyOf = (names: string) => `${path}\0${names}`;
    const key = keyOf(columns === undefined ? '' : JSON.stringify([...columns].sort()));
    const part = columns && { bytes, columns };
    // A copy of the whole file has all columns.
    const known = this.#copies.get(keyOf('')) ?? this.#copies.get(key);
    const local = known ?? (await this.storage.localFile(path, this.newPath('copy'), part));
    this.#copies.set(key, local);
    return local;
  }
}

export type PlaceWithoutLog = Omit<OpenPlace, 'log'>;

export const copiesOf = (files: readonly ReadableFile[]): string[] => files.map(({ copy }) => copy);

/**
 * Opens a place with an engine and a folder of this run alone: for reading, or for writing if the commit and not a lock
 * decides between two writers. `logFolder`: the folder of the storage whose `create` is that commit, which the storage
 * must honour; without a file in it there is nothing to rewrite, and nothing is made. `close` closes the storage too,
 * as does a failure. Throws what `logOf` throws, or UserError.
 */
export async function openWithoutLock(
  storage: Storage,
  options: OpenFilesOptions,
  mode: OpenMode,
  logOf: (open: PlaceWithoutLog) => Promise<TableLog>,
  logFolder?: string,
): Promise<OpenPlace> {
  let run: RunFolder | undefined;
  let engine: Engine | undefined;
  const checkHeld = () => run?.checkHeld();
  const close = async () => {
    try {
      await engine?.close();
    } finally {
      storage.close();
      await run?.remove();
    }
  };
  try {
    if (mode === 'rewrite' && logFolder !== undefined && !(await hasFiles(storage, logFolder))) {
      throw noTableError(options.place);
    }
    const root = mode === 'read' ? options.spoolDir : (storage.workFolder ?? options.spoolDir);
    run = await RunFolder.open(root, options.clock, 'files', root === storage.workFolder ? folderError : undefined);
    engine = await openEngine({ ...options, file: join(run.path, 'engine'), lockWaitMs: 0 });
    await forgetReadFiles(engine);
    if (mode !== 'read' && logFolder !== undefined) await checkConditionalWrites(storage);
    const open = { storage, engine, folder: run.path, checkHeld, close };
    return { ...open, log: await logOf(open) };
  } catch (error) {
    await close();
    throw error;
  }
}

async function hasFiles(storage: Storage, folder: string): Promise<boolean> {
  for await (const _ of storage.list(folder)) return true;
  return false;
}

/**
 * Opens a place for reading and runs work. If files changed meanwhile, the work runs again, unless its result is
 * certain.
 */
export function readingTable<T>(
  format: FilesFormat,
  options: OpenFilesOptions,
  work: (table: FileTable) => Promise<T>,
  isCertain: (found: T) => boolean = () => true,
): Promise<T> {
  const read = async (table: FileTable): Promise<T> => {
    for (let attempt = 1; ; attempt++) {
      const [found] = await Promise.allSettled([work(table)]);
      options.signal?.throwIfAborted();
      const isDecided = found.status === 'fulfilled' && isCertain(found.value);
      if (isDecided || (await table.log.isUnchanged())) {
        if (found.status === 'fulfilled') return found.value;
        throw found.reason;
      }
      if (attempt === READ_ATTEMPTS) {
        throw transientError(`${options.place} is written all the time: try again once its writer is done.`);
      }
      await table.log.read();
    }
  };
  return withTable(format, options, 'read', (table) => table.engine.withSignal(options.signal, () => read(table)));
}

export const readFilesState = (format: FilesFormat, options: OpenFilesOptions): Promise<TableState | undefined> =>
  readingTable(format, { ...options, isStateEnough: true }, async ({ latest }) => latest?.state);

/** Opens an existing place, runs work and closes it. Throws UserError. */
export async function withTable<T>(
  format: FilesFormat,
  options: OpenFilesOptions,
  mode: 'read' | 'rewrite',
  work: (table: FileTable) => Promise<T>,
): Promise<T> {
  try {
    const table = new FileTable(options.place, await format.open(options, mode));
    try {
      return await work(table);
    } finally {
      await table.close();
    }
  } catch (error) {
    options.signal?.throwIfAborted();
    throw filesError(error, options.place);
  }
}
