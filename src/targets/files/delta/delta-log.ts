import { isDeepStrictEqual } from 'node:util';
import pLimit from 'p-limit';
import type { Day } from '../../../base/days.ts';
import { DAY_MS, HOUR_MS } from '../../../base/durations.ts';
import { configError, transientError } from '../../../base/errors.ts';
import { plainCount } from '../../../base/quantities.ts';
import { isTemporary } from '../../../fs/atomic-file.ts';
import type { Stored } from '../../../storage/storage.ts';
import { type Difference, difference } from '../../../table/differences.ts';
import { nextChange, removedDays, withPruned } from '../../../table/receipts.ts';
import { EVENTS, type Table } from '../../../table/tables.ts';
import { type DayFile, type FilesOptions, type LogParts, LostRace, type OpenMode, type Version } from '../format.ts';
import { PARTITION_COLUMN } from '../parquet-file.ts';
import { damagedError } from '../stored-state.ts';
import { commitActions, DEFAULT_RETENTION_MS, dayFileOf, retentionMsOf, type TableChange } from './commit-actions.ts';
import { stateOf } from './delta-state.ts';
import { writeCheckpoint } from './protocol/checkpoint.ts';
import { entryPath, isDataFile, LAST_CHECKPOINT, LOG_FOLDER, type LogFolder, logFileOf } from './protocol/entry.ts';
import { LogVersion, readLatest } from './protocol/log-version.ts';
import { checkProtocol, partitionColumnsOf, schemaString } from './schema.ts';

/** Number of commits from one checkpoint to the next: a sync reads the entries after it, each by a request. */
const CHECKPOINT_EVERY = 5;
/** Time that entries before a checkpoint stay (ms). A version that is older cannot be read any more. */
const LOG_RETENTION_MS = 30 * DAY_MS;
/** Minimum age (ms) of a file that is removed because no commit names it: its run may be about to commit it. */
const UNCOMMITTED_MS = HOUR_MS;
const STORE_CONCURRENCY = 4;

/** A table has no half-written files: a commit is one step. */
export const NO_FAULTS: Pick<Version, 'damaged' | 'unfinished'> = {
  damaged: new Map(),
  unfinished: new Set(),
};

/** True for the name of a data file of this program, also one that is not whole yet. */
export const isOurs = (path: string, table: Table['name']): boolean =>
  isDataFile(path.slice(table.length + 1)) || isTemporary(path);

/** As `CommitChange`, of one table. `precede` runs once the files are stored, right before the commit. */
export type CommitTable = (change: TableChange, precede?: () => Promise<void>) => Promise<void>;

/**
 * The log of one table of a place. Paths of its files are from the root of the storage, but where they say otherwise.
 */
export class DeltaLog {
  /** The table as it was read or committed last; undefined before the first commit. */
  version: Version | undefined;
  readonly #parts: LogFolder;
  readonly #table: Table['name'];
  readonly #options: FilesOptions;
  readonly #mode: OpenMode;
  /** The log of `version`. */
  #log: LogVersion | undefined;
  /** The data files that were in the storage when the table was read. */
  #stored: readonly Stored[] = [];
  /** Live files that somebody removed from the storage; from the folder of the table. */
  #missing: ReadonlySet<string> = new Set();

  constructor(parts: LogParts, table: Table['name'], options: FilesOptions, mode: OpenMode) {
    this.#parts = { ...parts, table };
    this.#table = table;
    this.#options = options;
    this.#mode = mode;
  }

