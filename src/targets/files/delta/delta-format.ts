// This folder: the target `delta`. A Delta table `events` is on a disk or in a bucket, and has one file a day. Beside
// it is a table `user_profiles`. A commit creates the next entry of the log of a table, which must not exist.
//
//   both tables   this file reads them, `commit-to-tables.ts` changes them
//   one table     `delta-table.ts` reads it, `next-entry.ts` writes the next entry of its log
//   an entry      `file-actions.ts` says it of files, `delta-state.ts` of the state, `schema.ts` of columns
//   other files   `foreign-files.ts` says whose they are, `vacuum.ts` removes what is no longer part of a table
//   the log       `protocol/`
//
// A purge may commit while others work: `changeOfEvents` in `commit-to-tables.ts` says how they exclude each other.

import { isDeepStrictEqual } from 'node:util';
import { UserError } from '../../../base/errors.ts';
import { isObject, parseJsonOfKind } from '../../../base/json.ts';
import { openStorage } from '../../../storage/open.ts';
import { checkConditionalWrites, hasObjects, OWN_FOLDER, type Storage } from '../../../storage/storage.ts';
import { newTableState, type RunRecord } from '../../../table/place-state.ts';
import { EVENTS, TABLES, USER_PROFILES } from '../../../table/tables.ts';
import type { FilesFormat, OpenPlace } from '../format.ts';
import { commitToTables, type DeltaTables, type DeltaVersion } from './commit-to-tables.ts';
import { type DeltaTable, readDeltaTable, readNewEntries } from './delta-table.ts';
import { pathsBesideLog, refuseForeignFiles, refuseLostLog } from './foreign-files.ts';
import { isDataFile, mayBeOwnFile } from './protocol/paths.ts';
import { DELTA_LAYOUT } from './schema.ts';
import { eraseAllButLatest, findCommitTime, removeExpiredFiles } from './vacuum.ts';

const LAST_RUN_PATH = `${OWN_FOLDER}/last-run.json`;

export const DELTA: FilesFormat<DeltaVersion> = {
  layout: DELTA_LAYOUT,
  openStorage: (options) => openStorage(options.address, options),
  // A first load may have stored profiles alone.
  mayBeLoaded: async (storage) =>
    (await hasObjects(storage, EVENTS.name)) || (await hasObjects(storage, USER_PROFILES.name)),
  refuseForeignFiles,
  refuseUnsafeCommits: checkConditionalWrites,

  read: readDeltaVersion,
  async isLatest(place, version) {
    return isDeepStrictEqual(positionsOf(await readDeltaVersion(place)), positionsOf(version));
  },

  // A file is never replaced under its name.
  couldMixVersions: () => false,

  async commit(place, { tables: { events, user_profiles: profiles } }, prepare) {
    const version = deltaVersionOf({
      events: await readNewEntries(place, events),
      user_profiles: profiles && (await readNewEntries(place, profiles)),
    });
    const { change, result } = await prepare(version);
    place.runFolder.checkHeld();
    if (change === undefined) return { version, result };
    return { version: deltaVersionOf(await commitToTables(place, version, change)), result };
  },

  async recordRun({ storage }, { isLoaded }, run) {
    if (isLoaded) await storage.write(LAST_RUN_PATH, JSON.stringify(run));
  },

  async eraseHistory(place, version) {
    const purgedAt = await findCommitTime(place.storage, version.tables.events.snapshot);
    for (const { snapshot } of deltaTablesIn(version)) await eraseAllButLatest(place, snapshot, purgedAt);
  },

  async removeExpired(place, version) {
    for (const deltaTable of deltaTablesIn(version)) await removeExpiredFiles(place, deltaTable);
  },

  async findForeignFiles({ storage }) {
    const paths = await Promise.all(TABLES.map(({ name }) => pathsBesideLog(storage, name)));
    // Readers see what the log names.
    return paths.flat().flatMap((path) => (mayBeOwnFile(path) ? [] : { path, isSeenByReaders: false }));
  },
};

async function readDeltaVersion(place: OpenPlace): Promise<DeltaVersion> {
  const events = await readDeltaTable(place, EVENTS.name);
  const lastRun = await readLastRun(place.storage);
  if (events.state === undefined) await refuseLostLog(place.storage, lastRun);
  // Also for a load of days alone: its first day has their time zone, and its end removes their expired files.
  const profiles = await readProfiles(place);
  return deltaVersionOf({ events, user_profiles: profiles }, lastRun);
}

/**
 * Reads the table of profiles; undefined for one of somebody else, unless that is refused. A log that is
 * damaged beside files of this program is our own: an erasure must not pass it over.
 */
async function readProfiles(place: OpenPlace): Promise<DeltaTable | undefined> {
  try {
    return await readDeltaTable(place, USER_PROFILES.name);
  } catch (error) {
    if (place.refusesForeignProfiles || !(error instanceof UserError) || error.kind !== 'config') throw error;
    if ((await pathsBesideLog(place.storage, USER_PROFILES.name)).some(isDataFile)) throw error;
    return undefined;
  }
}

async function readLastRun(storage: Storage): Promise<RunRecord | undefined> {
  const text = await storage.read(LAST_RUN_PATH);
  return parseJsonOfKind(isObject, text?.toString('utf8') ?? '') as RunRecord | undefined;
}

function deltaVersionOf(tables: DeltaTables, lastRun?: RunRecord): DeltaVersion {
  const { events, user_profiles: profiles } = tables;
  const [profilesReceipt] = profiles?.state?.receipts.values() ?? [];
  // Somebody may have removed the file of profiles.
  const hasProfiles = profilesReceipt !== undefined && profilesReceipt.pruned !== true;
  return {
    isLoaded: events.state !== undefined || hasProfiles,
    state: {
      events: events.state ?? newTableState(EVENTS, profiles?.state?.timezone ?? null),
      user_profiles: hasProfiles ? profiles?.state : undefined,
      suppressionLength: events.state?.suppressionLength,
      lastRun,
    },
    files: [...events.files, ...(profiles?.files ?? [])],
    damagedFiles: [],
    removedDays: events.removedDays,
    tables,
  };
}

const deltaTablesIn = ({ tables }: DeltaVersion): DeltaTable[] => TABLES.flatMap(({ name }) => tables[name] ?? []);

/** By what a later version differs from this one. */
const positionsOf = (version: DeltaVersion) =>
  deltaTablesIn(version).map(({ snapshot, missingPaths }) => [snapshot.tableName, snapshot.logVersion, missingPaths]);
