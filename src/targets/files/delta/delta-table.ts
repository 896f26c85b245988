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
import type { LocalFiles } from '../local-files.ts';
import type { Change, LiveFile } from '../place-version.ts';
import { commitActions, dayFilesOf } from './commit-actions.ts';
import { stateActions, stateOf } from './delta-state.ts';
import { entryPath, logFolder, type TableLocation } from './protocol/entry.ts';
import { type LatestTable, readLatest, Snapshot } from './protocol/snapshot.ts';
import { checkProtocol, partitionColumnsOf, retentionMsOf, schemaString } from './schema.ts';
import { CHECKPOINT_EVERY, eraseHistory, eraseWithoutLog, expiredFiles, renewCheckpoint } from './vacuum.ts';

/** Number of files that are asked for at the same time. */
const READ_CONCURRENCY = 4;

/** A table at one version of its log. */
interface TableView {
  readonly snapshot: Snapshot;
  /** Live files that somebody removed from the storage. */
  readonly missing: ReadonlySet<string>;
  /** Days whose file is missing count as pruned. */
  readonly state: PlaceState;
  readonly files: ReadonlyMap<Day, LiveFile>;
}

/** One table of a place: what its log says, its commits, and what is removed from it. */
export class DeltaTable {
  /** The table as it was read or committed last; undefined before the first commit. */
  view: TableView | undefined;
  readonly address: string;
  readonly #location: TableLocation;
  readonly #options: FilesOptions;
  readonly #mode: OpenMode;

  constructor({ storage, engine, runFolder }: LocalFiles, table: Table['name'], options: FilesOptions, mode: OpenMode) {
    this.address = `${storage.address}/${table}`;
    this.#location = { storage, engine, runFolder, table };
    this.#options = options;
    this.#mode = mode;
  }

  /** Reads the latest version, and looks for its files; false if all is as before. */
  async readAndCheckFiles(): Promise<boolean> {
    const before = this.view;
    await this.followLog();
    if (this.view === undefined) return before !== undefined;
    const { snapshot } = this.view;
    const missing = await this.#missingOf(snapshot);
    if (!isDeepStrictEqual(missing, this.view.missing)) this.view = this.#viewOf(snapshot, missing);
    const days = missing.size;
    if (days > 0 && this.#mode !== 'read') {
      const message = `${this.address}: the files of ${plainCount(days, 'day')} were removed: they count as pruned.`;
      this.#options.logger.warn('days.removed', message, { days });
    }
    return this.view !== before;
  }

  /** Reads what is new in the log. */
  async followLog(): Promise<void> {
    const snapshot = await readLatest(this.#location, this.view?.snapshot);
    if (snapshot === this.view?.snapshot) return;
    if (snapshot !== undefined) this.#refuseOthers(snapshot);
    this.view = snapshot && this.#viewOf(snapshot, this.view?.missing);
  }

  /** True if the latest version has this state, and all of its files are there. */
  hasStored(state: PlaceState): boolean {
    return this.view?.missing.size === 0 && stateActions(this.view.snapshot.domains, state).length === 0;
  }

  /** Makes a change of this table visible by the next entry; false if another writer has created that. */
  async commit(change: Change): Promise<boolean> {
    const { storage, table } = this.#location;
    const snapshot = this.view?.snapshot ?? new Snapshot(table);
    const isReplaced = (file: LiveFile) => change.files.some(({ day }) => day === file.day || table !== EVENTS.name);
    const replaced = [...(this.view?.files.values() ?? [])].filter(isReplaced).map(({ path }) => path);
    const latest = this.#latestOf(snapshot);
    const actions = commitActions(latest, change, new Set([...(this.view?.missing ?? []), ...replaced]));
    const text = `${actions.map((action) => JSON.stringify(action)).join('\n')}\n`;
    const version = snapshot.version + 1;
    if (!(await storage.create(entryPath(table, version), text))) return false;

    snapshot.apply(version, actions);
    this.view = this.#viewOf(snapshot);
    if (version > 0 && version % CHECKPOINT_EVERY === 0) await this.#renewCheckpoint(latest);
    return true;
  }

  /** Removes every byte of files and history that the version does not name. */
  async erase(): Promise<void> {
    if (this.view === undefined) await eraseWithoutLog(this.#location);
    else await eraseHistory(this.#latestOf(this.view.snapshot));
  }

  /** Removes files whose retention has ended, and those that dead runs left. */
  async tidy(): Promise<void> {
    const dataFiles = await this.#listDataFiles();
    // A file that another run has just committed must be in the snapshot.
    await this.followLog();
    if (this.view === undefined) return;
    await this.#location.storage.remove(expiredFiles(dataFiles, this.#latestOf(this.view.snapshot)));
  }

  check(): Difference[] {
    if (this.view === undefined) return [];
    const { snapshot, state } = this.view;
    if (snapshot.metaData?.schemaString === schemaString(state, this.#location.table)) return [];
    return [difference('columns', `${this.address}: the schema in the log is not that of the state`)];
  }

  #refuseOthers({ protocol, metaData }: Snapshot): void {
    if (protocol === undefined || metaData === undefined) {
      throw configError(`${this.address} has a log without protocol or metadata: restore it from a copy.`);
    }
    checkProtocol(protocol, this.address);
    if (isDeepStrictEqual(metaData.partitionColumns, partitionColumnsOf(this.#location.table))) return;
    throw configError(`${this.address} is no longer partitioned as this program does it: somebody else changed it.`);
  }

  #viewOf(snapshot: Snapshot, missing: ReadonlySet<string> = new Set()): TableView {
    const state = stateOf(snapshot.domains, this.address);
    const files = dayFilesOf(snapshot, missing, state, this.#location.storage.address);
    const changedAt = nextChangedAt(state.receipts, this.#options.clock.now());
    const receipts = withPruned(state.receipts, removedDays(state.receipts, files), changedAt);
    return { snapshot, missing, state: { ...state, receipts }, files };
  }

  /** The live files that are not in the storage. A list may lack a file that is there: each is asked for by itself. */
  async #missingOf({ adds }: Snapshot): Promise<Set<string>> {
    const stored = new Set((await this.#listDataFiles()).map(({ path }) => path));
    const unlisted = [...adds.keys()].filter((path) => !stored.has(path));
    const { storage } = this.#location;
    const objects = await pLimit(READ_CONCURRENCY).map(unlisted, (path) => storage.read(path));
    return new Set(unlisted.filter((_, i) => objects[i] === undefined));
  }

  /** What is in the folder of the table after the log, which comes first in the order of paths. */
  async #listDataFiles(): Promise<StoredObject[]> {
    const { storage, table } = this.#location;
    const files: StoredObject[] = [];
    for await (const file of storage.list(table, `${logFolder(table)}/~`)) files.push(file);
    return files;
  }

  /** A failure is only logged: the commits are valid without a checkpoint. */
  async #renewCheckpoint(latest: LatestTable): Promise<void> {
    try {
      await renewCheckpoint(latest);
    } catch (error) {
      const { version } = latest.snapshot;
      const message = `${this.address}: no checkpoint of version ${version} could be written; the next run tries the next.`;
      this.#options.logger.warn('delta.checkpoint', message, { version, error: String(error) });
    }
  }

  #latestOf(snapshot: Snapshot): LatestTable {
    const { clock, retentionMs = retentionMsOf(snapshot.metaData) } = this.#options;
    return { location: this.#location, snapshot, now: clock.now(), retentionMs };
  }
}
