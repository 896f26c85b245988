// This folder: the target `delta`: a Delta table `events` on a disk or in a bucket, partitioned by `event_date`, with one
// file a day. `protocol/` is the protocol's log. A commit is the creation of the next entry, which must not exist.

import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import pLimit from 'p-limit';
import type { Day } from '../../../base/days.ts';
import { DAY_MS, HOUR_MS } from '../../../base/durations.ts';
import { configError, UserError } from '../../../base/errors.ts';
import { jsonOf } from '../../../base/json.ts';
import { plainCount } from '../../../base/quantities.ts';
import type { DescribedColumn } from '../../../engine/conversions.ts';
import type { HashedColumns } from '../../../extract/export-request.ts';
import { checkConditionalWrites, openStorage } from '../../../storage/open.ts';
import type { Storage, Stored } from '../../../storage/storage.ts';
import { isRetyped, type PlannedColumn } from '../../../table/column-plan.ts';
import { type Difference, difference } from '../../../table/differences.ts';
import { newState, profilesOf, type RunRecord, type TableState } from '../../../table/place-state.ts';
import { nextChange, withPruned } from '../../../table/receipts.ts';
import { EVENTS, type Table, USER_PROFILES } from '../../../table/tables.ts';
import {
  type Change,
  type CommitChange,
  type DayFile,
  type FilesFormat,
  type FilesLog,
  type FilesOptions,
  foreignError,
  type LogParts,
  LostRace,
  type OpenMode,
  type Snapshot,
} from '../format.ts';
import { dayFolder, PARTITION_COLUMN } from '../rows.ts';
import { damagedError } from '../stored.ts';
import { commitActions, DEFAULT_RETENTION_MS, retentionMsOf } from './commit.ts';
import { stateOf } from './delta-state.ts';
import { dayFileOf } from './file.ts';
import { entryPath, isDataFile, LAST_CHECKPOINT, LOG_FOLDER, logFileOf } from './protocol/entry.ts';
import { type LogFolder, LogSnapshot, readSnapshot, writeCheckpoint } from './protocol/snapshot.ts';
import { checkProtocol, columnsOfTable, partitionColumnsOf, readableName, schemaString } from './schema.ts';

/** Number of commits from one checkpoint to the next: a sync reads the entries after it, each by a request. */
const CHECKPOINT_EVERY = 5;
/** Time that entries before a checkpoint stay, for readers of older versions (ms). */
const LOG_RETENTION_MS = 30 * DAY_MS;
/** Minimum age (ms) of a file that is removed because no commit names it: its run may be about to commit it. */
const UNCOMMITTED_MS = HOUR_MS;
const LAST_RUN = '_dfinery/last-run.json';
const STORE_CONCURRENCY = 4;
const TEMPORARY = /(^|\/)\.[^/]+\.tmp$/;

export const DELTA: FilesFormat = {
  columnName: readableName,
  storageOf: (options) => openStorage(options.place, options),
  async refuseForeign(storage) {
    for await (const _ of storage.list(`${EVENTS.name}/${LOG_FOLDER}`)) return;
    for await (const { path } of storage.list(EVENTS.name)) {
      // Another process has made the first commit since.
      if (path.startsWith(`${EVENTS.name}/${LOG_FOLDER}/`)) return;
      if (!isOurs(path, EVENTS.name)) throw foreignError(storage.address);
    }
  },
  logOf: (parts, options, mode) => new DeltaPlace(parts, options, mode),
};

const PLAIN: HashedColumns = { columns: [], key_check: null };

/** The logs of both tables of a place as one: the events', and beside it that of the profiles. */
class DeltaPlace implements FilesLog {
  readonly isUniform = false;
  readonly notesKeys = false;
  readonly damaged: readonly Day[] = [];
  readonly unfinished: ReadonlySet<Day> = new Set();
  readonly #events: DeltaLog;
  readonly #profiles: DeltaLog;
  readonly #storage: Storage;
  /** False for a load of days alone, which costs no request for the other table. */
  readonly #hasProfiles: boolean;
  /** Why the folder of profiles is that of somebody else. */
  #foreign: UserError | undefined;

