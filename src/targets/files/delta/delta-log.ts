// This folder: the target `delta`. A Delta table `events` is on a disk or in a bucket, and has one file a day. Beside
// it is a table `user_profiles`. `delta-table.ts` reads and commits one table. A commit creates the next entry of the
// log, which must not exist. `vacuum.ts` removes what is no longer part of a table. `protocol/` has the files of a log.

import { randomUUID } from 'node:crypto';
import pLimit from 'p-limit';
import { transientError, UserError } from '../../../base/errors.ts';
import { tryParseJson } from '../../../base/json.ts';
import { checkConditionalWrites, openStorage } from '../../../storage/open.ts';
import { hasObjects, listAll, OWN_FOLDER, type Storage } from '../../../storage/storage.ts';
import { newState, type RunRecord } from '../../../table/place-state.ts';
import { EVENTS, TABLES, type Table, USER_PROFILES } from '../../../table/tables.ts';
import { dayFolder } from '../file-layout.ts';
import { type FilesFormat, type FilesOptions, foreignError, type Manifest, type OpenMode } from '../format.ts';
import type { LocalFiles } from '../local-files.ts';
import type { NewFile, PlaceChange, PlaceVersion, PlannedCommit } from '../place-version.ts';
import { newFilesIn, type TableChange } from './commit-actions.ts';
import type { LogState } from './delta-state.ts';
import { DeltaTable } from './delta-table.ts';
import { isDataFile, isOwnFile, logFolder } from './protocol/actions.ts';
import { deltaColumns, readableName } from './schema.ts';

/** Number of files that are stored at the same time. */
const STORE_CONCURRENCY = 4;
const LAST_RUN = `${OWN_FOLDER}/last-run.json`;

export const DELTA: FilesFormat = {
  hasAllColumns: false,
  columnName: readableName,
  columnsOf: deltaColumns,
  newPath: (day, table) => `${table === EVENTS.name ? dayFolder(day) : table}/part-${randomUUID()}.parquet`,
  openStorage: (options) => openStorage(options.address, options),
  // A first load may have stored profiles alone.
  isLoaded: async (storage) =>
    (await hasObjects(storage, EVENTS.name)) || (await hasObjects(storage, USER_PROFILES.name)),
  refuseForeign: (storage) => refuseOthersFiles(storage, EVENTS.name),
  manifestOf: (localFiles, options, mode) => new DeltaLog(localFiles, options, mode),
};

/** Throws a configuration failure if others' files lie where those of a table without a log would. */
async function refuseOthersFiles(storage: Storage, table: Table['name']): Promise<void> {
  if (await hasObjects(storage, logFolder(table))) return;
  const paths = await pathsIn(storage, table);
  if (!paths.every(isOwnFile)) throw foreignError(storage.address, table);
}

/** The paths of all files in the folder of a table but for its log. */
async function pathsIn(storage: Storage, table: Table['name']): Promise<string[]> {
  const paths = (await listAll(storage, table)).map(({ path }) => path);
  return paths.filter((path) => !path.startsWith(`${logFolder(table)}/`));
}

/** The logs of both tables of a place as one. */
class DeltaLog implements Manifest {
  /** A commit is one step. */
  readonly damageWarnings = [];
  readonly #localFiles: LocalFiles;
  readonly #storage: Storage;
  readonly #mode: OpenMode;
  readonly #events: DeltaTable;
  /** Undefined for a load of days alone, which costs no request for it, and if the table is somebody else's. */
  #profiles: DeltaTable | undefined;
  #lastRun: RunRecord | undefined;

  constructor(localFiles: LocalFiles, options: FilesOptions, mode: OpenMode) {
    this.#localFiles = localFiles;
    this.#storage = localFiles.storage;
    this.#mode = mode;
    this.#events = new DeltaTable(localFiles, EVENTS.name, options, mode);
    const readsProfiles = mode !== 'load' || options.loadsProfiles === true;
    this.#profiles = readsProfiles ? new DeltaTable(localFiles, USER_PROFILES.name, options, mode) : undefined;
  }

  get version(): PlaceVersion | undefined {
    const events = this.#events.content;
    const profiles = this.#profiles?.content;
    const [receipt] = profiles?.state.receipts.values() ?? [];
    // Somebody may have removed the file of profiles.
    const hasProfiles = profiles !== undefined && receipt !== undefined && receipt.pruned !== true;
    if (events === undefined && !hasProfiles) return undefined;
    return {
      state: {
        events: events?.state ?? newState(profiles?.state.timezone ?? null).events,
        user_profiles: hasProfiles ? profiles.state : undefined,
        suppressionLength: events?.state.suppressionLength,
        lastRun: this.#lastRun,
      },
      files: [...(events?.files.values() ?? []), ...(hasProfiles ? profiles.files.values() : [])],
    };
  }

