import { isDeepStrictEqual } from 'node:util';
import pLimit from 'p-limit';
import type { Day } from '../../../base/days.ts';
import { configError } from '../../../base/errors.ts';
import { plainCount } from '../../../base/quantities.ts';
import { type Difference, difference } from '../../../engine/rows/check-rows.ts';
import type { StoredObject } from '../../../storage/storage.ts';
import type { PlaceState } from '../../../table/place-state.ts';
import { nextChangedAt, removedDays, withPruned } from '../../../table/receipts.ts';
import { EVENTS, type Table } from '../../../table/tables.ts';
import type { FilesOptions, OpenMode } from '../format.ts';
import type { DayFile, LocalFiles } from '../local-files.ts';
import { columnTypes, PARTITION_COLUMN } from '../parquet-file.ts';
import { damagedError } from '../stored-state.ts';
import { commitActions, dayFileOf, retentionMsOf, type TableChange } from './commit-actions.ts';
import { stateActions, stateOf } from './delta-state.ts';
import { entryPath, type TableFiles } from './protocol/entry.ts';
import { readLatest, Snapshot } from './protocol/snapshot.ts';
import { checkProtocol, deltaColumns, partitionColumnsOf, schemaString } from './schema.ts';
import {
  CHECKPOINT_EVERY,
  eraseHistory,
  eraseWithoutLog,
  expiredFiles,
  renewCheckpoint,
  type Upkeep,
} from './vacuum.ts';

/** Number of files that are asked for at the same time. */
const READ_CONCURRENCY = 4;

/** A table at one version of its log. */
interface TableVersion {
  readonly state: PlaceState;
  readonly files: ReadonlyMap<Day, DayFile>;
}

/** One table of a place: the latest snapshot of its log, its commits, and what is removed from it. */
export class DeltaTable {
  /** The table as it was read or committed last; undefined before the first commit. */
  version: TableVersion | undefined;
  readonly address: string;
  readonly #table: Table['name'];
  readonly #tableFiles: TableFiles;
  readonly #options: FilesOptions;
  readonly #mode: OpenMode;
  /** The snapshot of `version`. */
  #snapshot: Snapshot | undefined;
  /** Live files that somebody removed from the storage. */
  #missing: ReadonlySet<string> = new Set();

  constructor({ storage, engine, runFolder }: LocalFiles, table: Table['name'], options: FilesOptions, mode: OpenMode) {
    this.address = `${storage.address}/${table}`;
    this.#table = table;
    this.#tableFiles = { storage, engine, runFolder, table };
    this.#options = options;
    this.#mode = mode;
  }

