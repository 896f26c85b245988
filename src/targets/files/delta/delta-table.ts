import { isDeepStrictEqual } from 'node:util';
import type { Day } from '../../../base/days.ts';
import { plainCount } from '../../../base/quantities.ts';
import { listAll, type StoredObject } from '../../../storage/storage.ts';
import { nextChangedAt, removedDays, withPruned } from '../../../table/receipts.ts';
import type { Table } from '../../../table/tables.ts';
import type { FilesOptions, OpenMode } from '../format.ts';
import type { LocalFiles } from '../local-files.ts';
import type { LiveFile } from '../place-version.ts';
import { commitActions, liveFilesOf, type TableChange } from './commit-actions.ts';
import { type LogState, stateActions, stateOf } from './delta-state.ts';
import { entryPath, logFolder, type TableAccess } from './protocol/actions.ts';
import { checkProtocol } from './protocol/features.ts';
import { readSnapshot, Snapshot, type TableNow } from './protocol/snapshot.ts';
import { retentionMsOf } from './schema.ts';
import { CHECKPOINT_EVERY, eraseHistory, expiredPaths, renewCheckpoint } from './vacuum.ts';

/** What a table holds at its latest version. */
interface TableContent {
  /** Days whose file is missing count as pruned. */
  readonly state: LogState;
  readonly files: ReadonlyMap<Day, LiveFile>;
}

/** One table of a place: what its log says, its commits, and what is removed from it. */
export class DeltaTable {
  readonly address: string;
  /** The table as it was read or committed last; undefined before the first commit. */
  content: TableContent | undefined;
  /** The same by its log. */
  #snapshot: Snapshot;
  /** Its live files that somebody removed from the storage. */
  #missingPaths: ReadonlySet<string> = new Set();
  readonly #access: TableAccess;
  readonly #options: FilesOptions;
  readonly #mode: OpenMode;

  constructor({ storage, engine, runFolder }: LocalFiles, table: Table['name'], options: FilesOptions, mode: OpenMode) {
    this.address = `${storage.address}/${table}`;
    this.#snapshot = new Snapshot(table);
    this.#access = { storage, engine, runFolder, table };
    this.#options = options;
    this.#mode = mode;
  }

  /** Reads the latest version, and looks for its files; false if all is as before. */
  async read(): Promise<boolean> {
    const before = this.content;
    await this.followLog();
    if (this.content === undefined) return false;
    const missingPaths = await this.#findMissing();
    if (!isDeepStrictEqual(missingPaths, this.#missingPaths)) this.#setSnapshot(this.#snapshot, missingPaths);
    const days = missingPaths.size;
    if (days > 0 && this.#mode !== 'read') {
      const message = `${this.address}: the files of ${plainCount(days, 'day')} were removed: they count as pruned.`;
      this.#options.logger.warn('days.removed', message, { days });
    }
    return this.content !== before;
  }

  /** Reads what is new in the log. */
  async followLog(): Promise<void> {
    const snapshot = await readSnapshot(this.#access, this.#snapshot);
    if (snapshot === undefined) return;
    checkProtocol(snapshot.protocol, this.address);
    this.#setSnapshot(snapshot, this.#missingPaths);
  }

  /** True if the latest version has this state, and all of its files are there. */
  hasStored(state: LogState): boolean {
    return this.#missingPaths.size === 0 && stateActions(this.#snapshot.domains, state).length === 0;
  }

  /** Makes a change of this table visible by the next entry; false if another writer has created that. */
  async commit(change: TableChange): Promise<boolean> {
    const { storage, table } = this.#access;
    const actions = commitActions(this.#tableNow, change, this.#missingPaths);
    const text = `${actions.map((action) => JSON.stringify(action)).join('\n')}\n`;
    const version = this.#snapshot.version + 1;
    if (!(await storage.create(entryPath(table, version), text))) return false;

    this.#snapshot.apply(version, actions);
    this.#setSnapshot(this.#snapshot, new Set());
    if (version > 0 && version % CHECKPOINT_EVERY === 0) await this.#renewCheckpoint();
    return true;
  }

  /** Removes every byte of files and history that the version does not name. */
  erase(): Promise<void> {
    return eraseHistory(this.#tableNow);
  }

  /** Removes files whose retention has ended, and those that dead runs left. */
  async tidy(): Promise<void> {
    const dataFiles = await this.#listDataFiles();
    // A file that another run has just committed must be in the snapshot.
    await this.followLog();
    if (this.content !== undefined) await this.#access.storage.remove(expiredPaths(dataFiles, this.#tableNow));
  }

  #setSnapshot(snapshot: Snapshot, missingPaths: ReadonlySet<string>): void {
    const state = stateOf(snapshot.domains, this.address);
    const files = liveFilesOf(snapshot, missingPaths, state, this.#access.storage.address);
    const changedAt = nextChangedAt(state.receipts, this.#options.clock.now());
    const receipts = withPruned(state.receipts, removedDays(state.receipts, files), changedAt);
    this.#snapshot = snapshot;
    this.#missingPaths = missingPaths;
    this.content = { state: { ...state, receipts }, files };
  }

  /** The live files that are not in the storage. A list may lack a file that is there: each is asked for by itself. */
  async #findMissing(): Promise<Set<string>> {
    const listedPaths = new Set((await this.#listDataFiles()).map(({ path }) => path));
    const missingPaths = new Set<string>();
    for (const path of this.#snapshot.adds.keys()) {
      if (!listedPaths.has(path) && (await this.#access.storage.read(path)) === undefined) missingPaths.add(path);
    }
    return missingPaths;
  }

  /** What is in the folder of the table after the log, which comes first in the order of paths. */
  #listDataFiles(): Promise<StoredObject[]> {
    const { storage, table } = this.#access;
    return listAll(storage, table, `${logFolder(table)}/~`);
  }

  /** A failure is only logged: the commits are valid without a checkpoint. */
  async #renewCheckpoint(): Promise<void> {
    try {
      await renewCheckpoint(this.#tableNow);
    } catch (error) {
      const { version } = this.#snapshot;
      const message = `${this.address}: no checkpoint of version ${version} could be written; the next run tries the next.`;
      this.#options.logger.warn('delta.checkpoint', message, { version, error: String(error) });
    }
  }

  get #tableNow(): TableNow {
    const snapshot = this.#snapshot;
    const { clock, retentionMs = retentionMsOf(snapshot.metaData) } = this.#options;
    return { access: this.#access, snapshot, now: clock.now(), retentionMs };
  }
}
