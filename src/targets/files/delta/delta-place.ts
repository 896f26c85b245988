// This folder: the target `delta`: a Delta table `events` on a disk or in a bucket, partitioned by `event_date`, with
// one file a day; and beside it a table `user_profiles`. `delta-log.ts` is the log of one table: a commit is the
// creation of the next entry, which must not exist. `protocol/` has the files of a log.

import { randomUUID } from 'node:crypto';
import { UserError } from '../../../base/errors.ts';
import { jsonOf } from '../../../base/json.ts';
import type { HashedColumns } from '../../../extract/export-request.ts';
import { checkConditionalWrites, openStorage } from '../../../storage/open.ts';
import type { Storage } from '../../../storage/storage.ts';
import type { Difference } from '../../../table/differences.ts';
import { newState, profilesOf, type RunRecord } from '../../../table/place-state.ts';
import { EVENTS, USER_PROFILES } from '../../../table/tables.ts';
import {
  type Change,
  type CommitChange,
  type FilesFormat,
  type FilesLog,
  type FilesOptions,
  foreignError,
  type LogParts,
  type OpenMode,
  type Version,
} from '../format.ts';
import { dayFolder } from '../parquet-file.ts';
import { type CommitTable, DeltaLog, isOurs, NO_FAULTS } from './delta-log.ts';
import { LOG_FOLDER } from './protocol/entry.ts';
import { columnsOfTable, readableName } from './schema.ts';

const LAST_RUN = '_dfinery/last-run.json';
const UNCHANGED = { removed: [], added: [] };
const PLAIN: HashedColumns = { columns: [], key_check: null };

export const DELTA: FilesFormat = {
  isUniform: false,
  columnName: readableName,
  columnsOf: columnsOfTable,
  pathOf: (day, table) => `${table === EVENTS.name ? dayFolder(day) : table}/part-${randomUUID()}.parquet`,
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

/** The logs of both tables of a place as one. */
class DeltaPlace implements FilesLog {
  readonly #storage: Storage;
  readonly #mode: OpenMode;
  readonly #events: DeltaLog;
  /** Undefined for a load of days alone, which costs no request for the other table. */
  readonly #profiles: DeltaLog | undefined;
  #areProfilesForeign = false;
  #lastRun: RunRecord | undefined;

  constructor(parts: LogParts, options: FilesOptions, mode: OpenMode) {
    this.#storage = parts.storage;
    this.#mode = mode;
    this.#events = new DeltaLog(parts, EVENTS.name, options, mode);
    const hasProfiles = mode !== 'load' || options.userProfiles === true;
    this.#profiles = hasProfiles ? new DeltaLog(parts, USER_PROFILES.name, options, mode) : undefined;
  }

  get version(): Version | undefined {
    const events = this.#events.version;
    const profiles = this.#profiles?.version;
    const lastRun = this.#lastRun;
    const [receipt] = profiles?.state.receipts.values() ?? [];
    // Somebody may have removed the file of profiles.
    if (profiles === undefined || receipt === undefined || receipt.pruned === true) {
      return events && { ...events, state: { ...events.state, lastRun } };
    }
    const { columns, exportState, timezone } = profiles.state;
    const { state, ...version } = events ?? { ...NO_FAULTS, state: newState(timezone), files: new Map() };
    const stored = { columns, receipt, hashing: exportState?.hashed?.[0] ?? PLAIN };
    return { ...version, state: { ...state, lastRun, profiles: stored }, profiles: profiles.files.get(receipt.day) };
  }

  async read(): Promise<boolean> {
    const isNew = await this.#events.read();
    if (this.#events.version === undefined && this.#mode === 'load') {
      if (this.#storage.workFolder === undefined) await DELTA.refuseForeign(this.#storage);
      await checkConditionalWrites(this.#storage);
    }
    if (this.#mode === 'read' && this.#events.version !== undefined) {
      this.#lastRun = jsonOf((await this.#storage.read(LAST_RUN))?.toString('utf8') ?? '') as RunRecord | undefined;
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
      if (this.#mode === 'load' && profiles.version === undefined) await this.#refuseForeignProfiles();
      this.#areProfilesForeign = false;
      return isNew;
    } catch (error) {
      if (this.#mode === 'load' || !(error instanceof UserError) || error.kind !== 'config') throw error;
      if (await profiles.hasOurFiles()) throw error;
      this.#areProfilesForeign = true;
      return false;
    }
  }

  async #refuseForeignProfiles(): Promise<void> {
    for await (const { path } of this.#storage.list(USER_PROFILES.name)) {
      if (!isOurs(path, USER_PROFILES.name)) throw foreignError(this.#storage.address, USER_PROFILES.name);
    }
  }

  exclusively<T>(work: (commit: CommitChange) => Promise<T>): Promise<T> {
    const [profiles] = this.#ourProfiles;
    return this.#events.exclusively((commitEvents) => {
      if (profiles === undefined) return work((change) => commitTables(change, commitEvents));
      return profiles.exclusively((commitProfiles) =>
        work((change) => {
          const isFirst = profiles.version === undefined && this.#events.version !== undefined;
          return commitTables(change, commitEvents, commitProfiles, isFirst);
        }),
      );
    });
  }

  async erase(): Promise<void> {
    for (const log of this.#logs) await log.erase();
  }

  async tidy(): Promise<void> {
    for (const log of this.#logs) await log.tidy();
  }

  async recordRun(run: RunRecord): Promise<void> {
    if (this.#events.version !== undefined) await this.#storage.write(LAST_RUN, JSON.stringify(run));
  }

  async foreign(): Promise<string[]> {
    const logs = this.#profiles === undefined ? [this.#events] : [this.#events, this.#profiles];
    return (await Promise.all(logs.map((log) => log.foreign()))).flat();
  }

  async check(): Promise<Difference[]> {
    return this.#logs.flatMap((log) => log.check());
  }

  /** The log of the profiles, if it is looked at and ours. */
  get #ourProfiles(): readonly DeltaLog[] {
    return this.#profiles === undefined || this.#areProfilesForeign ? [] : [this.#profiles];
  }

  get #logs(): readonly DeltaLog[] {
    return [this.#events, ...this.#ourProfiles];
  }
}

/**
 * Commits the events first. A purge commits to both, so that no run that began before can bring people back. If there
 * is no table of profiles, it cannot: so `isFirst`, the load that makes the table, takes an entry of the events, too.
 */
async function commitTables(
  change: Change,
  commitEvents: CommitTable,
  commitProfiles?: CommitTable,
  isFirst = false,
): Promise<void> {
  const { kind, state, events, profiles } = change;
  if (events !== undefined) await commitEvents({ kind, state, ...events });
  const table = profilesOf(state);
  if (table === undefined || (kind !== 'purge' && profiles === undefined)) return;
  const precede = isFirst ? () => commitEvents({ kind, state, ...UNCHANGED }) : undefined;
  await commitProfiles?.({ kind, state: { ...table, changes: [] }, ...(profiles ?? UNCHANGED) }, precede);
}
