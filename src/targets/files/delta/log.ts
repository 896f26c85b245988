// This folder: the target `delta`: a Delta table `events` on a disk or in a bucket, partitioned by `event_date`, with one
// file a day. `protocol/` is the protocol's log. A commit is the creation of the next entry, which must not exist.

import { randomUUID } from 'node:crypto';
import pLimit from 'p-limit';
import type { Day } from '../../../base/days.ts';
import { DAY_MS, HOUR_MS } from '../../../base/durations.ts';
import { configError } from '../../../base/errors.ts';
import { jsonOf } from '../../../base/json.ts';
import { plainCount } from '../../../base/quantities.ts';
import type { DescribedColumn } from '../../../engine/conversions.ts';
import { checkConditionalWrites, openStorage } from '../../../storage/open.ts';
import type { Stored } from '../../../storage/storage.ts';
import { isRetyped, type PlannedColumn } from '../../../table/column-plan.ts';
import { type Difference, difference } from '../../../table/differences.ts';
import type { TableState } from '../../../table/place-state.ts';
import { nextChange, withPruned } from '../../../table/receipts.ts';
import type { RunRecord } from '../../../table/runs.ts';
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
import { dayOfFile, entryPath, LAST_CHECKPOINT, LOG_FOLDER, logFileOf } from './protocol/entry.ts';
import { LogSnapshot, readSnapshot, TABLE, writeCheckpoint } from './protocol/snapshot.ts';
import { checkProtocol, columnsOfTable, readableName, schemaString } from './schema.ts';

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
    for await (const _ of storage.list(`${TABLE}/${LOG_FOLDER}`)) return;
    for await (const { path } of storage.list(TABLE)) {
      // Another process has made the first commit since.
      if (path.startsWith(`${TABLE}/${LOG_FOLDER}/`)) return;
      if (!isOurs(path)) throw foreignError(storage.address);
    }
  },
  logOf: (parts, options, mode) => new DeltaLog(parts, options, mode),
};

class DeltaLog implements FilesLog {
  readonly isUniform = false;
  readonly notesKeys = false;
  readonly damaged: readonly Day[] = [];
  readonly unfinished: ReadonlySet<Day> = new Set();
  snapshot: Snapshot | undefined;
  readonly #parts: LogParts;
  readonly #options: FilesOptions;
  readonly #mode: OpenMode;
  #log: LogSnapshot | undefined;
  /** The data files in the storage when the place was opened. */
  #stored: readonly Stored[] = [];
  /** Paths of live files, from the folder of the table, that somebody removed from the storage. */
  #missing: ReadonlySet<string> = new Set();

  constructor(parts: LogParts, options: FilesOptions, mode: OpenMode) {
    this.#parts = parts;
    this.#options = options;
    this.#mode = mode;
  }