  /** Reads the latest version, and looks for its files; false if the version was known. */
  async read(): Promise<boolean> {
    const isNew = await this.readEntries();
    if (this.#snapshot === undefined) return isNew;
    const missingBefore = this.#missing.size;
    this.#missing = await this.#missingOf(this.#snapshot);
    if (this.#missing.size + missingBefore > 0) this.version = this.#versionOf(this.#snapshot);
    const days = this.#missing.size;
    if (days > 0 && this.#mode !== 'read') {
      const message = `${this.address}: the files of ${plainCount(days, 'day')} were removed: they count as pruned.`;
      this.#options.logger.warn('days.removed', message, { days });
    }
    return isNew;
  }

  /** Reads what is new in the log; false if nothing is. */
  async readEntries(): Promise<boolean> {
    const before = this.#snapshot?.version;
    const snapshot = await readLatest(this.#tableFiles, this.#snapshot);
    if (snapshot?.version === before) return false;
    if (snapshot !== undefined) this.#refuseOthers(snapshot);
    this.version = snapshot && this.#versionOf(snapshot);
    this.#snapshot = snapshot;
    return true;
  }

  /** True if the latest version has this state, and all of its files are there. */
  hasStored(state: PlaceState): boolean {
    const snapshot = this.#snapshot;
    return this.#missing.size === 0 && snapshot !== undefined && stateActions(snapshot.domains, state).length === 0;
  }

  /** Makes a change of the version visible by the next entry; false if another writer has created that. */
  async commit(change: TableChange): Promise<boolean> {
    const snapshot = this.#snapshot ?? new Snapshot(this.#table);
    const replaced = [...change.files.keys()].flatMap((day) => this.version?.files.get(day)?.path ?? []);
    const leaving = new Set([...this.#missing, ...replaced]);
    const actions = commitActions(snapshot, change, leaving, this.#options.clock.now(), this.#retentionMs);
    const text = `${actions.map((action) => JSON.stringify(action)).join('\n')}\n`;
    const version = snapshot.version + 1;
    if (!(await this.#tableFiles.storage.create(entryPath(this.#table, version), text))) return false;

    snapshot.apply(version, actions);
    this.#snapshot = snapshot;
    this.#missing = new Set();
    this.version = this.#versionOf(snapshot);
    if (version > 0 && version % CHECKPOINT_EVERY === 0) await this.#renewCheckpoint(snapshot);
    return true;
  }

  /** Removes every byte of files and history that the version does not name. */
  async erase(): Promise<void> {
    if (this.#snapshot === undefined) await eraseWithoutLog(this.#tableFiles, this.#options.clock.now());
    else await eraseHistory(this.#upkeepOf(this.#snapshot));
  }

  /** Removes files whose retention has ended, and those that dead runs left. */
  async tidy(): Promise<void> {
    const dataFiles = await this.#listDataFiles();
    // A file that another run has just committed must be in the snapshot.
    await this.readEntries();
    if (this.#snapshot === undefined) return;
    await this.#tableFiles.storage.remove(expiredFiles(dataFiles, this.#upkeepOf(this.#snapshot)));
  }

  check(): Difference[] {
    if (this.version === undefined) return [];
    if (this.#snapshot?.metaData?.schemaString === schemaString(this.version.state, this.#table)) return [];
    return [difference('columns', `${this.address}: the schema in the log is not that of the state`)];
  }

  #refuseOthers({ protocol, metaData }: Snapshot): void {
    if (protocol === undefined || metaData === undefined) {
      throw configError(`${this.address} has a log without protocol or metadata: restore it from a copy.`);
    }
    checkProtocol(protocol, this.address);
    if (isDeepStrictEqual(metaData.partitionColumns, partitionColumnsOf(this.#table))) return;
    throw configError(`${this.address} is no longer partitioned as this program does it: somebody else changed it.`);
  }

  /** The table at a version of its log. Days without a live file that is there count as pruned. */
  #versionOf(snapshot: Snapshot): TableVersion {
    const state = stateOf(snapshot.domains, this.address);
    const files = new Map<Day, DayFile>();
    const [receiptDay] = state.receipts.keys();
    const table = { name: this.#table, columns: columnTypes(deltaColumns(state)), receiptDay };
    for (const [path, add] of snapshot.files) {
      if (this.#missing.has(path)) continue;
      const where = `${this.#tableFiles.storage.address}/${path}`;
      const file = dayFileOf(path, add, table, where);
      if (files.has(file.day)) throw damagedError(where, `${file.day} has two files`);
      if (!state.receipts.has(file.day)) throw damagedError(where, `${file.day} has no receipt`);
      files.set(file.day, file);
    }
    const changedAt = nextChangedAt(state.receipts, this.#options.clock.now());
    const receipts = withPruned(state.receipts, removedDays(state.receipts, files), changedAt);
    return { state: { ...state, receipts }, files };
  }

  /** The live files that are not in the storage. A list may lack a file that is there: each is asked for by itself. */
  async #missingOf({ files }: Snapshot): Promise<Set<string>> {
    const stored = new Set((await this.#listDataFiles()).map(({ path }) => path));
    const unlisted = [...files.keys()].filter((path) => !stored.has(path));
    const { storage } = this.#tableFiles;
    const objects = await pLimit(READ_CONCURRENCY).map(unlisted, (path) => storage.read(path));
    return new Set(unlisted.filter((_, i) => objects[i] === undefined));
  }

  /** The data files in the storage. The folder of the log comes before them in the order of paths. */
  async #listDataFiles(): Promise<StoredObject[]> {
    const first = `${this.#table}/${this.#table === EVENTS.name ? PARTITION_COLUMN : 'part-'}`;
    const files: StoredObject[] = [];
    for await (const file of this.#tableFiles.storage.list(this.#table, first)) files.push(file);
    return files;
  }

  /** A failure is only logged: the commits are valid without a checkpoint. */
  async #renewCheckpoint(snapshot: Snapshot): Promise<void> {
    try {
      await renewCheckpoint(this.#upkeepOf(snapshot));
    } catch (error) {
      const { version } = snapshot;
      const message = `${this.address}: no checkpoint of version ${version} could be written; the next run tries the next.`;
      this.#options.logger.warn('delta.checkpoint', message, { version, error: String(error) });
    }
  }

  #upkeepOf(snapshot: Snapshot): Upkeep {
    return { tableFiles: this.#tableFiles, snapshot, now: this.#options.clock.now(), retentionMs: this.#retentionMs };
  }

  /** Time that files which left the table stay for its readers (ms). */
  get #retentionMs(): number {
    return this.#options.retentionMs ?? retentionMsOf(this.#snapshot?.metaData);
  }
}