  constructor(parts: LogParts, options: FilesOptions, mode: OpenMode) {
    this.#events = new DeltaLog(parts, EVENTS.name, options, mode);
    this.#profiles = new DeltaLog(parts, USER_PROFILES.name, options, mode);
    this.#storage = parts.storage;
    this.#hasProfiles = mode !== 'load' || options.userProfiles === true;
  }

  get snapshot(): Snapshot | undefined {
    const [events, profiles] = [this.#events.snapshot, this.#profiles.snapshot];
    if (profiles === undefined) return events;
    const { columns, receipts, exportState, timezone } = profiles.state;
    const [receipt] = receipts.values();
    const { state, files } = events ?? { state: newState(timezone), files: new Map() };
    // Somebody may have removed the file.
    if (receipt === undefined || receipt.pruned === true) return events;
    const stored = { columns, receipt, hashing: exportState?.hashed?.[0] ?? PLAIN };
    return { state: { ...state, profiles: stored }, files, profiles: profiles.files.get(receipt.day) };
  }

  get isAhead(): boolean {
    return this.#events.isAhead;
  }

  pathOf(day: Day, table: Table['name']): string {
    return `${table === EVENTS.name ? dayFolder(day) : table}/part-${randomUUID()}.parquet`;
  }

  outdated(columns: readonly PlannedColumn[]): readonly DayFile[] {
    return this.#events.outdated(columns);
  }

  columnsOf(state: Pick<TableState, 'columns' | 'timezone'>): DescribedColumn[] {
    return columnsOfTable(state);
  }

  async read(): Promise<void> {
    await this.#events.read();
    if (!this.#hasProfiles) return;
    try {
      await this.#profiles.read();
    } catch (error) {
      if (!(error instanceof UserError) || error.kind !== 'config') throw error;
      this.#foreign = error;
    }
  }

  async refuseForeignProfiles(): Promise<void> {
    if (this.#foreign !== undefined) throw this.#foreign;
    if (this.#profiles.snapshot !== undefined) return;
    for await (const { path } of this.#storage.list(USER_PROFILES.name)) {
      if (!isOurs(path, USER_PROFILES.name)) throw foreignError(this.#storage.address, USER_PROFILES.name);
    }
  }

  exclusively<T>(work: (commit: CommitChange) => Promise<T>): Promise<T> {
    return this.#events.exclusively((commitEvents) => {
      if (!this.#hasProfiles || this.#foreign !== undefined) return work(commitEvents);
      return this.#profiles.exclusively((commitProfiles) =>
        work((change) => this.#commit(change, commitEvents, commitProfiles)),
      );
    });
  }

  /** Commits the events first. A purge commits to both, so that no run that began before can bring people back. */
  async #commit(change: Change, commitEvents: CommitChange, commitProfiles: CommitChange): Promise<void> {
    const { kind, state, profiles } = change;
    if (kind !== 'load' || profiles === undefined) await commitEvents(change);
    const table = profilesOf(state);
    if (table === undefined || (kind !== 'purge' && profiles === undefined)) return;
    const removed = profiles === undefined ? [] : [...(this.#profiles.snapshot?.files.values() ?? [])];
    const added = profiles?.added === undefined ? [] : [profiles.added];
    await commitProfiles({ kind, state: table, removed, added });
  }

  tryErase(removed: Change['removed']): Promise<void> {
    return this.#events.tryErase(removed);
  }

  async erase(): Promise<void> {
    await this.#events.erase();
    await this.#profiles.erase();
  }

  recordRun(run: RunRecord): Promise<void> {
    return this.#events.recordRun(run);
  }

  async tidy(): Promise<void> {
    await this.#events.tidy();
    if (this.#hasProfiles) await this.#profiles.tidy();
  }

  async foreign(): Promise<string[]> {
    return [...(await this.#events.foreign()), ...(await this.#profiles.foreign())];
  }

  async check(): Promise<Difference[]> {
    return [...(await this.#events.check()), ...(await this.#profiles.check())];
  }

  async isUnchanged(): Promise<boolean> {
    if (!(await this.#events.isUnchanged())) return false;
    return !this.#hasProfiles || this.#foreign !== undefined || this.#profiles.isUnchanged();
  }
}

/** The log of one table of a place. */
class DeltaLog {
  snapshot: Snapshot | undefined;
  readonly #parts: LogFolder;
  readonly #table: Table['name'];
  readonly #options: FilesOptions;
  readonly #mode: OpenMode;
  #log: LogSnapshot | undefined;
  /** The data files in the storage when the place was opened. */
  #stored: readonly Stored[] = [];
  /** Paths of live files, from the folder of the table, that somebody removed from the storage. */
  #missing: ReadonlySet<string> = new Set();

  constructor(parts: LogParts, table: Table['name'], options: FilesOptions, mode: OpenMode) {
    this.#parts = { ...parts, table };
    this.#table = table;
    this.#options = options;
    this.#mode = mode;
  }

  get #address(): string {
    return `${this.#parts.storage.address}/${this.#table}`;
  }

  get isAhead(): boolean {
    return [...this.#missing].some((path) => this.#log?.files.has(path) === true);
  }

  /** Files that have a column whose type changes. A column that is new to the table is in none. */
  outdated(columns: readonly PlannedColumn[]): readonly DayFile[] {
    const retyped = columns.filter(isRetyped);
    return [...(this.snapshot?.files.values() ?? [])].filter((file) =>
      retyped.some(({ name }) => file.columns.has(name)),
    );
  }

  async read(): Promise<void> {
    const { storage } = this.#parts;
    await this.#update();
    if (this.snapshot === undefined) {
      if (this.#mode !== 'load') return;
      if (this.#table !== EVENTS.name) return;
      if (storage.workFolder === undefined) await DELTA.refuseForeign(storage);
      await checkConditionalWrites(storage);
      return;
    }
    this.#stored = await this.#list();
    this.#findMissing();
    if (this.#mode === 'read' && this.#table === EVENTS.name) {
      const lastRun = jsonOf((await storage.read(LAST_RUN))?.toString('utf8') ?? '') as RunRecord | undefined;
      if (lastRun !== undefined) this.snapshot = { ...this.snapshot, state: { ...this.snapshot.state, lastRun } };
    }
  }

  async exclusively<T>(work: (commit: CommitChange) => Promise<T>): Promise<T> {
    await this.#update();
    return work((change) => this.#commit(change));
  }

  async #commit(change: Change): Promise<void> {
    const { storage } = this.#parts;
    const now = this.#options.clock.now();
    const { added, state } = change;
    const limit = pLimit(STORE_CONCURRENCY);
    const stored = await Promise.allSettled(added.map((file) => limit(() => storage.putFile(file.local, file.path))));
    const failed = stored.find((one) => one.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
    const log = this.#log ?? new LogSnapshot();
    const version = log.version + 1;
    const facts = { now, retentionMs: this.#retentionMs, missing: this.#missing, table: this.#table };
    const all = commitActions(log, change, facts);
    const text = `${all.map((action) => JSON.stringify(action)).join('\n')}\n`;
    const path = `${this.#table}/${entryPath(version)}`;
    // An entry with exactly this text is our own, and the answer to our request was lost: its id is nobody else's.
    if (!(await storage.create(path, text)) && (await storage.read(path))?.toString('utf8') !== text) {
      await storage.remove(added.map((file) => file.path));
      throw new LostRace(this.#address);
    }
    log.apply(version, all);
    this.#log = log;
    const files = new Map(this.snapshot?.files);
    for (const { day } of change.removed) files.delete(day);
    for (const { local: _local, facts: _facts, writtenAt: _written, ...file } of added) files.set(file.day, file);
    this.snapshot = { state, files };
    if (version > 0 && version % CHECKPOINT_EVERY === 0) await this.#checkpoint(now);
  }

  tryErase(removed: Change['removed']): Promise<void> {
    return this.#parts.storage.tryErase(removed.map(({ path }) => path));
  }

  /** Erases files and history. An uncommitted file older than the purge belongs to no writer that can still commit. */
  async erase(): Promise<void> {
    const { storage } = this.#parts;
    const log = this.#log;
    if (log === undefined) return;
    const now = this.#options.clock.now();
    const purgedAt = await this.#committedAt(log.version);
    const live = this.#livePaths();
    const isKept = ({ path, modified }: Pick<Stored, 'path' | 'modified'>) => {
      const own = path.slice(this.#table.length + 1);
      if (live.has(path) || own.startsWith(`${LOG_FOLDER}/`) || !isOurs(path, this.#table)) return true;
      return modified >= purgedAt && !log.tombstones.has(own);
    };
    await storage.eraseAllBut(this.#table, isKept, purgedAt);
    if (log.version === 0) return;
    await writeCheckpoint(this.#parts, log.version, log.actions(now - this.#retentionMs));
    const stays = ({ path }: Pick<Stored, 'path'>) =>
      path === `${this.#table}/${LAST_CHECKPOINT}` || (versionOf(path, this.#table) ?? -1) >= log.version;
    await storage.eraseAllBut(`${this.#table}/${LOG_FOLDER}`, stays, now);
  }

  async recordRun(run: RunRecord): Promise<void> {
    if (this.snapshot !== undefined) await this.#parts.storage.write(LAST_RUN, JSON.stringify(run));
  }

  /** Removes files whose retention has ended, and those that dead runs left. */
  async tidy(): Promise<void> {
    const { storage } = this.#parts;
    const log = this.#log;
    if (log === undefined) return;
    const now = this.#options.clock.now();
    const live = this.#livePaths();
    const leftAt = (path: string) => log.tombstones.get(path.slice(this.#table.length + 1))?.deletionTimestamp;
    const old = this.#stored.filter(({ path, modified }) => {
      if (live.has(path)) return false;
      const left = leftAt(path);
      if (left != null) return left < now - this.#retentionMs;
      return isOurs(path, this.#table) && modified < now - Math.max(this.#retentionMs, UNCOMMITTED_MS);
    });
    if (old.length > 0) await storage.remove(old.map(({ path }) => path));
  }

  async foreign(): Promise<string[]> {
    return this.#stored.map(({ path }) => path).filter((path) => !isOurs(path, this.#table));
  }

  async check(): Promise<Difference[]> {
    const log = this.#log;
    if (this.snapshot === undefined || log?.metaData?.schemaString === schemaString(this.snapshot.state, this.#table))
      return [];
    return [difference('columns', `${this.#address}: the schema in the log is not that of the state`)];
  }

  async isUnchanged(): Promise<boolean> {
    const before = this.#log?.version;
    const latest = await readSnapshot(this.#parts);
    return latest.version === before || (latest.version < 0 && before === undefined);
  }

  async #update(): Promise<void> {
    const known = this.#log?.version;
    const log = await readSnapshot(this.#parts, this.#log);
    if (log.version === known) return;
    this.#log = log.version < 0 ? undefined : log;
    if (this.#log !== undefined) this.#check(this.#log);
    this.snapshot = this.#log && this.#snapshotOf(this.#log);
  }

  #snapshotOf(log: LogSnapshot): Snapshot {
    const state = stateOf(log.domains, this.#address);
    const files = new Map<Day, DayFile>();
    const [snapshotDay] = state.receipts.keys();
    for (const add of log.files.values()) {
      if (this.#missing.has(add.path)) continue;
      const file = dayFileOf(add, this.#address, { table: this.#table, snapshotDay });
      if (files.has(file.day)) throw damagedError(`${this.#address}/${add.path}`, `${file.day} has two files`);
      files.set(file.day, file);
    }
    const gone = [...state.receipts.values()].filter(({ day, rows_stored: rows }) => rows > 0 && !files.has(day));
    const receipts = withPruned(
      state.receipts,
      gone.map(({ day }) => day),
      nextChange(state.receipts, this.#options.clock.now()),
    );
    return { state: { ...state, receipts }, files };
  }

  /** Finds the files that somebody removed from the storage: their days count as pruned, and leave the log. */
  #findMissing(): void {
    const there = new Set(this.#stored.map(({ path }) => path));
    const missing = [...this.#livePaths()].filter((path) => !there.has(path));
    this.#missing = new Set(missing.map((path) => path.slice(this.#table.length + 1)));
    if (missing.length === 0 || this.#log === undefined) return;
    this.snapshot = this.#snapshotOf(this.#log);
    if (this.#mode === 'read') return;
    const message = `${this.#address}: the files of ${plainCount(missing.length, 'day')} were removed: they count as pruned.`;
    this.#options.logger.warn('days.removed', message, { days: missing.length });
  }

  /** The data files in the storage. The folder of the log comes before them in the order of paths. */
  async #list(): Promise<Stored[]> {
    const found: Stored[] = [];
    for await (const stored of this.#parts.storage.list(
      this.#table,
      `${this.#table}/${this.#table === EVENTS.name ? PARTITION_COLUMN : 'part-'}`,
    ))
      found.push(stored);
    return found;
  }

  #livePaths(): ReadonlySet<string> {
    return new Set([...(this.#log?.files.keys() ?? [])].map((path) => `${this.#table}/${path}`));
  }

  get #retentionMs(): number {
    return this.#options.retentionMs ?? retentionMsOf(this.#log?.metaData);
  }

  /** Writes a checkpoint, and removes old entries. A failure is only logged: the commits are valid without it. */
  async #checkpoint(now: number): Promise<void> {
    const log = this.#log;
    if (log === undefined) return;
    const { storage } = this.#parts;
    try {
      await writeCheckpoint(
        this.#parts,
        log.version,
        log.actions(now - Math.max(this.#retentionMs, DEFAULT_RETENTION_MS)),
      );
      const old: string[] = [];
      for await (const { path, modified } of storage.list(`${this.#table}/${LOG_FOLDER}`)) {
        const file = logFileOf(path.slice(this.#table.length + 1));
        if (file === undefined || file.version >= log.version) continue;
        // Each checkpoint has all days: of them the latest two stay.
        const isOld = file.isEntry ? modified < now - LOG_RETENTION_MS : file.version < log.version - CHECKPOINT_EVERY;
        if (isOld) old.push(path);
      }
      if (old.length > 0) await storage.remove(old);
    } catch (error) {
      const { version } = log;
      const message = `${this.#address}: no checkpoint of version ${version} could be written; the next run tries the next.`;
      this.#options.logger.warn('delta.checkpoint', message, { version, error: String(error) });
    }
  }

  /** Time at which a version was stored, by the clock of the store (ms since 1970). */
  async #committedAt(version: number): Promise<number> {
    const path = `${this.#table}/${entryPath(version)}`;
    for await (const stored of this.#parts.storage.list(`${this.#table}/${LOG_FOLDER}`)) {
      if (stored.path === path) return stored.modified;
    }
    return 0;
  }

  #check({ protocol, metaData }: LogSnapshot): void {
    if (protocol === undefined || metaData === undefined) {
      throw configError(`${this.#address} has a log without protocol or metadata: restore it from a copy.`);
    }
    checkProtocol(protocol, this.#address);
    if (isDeepStrictEqual(metaData.partitionColumns, partitionColumnsOf(this.#table))) return;
    throw configError(`${this.#address} is no longer partitioned as this program does it: somebody else changed it.`);
  }
}

/** True for the name of a data file of this program, also one that is not whole yet. */
const isOurs = (path: string, table: Table['name']): boolean =>
  isDataFile(path.slice(table.length + 1)) || TEMPORARY.test(path);

const versionOf = (path: string, table: Table['name']): number | undefined =>
  logFileOf(path.slice(table.length + 1))?.version;