  get #address(): string {
    return `${this.#parts.storage.address}/${TABLE}`;
  }

  get isAhead(): boolean {
    return [...this.#missing].some((path) => this.#log?.files.has(path) === true);
  }

  pathOf(day: Day): string {
    return `${dayFolder(day)}/part-${randomUUID()}.parquet`;
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
      if (storage.workFolder === undefined) await DELTA.refuseForeign(storage);
      await checkConditionalWrites(storage);
      return;
    }
    this.#stored = await this.#list();
    this.#findMissing();
    if (this.#mode === 'read') {
      const lastRun = jsonOf((await storage.read(LAST_RUN))?.toString('utf8') ?? '') as RunRecord | undefined;
      if (lastRun !== undefined) this.snapshot = { ...this.snapshot, state: { ...this.snapshot.state, lastRun } };
    }
  }

  async exclusively<T>(work: (commit: CommitChange) => Promise<T>): Promise<T> {
    await this.#update();
    return work((change) => this.#commit(change));
  }

  columnsOf(state: Pick<TableState, 'columns' | 'timezone'>): DescribedColumn[] {
    return columnsOfTable(state);
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
    const facts = { now, retentionMs: this.#retentionMs, missing: this.#missing };
    const all = commitActions(log, change, facts);
    const text = `${all.map((action) => JSON.stringify(action)).join('\n')}\n`;
    const path = `${TABLE}/${entryPath(version)}`;
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
      const own = path.slice(TABLE.length + 1);
      if (live.has(path) || own.startsWith(`${LOG_FOLDER}/`) || !isOurs(path)) return true;
      return modified >= purgedAt && !log.tombstones.has(own);
    };
    await storage.eraseAllBut(TABLE, isKept, purgedAt);
    if (log.version === 0) return;
    await writeCheckpoint(this.#parts, log.version, log.actions(now - this.#retentionMs));
    const stays = ({ path }: Pick<Stored, 'path'>) =>
      path === `${TABLE}/${LAST_CHECKPOINT}` || (versionOf(path) ?? -1) >= log.version;
    await storage.eraseAllBut(`${TABLE}/${LOG_FOLDER}`, stays, now);
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
    const leftAt = (path: string) => log.tombstones.get(path.slice(TABLE.length + 1))?.deletionTimestamp;
    const old = this.#stored.filter(({ path, modified }) => {
      if (live.has(path)) return false;
      const left = leftAt(path);
      if (left != null) return left < now - this.#retentionMs;
      return isOurs(path) && modified < now - Math.max(this.#retentionMs, UNCOMMITTED_MS);
    });
    if (old.length > 0) await storage.remove(old.map(({ path }) => path));
  }

  async foreign(): Promise<string[]> {
    return this.#stored.map(({ path }) => path).filter((path) => !isOurs(path));
  }

  async check(): Promise<Difference[]> {
    const log = this.#log;
    if (this.snapshot === undefined || log?.metaData?.schemaString === schemaString(this.snapshot.state)) return [];
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
    const files = new Map<Day, DayFile>();
    for (const add of log.files.values()) {
      if (this.#missing.has(add.path)) continue;
      const file = dayFileOf(add, this.#address);
      if (files.has(file.day)) throw damagedError(`${this.#address}/${add.path}`, `${file.day} has two files`);
      files.set(file.day, file);
    }
    const state = stateOf(log.domains, this.#address);
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
    this.#missing = new Set(missing.map((path) => path.slice(TABLE.length + 1)));
    if (missing.length === 0 || this.#log === undefined) return;
    this.snapshot = this.#snapshotOf(this.#log);
    if (this.#mode === 'read') return;
    const message = `${this.#address}: the files of ${plainCount(missing.length, 'day')} were removed: they count as pruned.`;
    this.#options.logger.warn('days.removed', message, { days: missing.length });
  }

  /** The data files in the storage. The folder of the log comes before them in the order of paths. */
  async #list(): Promise<Stored[]> {
    const found: Stored[] = [];
    for await (const stored of this.#parts.storage.list(TABLE, `${TABLE}/${PARTITION_COLUMN}`)) found.push(stored);
    return found;
  }

  #livePaths(): ReadonlySet<string> {
    return new Set([...(this.#log?.files.keys() ?? [])].map((path) => `${TABLE}/${path}`));
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
      for await (const { path, modified } of storage.list(`${TABLE}/${LOG_FOLDER}`)) {
        const file = logFileOf(path.slice(TABLE.length + 1));
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
    const path = `${TABLE}/${entryPath(version)}`;
    for await (const stored of this.#parts.storage.list(`${TABLE}/${LOG_FOLDER}`)) {
      if (stored.path === path) return stored.modified;
    }
    return 0;
  }

  #check({ protocol, metaData }: LogSnapshot): void {
    if (protocol === undefined || metaData === undefined) {
      throw configError(`${this.#address} has a log without protocol or metadata: restore it from a copy.`);
    }
    checkProtocol(protocol, this.#address);
    const [column, ...more] = metaData.partitionColumns;
    if (column === PARTITION_COLUMN && more.length === 0) return;
    throw configError(`${this.#address} is no longer partitioned by ${PARTITION_COLUMN}: somebody else changed it.`);
  }
}

/** True for the name of a data file of this program, also one that is not whole yet. */
const isOurs = (path: string): boolean => dayOfFile(path.slice(TABLE.length + 1)) !== undefined || TEMPORARY.test(path);

const versionOf = (path: string): number | undefined => logFileOf(path.slice(TABLE.length + 1))?.version;