  /** Reads the latest version, and lists the data files; false if the version was known. */
  async read(): Promise<boolean> {
    const isNew = await this.#readLog();
    if (this.#log === undefined) return isNew;
    this.#stored = await this.#listDataFiles();
    this.#missing = await this.#missingOf(this.#log);
    if (this.#missing.size > 0) {
      this.version = this.#versionOf(this.#log);
      this.#warnOfRemoved(this.#missing.size);
    }
    return isNew;
  }

  async exclusively<T>(work: (commit: CommitTable) => Promise<T>): Promise<T> {
    await this.#readLog();
    return work((change, precede) => this.#commit(change, precede));
  }

  async #commit(change: TableChange, precede: () => Promise<void> = async () => {}): Promise<void> {
    const { storage } = this.#parts;
    const { added, removed, state } = change;
    const now = this.#options.clock.now();
    const limit = pLimit(STORE_CONCURRENCY);
    const stored = await Promise.allSettled(added.map(({ local, path }) => limit(() => storage.putFile(local, path))));
    const failed = stored.find((outcome) => outcome.status === 'rejected');
    if (failed !== undefined) throw failed.reason;

    try {
      await precede();
    } catch (error) {
      await storage.remove(added.map((file) => file.path));
      throw error;
    }
    const log = this.#log ?? new LogVersion();
    const details = { now, retentionMs: this.#retentionMs, missing: this.#missing, table: this.#table };
    const actions = commitActions(log, change, details);
    const text = `${actions.map((action) => JSON.stringify(action)).join('\n')}\n`;
    const path = this.#path(entryPath(log.number + 1));
    // An entry with exactly this text is our own, and the answer to our request was lost: its id is nobody else's.
    if (!(await storage.create(path, text)) && (await storage.read(path))?.toString('utf8') !== text) {
      await storage.remove(added.map((file) => file.path));
      throw new LostRace(this.#address);
    }

    log.apply(log.number + 1, actions);
    this.#log = log;
    const files = new Map(this.version?.files);
    for (const { day } of removed) files.delete(day);
    for (const { local: _local, statistics: _statistics, ...file } of added) files.set(file.day, file);
    this.version = { ...NO_FAULTS, state, files };
    if (log.number > 0 && log.number % CHECKPOINT_EVERY === 0) await this.#checkpoint(log, now);
  }

  /** Erases files and history. An uncommitted file older than the purge belongs to no writer that can still commit. */
  async erase(): Promise<void> {
    const { storage } = this.#parts;
    const log = this.#log;
    if (log === undefined) {
      // A first load was killed before its commit, or the log was removed: no reader knows these files.
      return storage.eraseAllBut(this.#table, ({ path }) => !isOurs(path, this.#table), this.#options.clock.now());
    }
    const purgedAt = await this.#committedAt(log.number);
    const isKept = ({ path, modified }: Pick<Stored, 'path' | 'modified'>) => {
      const inTable = this.#inTable(path);
      if (log.files.has(inTable) || inTable.startsWith(`${LOG_FOLDER}/`) || !isOurs(path, this.#table)) return true;
      return modified >= purgedAt && !log.tombstones.has(inTable);
    };
    await storage.eraseAllBut(this.#table, isKept, purgedAt);
    if (log.number === 0) return;
    const now = this.#options.clock.now();
    await writeCheckpoint(this.#parts, log.number, log.actions(now - this.#retentionMs));
    const isOfPurge = ({ path }: Pick<Stored, 'path'>) => {
      const inTable = this.#inTable(path);
      return inTable === LAST_CHECKPOINT || (logFileOf(inTable)?.version ?? -1) >= log.number;
    };
    await storage.eraseAllBut(this.#path(LOG_FOLDER), isOfPurge, now);
  }

  /** Removes files whose retention has ended, and those that dead runs left. */
  async tidy(): Promise<void> {
    if (this.#expiredFiles().length === 0) return;
    // Another run may have committed a file meanwhile that was nobody's when the table was read.
    await this.#readLog();
    const expired = this.#expiredFiles();
    if (expired.length > 0) await this.#parts.storage.remove(expired);
  }

  /** The paths of files that no version within the retention names. */
  #expiredFiles(): string[] {
    const log = this.#log;
    if (log === undefined) return [];
    const now = this.#options.clock.now();
    const expired = this.#stored.filter(({ path, modified }) => {
      const inTable = this.#inTable(path);
      if (log.files.has(inTable)) return false;
      const leftAt = log.tombstones.get(inTable)?.deletionTimestamp;
      if (leftAt != null) return leftAt < now - this.#retentionMs;
      return isOurs(path, this.#table) && modified < now - Math.max(this.#retentionMs, UNCOMMITTED_MS);
    });
    return expired.map(({ path }) => path);
  }

  /** The files in the folder of the table, but for its log, that this program did not write. */
  async foreign(): Promise<string[]> {
    return (await this.#listTable()).filter((path) => !isOurs(path, this.#table));
  }

  /** True if the folder of the table has a data file of this program, also if its log cannot be read. */
  async hasOurFiles(): Promise<boolean> {
    return (await this.#listTable()).some((path) => isDataFile(this.#inTable(path)));
  }

  /** The paths of all files in the folder of the table but for its log. */
  async #listTable(): Promise<string[]> {
    const paths: string[] = [];
    for await (const { path } of this.#parts.storage.list(this.#table)) {
      if (!this.#inTable(path).startsWith(`${LOG_FOLDER}/`)) paths.push(path);
    }
    return paths;
  }

  check(): Difference[] {
    if (this.version === undefined) return [];
    if (this.#log?.metaData?.schemaString === schemaString(this.version.state, this.#table)) return [];
    return [difference('columns', `${this.#address}: the schema in the log is not that of the state`)];
  }

  /** Reads what is new in the log; false if nothing is. */
  async #readLog(): Promise<boolean> {
    const before = this.#log?.number;
    const log = await readLatest(this.#parts, this.#log);
    if (log?.number === before) return false;
    if (log !== undefined) this.#refuseOthers(log);
    this.version = log && this.#versionOf(log);
    this.#log = log;
    return true;
  }

  #refuseOthers({ protocol, metaData }: LogVersion): void {
    if (protocol === undefined || metaData === undefined) {
      throw configError(`${this.#address} has a log without protocol or metadata: restore it from a copy.`);
    }
    checkProtocol(protocol, this.#address);
    if (isDeepStrictEqual(metaData.partitionColumns, partitionColumnsOf(this.#table))) return;
    throw configError(`${this.#address} is no longer partitioned as this program does it: somebody else changed it.`);
  }

  /** The table at a version of its log. Days without a live file that is there count as pruned. */
  #versionOf(log: LogVersion): Version {
    const state = stateOf(log.domains, this.#address);
    const files = new Map<Day, DayFile>();
    const [receiptDay] = state.receipts.keys();
    for (const add of log.files.values()) {
      if (this.#missing.has(add.path)) continue;
      const file = dayFileOf(add, this.#address, this.#table, receiptDay);
      if (files.has(file.day)) throw damagedError(`${this.#address}/${add.path}`, `${file.day} has two files`);
      files.set(file.day, file);
    }
    const changedAt = nextChange(state.receipts, this.#options.clock.now());
    const receipts = withPruned(state.receipts, removedDays(state.receipts, files), changedAt);
    return { ...NO_FAULTS, state: { ...state, receipts }, files, namesRemoved: this.#missing.size > 0 };
  }

  /** The live files that are not in the storage. A list may lack a file that is there: each is asked for by itself. */
  async #missingOf({ files }: LogVersion): Promise<Set<string>> {
    const stored = new Set(this.#stored.map(({ path }) => this.#inTable(path)));
    const unlisted = [...files.keys()].filter((path) => !stored.has(path));
    const objects = await pLimit(STORE_CONCURRENCY).map(unlisted, (path) => this.#parts.storage.read(this.#path(path)));
    return new Set(unlisted.filter((_, i) => objects[i] === undefined));
  }

  #warnOfRemoved(files: number): void {
    if (this.#mode === 'read') return;
    const message = `${this.#address}: the files of ${plainCount(files, 'day')} were removed: they count as pruned.`;
    this.#options.logger.warn('days.removed', message, { days: files });
  }

  /** The data files in the storage. The folder of the log comes before them in the order of paths. */
  async #listDataFiles(): Promise<Stored[]> {
    const first = this.#table === EVENTS.name ? PARTITION_COLUMN : 'part-';
    const files: Stored[] = [];
    for await (const file of this.#parts.storage.list(this.#table, this.#path(first))) files.push(file);
    return files;
  }

  /** Writes a checkpoint, and removes old entries. A failure is only logged: the commits are valid without it. */
  async #checkpoint(log: LogVersion, now: number): Promise<void> {
    const { storage } = this.#parts;
    const version = log.number;
    try {
      const retentionMs = Math.max(this.#retentionMs, DEFAULT_RETENTION_MS);
      await writeCheckpoint(this.#parts, version, log.actions(now - retentionMs));
      const old: string[] = [];
      for await (const { path, modified } of storage.list(this.#path(LOG_FOLDER))) {
        const file = logFileOf(this.#inTable(path));
        if (file === undefined || file.version >= version) continue;
        // Each checkpoint has all days: of them the latest two stay.
        const isOld = file.isEntry ? modified < now - LOG_RETENTION_MS : file.version < version - CHECKPOINT_EVERY;
        if (isOld) old.push(path);
      }
      if (old.length > 0) await storage.remove(old);
    } catch (error) {
      const message = `${this.#address}: no checkpoint of version ${version} could be written; the next run tries the next.`;
      this.#options.logger.warn('delta.checkpoint', message, { version, error: String(error) });
    }
  }

  /** Time at which a version was stored, by the clock of the store (ms since 1970). */
  async #committedAt(version: number): Promise<number> {
    for await (const { path, modified } of this.#parts.storage.list(this.#path(LOG_FOLDER))) {
      if (this.#inTable(path) === entryPath(version)) return modified;
    }
    throw transientError(`${this.#address}/${LOG_FOLDER} does not list version ${version}: run again.`);
  }

  /** Time that files which left the table stay for its readers (ms). */
  get #retentionMs(): number {
    return this.#options.retentionMs ?? retentionMsOf(this.#log?.metaData);
  }

  get #address(): string {
    return `${this.#parts.storage.address}/${this.#table}`;
  }

  /** A path from the folder of the table, as one from the root of the storage. */
  #path(inTable: string): string {
    return `${this.#table}/${inTable}`;
  }

  /** A path from the root of the storage, as one from the folder of the table. */
  #inTable(path: string): string {
    return path.slice(this.#table.length + 1);
  }
}
