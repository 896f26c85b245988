import { isDeepStrictEqual } from 'node:util';
import pLimit from 'p-limit';
import type { Day } from '../../../base/days.ts';
import { configError } from '../../../base/errors.ts';
import { plainCount } from '../../../base/quantities.ts';
import { folderOf, fromRoot, inFolder } from '../../../storage/folder.ts';
import type { StoredObject } from '../../../storage/storage.ts';
import { type Difference, difference } from '../../../table/differences.ts';
import type { PlaceState } from '../../../table/place-state.ts';
import { nextChangedAt, removedDays, withPruned } from '../../../table/receipts.ts';
import { EVENTS, type Table } from '../../../table/tables.ts';
import type { FilesOptions, LogParts, OpenMode } from '../format.ts';
import type { DayFile, NewFile } from '../local-files.ts';
import { PARTITION_COLUMN } from '../parquet-file.ts';
import { damagedError } from '../stored-state.ts';
import { addedIn, commitActions, dayFileOf, retentionMsOf, type TableChange } from './commit-actions.ts';
import { stateActions, stateOf } from './delta-state.ts';
import { entryPath, isDataFile, isOurs, LOG_FOLDER, type TableFiles } from './protocol/entry.ts';
import { LogVersion, readLatest } from './protocol/log-version.ts';
import { checkProtocol, partitionColumnsOf, schemaString } from './schema.ts';
import {
  CHECKPOINT_EVERY,
  eraseHistory,
  eraseWithoutLog,
  expiredFiles,
  renewCheckpoint,
  type Upkeep,
} from './upkeep.ts';

const STORE_CONCURRENCY = 4;

/** A table at one version of its log. */
interface TableVersion {
  readonly state: PlaceState;
  readonly files: ReadonlyMap<Day, DayFile>;
}

/** The log of one table of a place. Its paths are from the folder of the table, but for those of a `DayFile`. */
export class TableLog {
  /** The table as it was read or committed last; undefined before the first commit. */
  version: TableVersion | undefined;
  readonly #tableFiles: TableFiles;
  readonly #table: Table['name'];
  readonly #options: FilesOptions;
  readonly #mode: OpenMode;
  /** The log of `version`. */
  #log: LogVersion | undefined;
  /** The data files that were in the storage when the table was read. */
  #stored: readonly StoredObject[] = [];
  /** Live files that somebody removed from the storage. */
  #missing: ReadonlySet<string> = new Set();

  constructor(parts: LogParts, table: Table['name'], options: FilesOptions, mode: OpenMode) {
    this.#tableFiles = { ...parts, storage: folderOf(parts.storage, table) };
    this.#table = table;
    this.#options = options;
    this.#mode = mode;
  }

  get address(): string {
    return this.#tableFiles.storage.address;
  }