  async read(): Promise<boolean> {
    const isNew = await this.#events.read();
    if (this.#events.content === undefined && this.#mode === 'load') await checkConditionalWrites(this.#storage);
    if (this.#mode === 'read' && this.#events.content !== undefined) {
      const text = (await this.#storage.read(LAST_RUN))?.toString('utf8') ?? '';
      this.#lastRun = tryParseJson(text) as RunRecord | undefined;
    }
    return (await this.#readProfiles()) || isNew;
  }

  /**
   * Reads the table of profiles. One of somebody else is refused by a load of profiles, and else left alone. A log that
   * is damaged beside files of this program is our own: an erasure must not pass it over.
   */
  async #readProfiles(): Promise<boolean> {
    const profiles = this.#profiles;
    if (profiles === undefined) return false;
    try {
      const isNew = await profiles.read();
      if (this.#mode === 'load' && profiles.content === undefined) {
        await refuseOthersFiles(this.#storage, USER_PROFILES.name);
      }
      return isNew;
    } catch (error) {
      if (this.#mode === 'load' || !(error instanceof UserError) || error.kind !== 'config') throw error;
      if ((await pathsIn(this.#storage, USER_PROFILES.name)).some(isDataFile)) throw error;
      this.#profiles = undefined;
      return false;
    }
  }

  async commit<T>(plan: () => Promise<PlannedCommit<T>>): Promise<T> {
    for (const table of this.#tables) await table.followLog();
    const { change, report } = await plan();
    if (change !== undefined) await this.#commit(await this.#changesOfTables(change));
    return report;
  }

  /**
   * The change of each table, events first. A purge changes both, so that no run that began before can bring people
   * back. It cannot if there is no table of profiles. So the load that makes this table also takes an entry of events,
   * if there is a table of events.
   */
  async #changesOfTables(change: PlaceChange): Promise<readonly (readonly [DeltaTable, TableChange])[]> {
    const { kind, state } = change;
    // The log of events has what belongs to the whole place.
    const eventsState: LogState = { ...state.events, suppressionLength: state.suppressionLength };
    const profilesState = state.user_profiles;
    const [events, profiles] = [this.#events, this.#profiles];
    const profileFiles = change.files.filter(({ table }) => table === USER_PROFILES.name);
    const eventFiles = change.files.filter(({ table }) => table === EVENTS.name);
    // Other files get the types that columns have now.
    for await (const file of this.#localFiles.rewriteOutdated(this.version?.files ?? [], change)) eventFiles.push(file);

    const changesProfiles =
      profiles !== undefined && profilesState !== undefined && (kind === 'purge' || profileFiles.length > 0);
    const makesProfiles = changesProfiles && profiles.content === undefined;
    const hasNewState = events.content !== undefined && (makesProfiles || !events.hasStored(eventsState));
    const changesEvents = kind === 'purge' || eventFiles.length > 0 || hasNewState;
    return [
      ...(changesEvents ? [[events, { kind, state: eventsState, files: eventFiles }] as const] : []),
      ...(changesProfiles ? [[profiles, { kind, state: profilesState, files: profileFiles }] as const] : []),
    ];
  }

  /** Stores all files, then creates the entry of each table. */
  async #commit(changes: readonly (readonly [DeltaTable, TableChange])[]): Promise<void> {
    await this.#putFiles(changes.flatMap(([, { files }]) => newFilesIn(files)));
    for (const [i, [table, change]] of changes.entries()) {
      if (await table.commit(change)) continue;
      const stored = changes.slice(i).flatMap(([, { files }]) => newFilesIn(files));
      await this.#storage.remove(stored.map(({ path }) => path));
      const kept = i === 0 ? 'nothing of this commit was kept' : 'of this commit, only the change of events was kept';
      throw transientError(`Another run has committed to ${table.address} first: ${kept}. Run again.`);
    }
  }

  /** Stores the files of a change, which no reader sees before its entry. */
  async #putFiles(files: readonly NewFile[]): Promise<void> {
    const limit = pLimit(STORE_CONCURRENCY);
    const put = ({ localPath, path }: NewFile) => limit(() => this.#storage.putFile(localPath, path));
    const stored = await Promise.allSettled(files.map(put));
    const failed = stored.find((outcome) => outcome.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }

  async erase(): Promise<void> {
    for (const table of this.#tables) await table.erase();
  }

  async tidy(): Promise<void> {
    for (const table of this.#tables) await table.tidy();
  }

  async recordRun(run: RunRecord): Promise<void> {
    if (this.#events.content !== undefined) await this.#storage.write(LAST_RUN, JSON.stringify(run));
  }

  async foreignFiles(): Promise<string[]> {
    const paths = await Promise.all(TABLES.map(({ name }) => pathsIn(this.#storage, name)));
    return paths.flat().filter((path) => !isOwnFile(path));
  }

  /** This program's tables: events, then profiles. */
  get #tables(): readonly DeltaTable[] {
    return this.#profiles === undefined ? [this.#events] : [this.#events, this.#profiles];
  }
}