  /** Reads the latest version, and lists the data files; false if the version was known. */
  async read(): Promise<boolean> {
    const isNew = await this.readEntries();
    if (this.#log === undefined) return isNew;
    this.#stored = await this.#listDataFiles();
    const missingBefore = this.#missing.size;
    this.#missing = await this.#missingOf(this.#log);
    if (this.#missing.size + missingBefore > 0) this.version = this.#versionOf(this.#log);
    if (this.#missing.size > 0) this.#warnOfRemoved(this.#missing.size);
    return isNew;
  }

  /** Reads what is new in the log; false if nothing is. */
  async readEntries(): Promise<boolean> {
    const before = this.#log?.number;
    const log = await readLatest(this.#tableFiles, this.#log);
    if (log?.number === before) return false;
    if (log !== undefined) this.#refuseOthers(log);
    this.version = log && this.#versionOf(log);
    this.#log = log;
    return true;
  }

  /** True if the latest version has this state, and all of its files are there. */
  hasStored(state: PlaceState): boolean {
    return this.#missing.size === 0 && this.#log !== undefined && stateActions(this.#log.domains, state).length === 0;
  }

  /** Stores the files of a change, which no reader sees before its entry. */
  async putFiles(files: readonly NewFile[]): Promise<void> {
    const { storage } = this.#tableFiles;
    const limit = pLimit(STORE_CONCURRENCY);
    const put = ({ local, path }: NewFile) => limit(() => storage.putFile(local, inFolder(this.#table, path)));
    const stored = await Promise.allSettled(files.map(put));
    const failed = stored.find((outcome) => outcome.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }

  /** Makes a change of the version visible by the next entry; false if another writer has created that. */
  async createEntry(change: TableChange): Promise<boolean> {
    const { storage } = this.#tableFiles;
    const { files: newFiles, state } = change;
    const now = this.#options.clock.now();
    const log = this.#log ?? new LogVersion();
    const replaced = [...newFiles.keys()].flatMap((day) => this.version?.files.get(day)?.path ?? []);
    const leaving = new Set([...this.#missing, ...replaced.map((path) => inFolder(this.#table, path))]);
    const context = { now, retentionMs: this.#retentionMs, leaving, table: this.#table };
    const actions = commitActions(log, change, context);
    const text = `${actions.map((action) => JSON.stringify(action)).join('\n')}\n`;
    const path = entryPath(log.number + 1);
    if (!(await storage.create(path, text))) return false;

    log.apply(log.number + 1, actions);
    this.#log = log;
    const files = new Map(this.version?.files);
    for (const day of newFiles.keys()) files.delete(day);
    for (const { local: _local, statistics: _statistics, ...file } of addedIn(newFiles)) files.set(file.day, file);
    this.version = { state, files };
    if (log.number > 0 && log.number % CHECKPOINT_EVERY === 0) await this.#renewCheckpoint(log);
    return true;
  }

  /** Removes every byte of files and history that the version does not name. */
  async erase(): Promise<void> {
    if (this.#log === undefined) await eraseWithoutLog(this.#tableFiles, this.#options.clock.now());
    else await eraseHistory(this.#upkeepOf(this.#log));
  }

  /** Removes files whose retention has ended, and those that dead runs left. */
  async tidy(): Promise<void> {
    if (this.#expiredFiles().length === 0) return;
    // Another run may have committed a file meanwhile that was nobody's when the table was read.
    await this.readEntries();
    await this.#tableFiles.storage.remove(this.#expiredFiles());
  }

  /** The files that this program did not write, but for those of the log; from the root of the place. */
  async foreign(): Promise<string[]> {
    const paths = (await this.#listTable()).filter((path) => !isOurs(path));
    return paths.map((path) => fromRoot(this.#table, path));
  }

  /** True if the folder has a data file of this program. Its log need not be readable. */
  async hasDataFiles(): Promise<boolean> {
    return (await this.#listTable()).some(isDataFile);
  }

  check(): Difference[] {
    if (this.version === undefined) return [];
    if (this.#log?.metaData?.schemaString === schemaString(this.version.state, this.#table)) return [];
    return [difference('columns', `${this.address}: the schema in the log is not that of the state`)];
  }

  #refuseOthers({ protocol, metaData }: LogVersion): void {
    if (protocol === undefined || metaData === undefined) {
      throw configError(`${this.address} has a log without protocol or metadata: restore it from a copy.`);
    }
    checkProtocol(protocol, this.address);
    if (isDeepStrictEqual(metaData.partitionColumns, partitionColumnsOf(this.#table))) return;
    throw configError(`${this.address} is no longer partitioned as this program does it: somebody else changed it.`);
  }

  /** The table at a version of its log. Days without a live file that is there count as pruned. */
  #versionOf(log: LogVersion): TableVersion {
    const state = stateOf(log.domains, this.address);
    const files = new Map<Day, DayFile>();
    const [receiptDay] = state.receipts.keys();
    for (const add of log.files.values()) {
      if (this.#missing.has(add.path)) continue;
      const file = dayFileOf(add, this.address, this.#table, receiptDay);
      const where = `${this.address}/${add.path}`;
      if (files.has(file.day)) throw damagedError(where, `${file.day} has two files`);
      if (!state.receipts.has(file.day)) throw damagedError(where, `${file.day} has no receipt`);
      files.set(file.day, file);
    }
    const changedAt = nextChangedAt(state.receipts, this.#options.clock.now());
    const receipts = withPruned(state.receipts, removedDays(state.receipts, files), changedAt);
    return { state: { ...state, receipts }, files };
  }

  /** The live files that are not in the storage. A list may lack a file that is there: each is asked for by itself. */
  async #missingOf({ files }: LogVersion): Promise<Set<string>> {
    const stored = new Set(this.#stored.map(({ path }) => path));
    const unlisted = [...files.keys()].filter((path) => !stored.has(path));
    const { storage } = this.#tableFiles;
    const objects = await pLimit(STORE_CONCURRENCY).map(unlisted, (path) => storage.read(path));
    return new Set(unlisted.filter((_, i) => objects[i] === undefined));
  }

  #warnOfRemoved(files: number): void {
    if (this.#mode === 'read') return;
    const message = `${this.address}: the files of ${plainCount(files, 'day')} were removed: they count as pruned.`;
    this.#options.logger.warn('days.removed', message, { days: files });
  }

  /** The data files in the storage. The folder of the log comes before them in the order of paths. */
  async #listDataFiles(): Promise<StoredObject[]> {
    const first = this.#table === EVENTS.name ? PARTITION_COLUMN : 'part-';
    const files: StoredObject[] = [];
    for await (const file of this.#tableFiles.storage.list('', first)) files.push(file);
    return files;
  }

  /** The paths of all files in the folder of the table but for its log. */
  async #listTable(): Promise<string[]> {
    const paths: string[] = [];
    for await (const { path } of this.#tableFiles.storage.list('')) {
      if (!path.startsWith(`${LOG_FOLDER}/`)) paths.push(path);
    }
    return paths;
  }

  /** A failure is only logged: the commits are valid without a checkpoint. */
  async #renewCheckpoint(log: LogVersion): Promise<void> {
    try {
      await renewCheckpoint(this.#upkeepOf(log));
    } catch (error) {
      const version = log.number;
      const message = `${this.address}: no checkpoint of version ${version} could be written; the next run tries the next.`;
      this.#options.logger.warn('delta.checkpoint', message, { version, error: String(error) });
    }
  }

  /** The paths of files that no version within the retention names. */
  #expiredFiles(): string[] {
    return this.#log === undefined ? [] : expiredFiles(this.#stored, this.#upkeepOf(this.#log));
  }

  #upkeepOf(log: LogVersion): Upkeep {
    return { tableFiles: this.#tableFiles, log, now: this.#options.clock.now(), retentionMs: this.#retentionMs };
  }

  /** Time that files which left the table stay for its readers (ms). */
  get #retentionMs(): number {
    return this.#options.retentionMs ?? retentionMsOf(this.#log?.metaData);
  }
}
