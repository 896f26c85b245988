// This folder: the target `delta`. A Delta table `events` is on a disk or in a bucket, and has one file a day. Beside
// it is a table `user_profiles`. `delta-table.ts` reads and commits one table. A commit creates the next entry of the
// log, which must not exist. `commit-actions.ts` has what an entry says of files, `delta-state.ts` of the state,
// `schema.ts` of columns, `retention.ts` of the time that files stay which left the table. `vacuum.ts` removes what is
// no longer part of a table. `protocol/` has the files of a log.

import { configError, transientError, UserError } from '../../../base/errors.ts';
import { tryParseJson } from '../../../base/json.ts';
import { mapConcurrently } from '../../../storage/concurrently.ts';
import { checkConditionalWrites, openStorage } from '../../../storage/open.ts';
import { hasObjects, listAll, OWN_FOLDER, type Storage } from '../../../storage/storage.ts';
import { newTableState, type RunRecord } from '../../../table/place-state.ts';
import { type ByTable, EVENTS, TABLES, type Table, USER_PROFILES } from '../../../table/tables.ts';
import { type FilesFormat, foreignFilesError, type OpenPlace } from '../format.ts';
import type { PlaceChange, PlaceVersion } from '../place-version.ts';
import { rewriteOutdated } from '../rewrite-files.ts';
import { newFilesIn, type TableChange } from './commit-actions.ts';
import { type LogState, stateActions } from './delta-state.ts';
import { commitToTable, type DeltaTable, emptyTable, followLog, readTable } from './delta-table.ts';
import { isDataFile, isOwnFile, logFileOf, logFolder } from './protocol/paths.ts';
import { DELTA_LAYOUT } from './schema.ts';
import { committedAt, eraseHistory, removeExpiredFiles, renewCheckpointIfDue } from './vacuum.ts';

const STORE_CONCURRENCY = 4;
const LAST_RUN_PATH = `${OWN_FOLDER}/last-run.json`;

interface DeltaTables {
  readonly events: DeltaTable;
  /** Undefined for a load of days alone, which costs no request for it, and if the table is somebody else's. */
  readonly user_profiles: DeltaTable | undefined;
}

interface DeltaVersion extends PlaceVersion {
  readonly tables: DeltaTables;
}

export const DELTA: FilesFormat<DeltaVersion> = {
  layout: DELTA_LAYOUT,
  openStorage: (options) => openStorage(options.address, options),
  // A first load may have stored profiles alone.
  mayBeLoaded: async (storage) =>
    (await hasObjects(storage, EVENTS.name)) || (await hasObjects(storage, USER_PROFILES.name)),
  refuseForeignFiles: (storage) => refuseForeignFiles(storage, EVENTS.name),

  async read(place, before = emptyVersion(place)) {
    const { storage, purpose } = place;
    const tablesBefore = before.tables;
    const events = await readTable(place, tablesBefore.events);
    if (events.state === undefined) await refuseLostLog(storage);
    if (events.state === undefined && purpose.kind === 'load') await checkConditionalWrites(storage);
    const profiles = tablesBefore.user_profiles && (await readProfiles(place, tablesBefore.user_profiles));
    if (events === tablesBefore.events && profiles === tablesBefore.user_profiles) return before;
    const lastRun = purpose.kind === 'read' ? await readLastRun(storage) : undefined;
    return versionOf({ events, user_profiles: profiles }, lastRun);
  },

  // A commit replaces none.
  hasReplacedFiles: () => false,

  async commit(place, { tables: { events, user_profiles: profiles } }, prepare) {
    const version = versionOf({
      events: await followLog(place, events),
      user_profiles: profiles && (await followLog(place, profiles)),
    });
    const { change, result } = await prepare(version);
    place.runFolder.checkHeld();
    if (change === undefined) return { version, result };
    const changes = { events: await changeOfEvents(place, version, change), user_profiles: changeOfProfiles(change) };
    return { version: versionOf(await commitToTables(place, version.tables, changes)), result };
  },

  async recordRun({ storage }, { isLoaded }, run) {
    if (isLoaded) await storage.write(LAST_RUN_PATH, JSON.stringify(run));
  },

  async erase(place, version) {
    // Each purge commits to events. Whoever stored a file before that can no longer commit it to either table.
    const purgedAt = await committedAt(place, version.tables.events.snapshot);
    for (const { snapshot } of tablesOf(version)) await eraseHistory(place, snapshot, purgedAt);
  },

  async tidy(place, version) {
    for (const table of tablesOf(version)) await removeExpiredFiles(place, table);
  },

  async foreignFiles({ storage }) {
    const paths = await Promise.all(TABLES.map(({ name }) => pathsIn(storage, name)));
    const foreignPaths = paths.flat().filter((path) => !isOwnFile(path));
    // Readers see what the log names.
    return foreignPaths.map((path) => ({ path, isSeenByReaders: false }));
  },
};

function emptyVersion({ purpose }: OpenPlace): DeltaVersion {
  const readsProfiles = purpose.kind !== 'load' || purpose.loadsProfiles;
  const profiles = readsProfiles ? emptyTable(USER_PROFILES.name) : undefined;
  return versionOf({ events: emptyTable(EVENTS.name), user_profiles: profiles });
}

const tablesOf = ({ tables }: DeltaVersion): DeltaTable[] => TABLES.flatMap(({ name }) => tables[name] ?? []);

function versionOf(tables: DeltaTables, lastRun?: RunRecord): DeltaVersion {
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

/**
 * Reads the table of profiles. One of somebody else is refused by a load of profiles, and else left alone: undefined. A
 * log that is damaged beside files of this program is our own: an erasure must not pass it over.
 */
async function readProfiles(place: OpenPlace, before: DeltaTable): Promise<DeltaTable | undefined> {
  const { storage, purpose } = place;
  try {
    const profiles = await readTable(place, before);
    if (purpose.kind === 'load' && profiles.state === undefined) await refuseForeignFiles(storage, USER_PROFILES.name);
    return profiles;
  } catch (error) {
    if (purpose.kind === 'load' || !(error instanceof UserError) || error.kind !== 'config') throw error;
    if ((await pathsIn(storage, USER_PROFILES.name)).some(isDataFile)) throw error;
    return undefined;
  }
}

/** Throws a configuration failure if others' files lie where those of a table without a log would. */
async function refuseForeignFiles(storage: Storage, table: Table['name']): Promise<void> {
  if (await hasObjects(storage, logFolder(table))) return;
  const paths = await pathsIn(storage, table);
  if (!paths.every(isOwnFile)) throw foreignFilesError(storage.address, table);
}

async function readLastRun(storage: Storage): Promise<RunRecord | undefined> {
  const text = await storage.read(LAST_RUN_PATH);
  return tryParseJson(text?.toString('utf8') ?? '') as RunRecord | undefined;
}

/**
 * Throws a configuration failure if data files of events are there without the log that they had. A first load that was
 * killed or failed leaves some that had none. A run is recorded once one of the tables has a log.
 */
async function refuseLostLog(storage: Storage): Promise<void> {
  const lastRun = await readLastRun(storage);
  if (lastRun === undefined) return;
  const profilesHaveLog = await hasObjects(storage, logFolder(USER_PROFILES.name));
  if (lastRun.days === 0 && profilesHaveLog) return;
  // Listed last: another process may have made the first commit meanwhile.
  const paths = (await listAll(storage, EVENTS.name)).map(({ path }) => path);
  if (!paths.some(isDataFile) || paths.some((path) => logFileOf(path) !== undefined)) return;
  throw configError(
    `${storage.address}/${EVENTS.name} holds data files of this program, but its _delta_log is gone: restore the log ` +
      'from a copy, or move the files away.',
    { where: { file: storage.address } },
  );
}

/** The paths of all files in the folder of a table but for its log. */
async function pathsIn(storage: Storage, table: Table['name']): Promise<string[]> {
  const paths = (await listAll(storage, table)).map(({ path }) => path);
  return paths.filter((path) => !path.startsWith(`${logFolder(table)}/`));
}

function changeOfProfiles({ kind, state, fileChanges }: PlaceChange): TableChange | undefined {
  const profileChanges = fileChanges.filter(({ table }) => table === USER_PROFILES.name);
  if (state.user_profiles === undefined || (kind !== 'purge' && profileChanges.length === 0)) return undefined;
  return { kind, state: state.user_profiles, fileChanges: profileChanges };
}

/**
 * What a change of a place changes in events. A purge commits to events, also where nothing was loaded. So a load that
 * began before it loses the race for the next entry, and cannot bring people back. The first load of profiles has no
 * table of them to race for: it commits to events, too, if they are loaded.
 */
async function changeOfEvents(
  place: OpenPlace,
  before: DeltaVersion,
  change: PlaceChange,
): Promise<TableChange | undefined> {
  const { kind, state } = change;
  const fileChanges = change.fileChanges.filter(({ table }) => table === EVENTS.name);
  // Other files get the types that columns have now.
  for await (const rewritten of rewriteOutdated(place, before.files, change)) fileChanges.push(rewritten);
  // The log of events has what belongs to the whole place.
  const events: LogState = { ...state.events, suppressionLength: state.suppressionLength };
  const { snapshot, missingPaths, state: eventsBefore } = before.tables.events;
  const makesProfiles = state.user_profiles !== undefined && before.state.user_profiles === undefined;
  const hasOtherChanges = makesProfiles || missingPaths.size > 0 || stateActions(snapshot.domains, events).length > 0;
  const isCommitted = kind === 'purge' || fileChanges.length > 0 || (eventsBefore !== undefined && hasOtherChanges);
  return isCommitted ? { kind, state: events, fileChanges } : undefined;
}

/** Stores all files, then creates the entry of each table, events first, and its checkpoint if that is due. */
async function commitToTables(
  place: OpenPlace,
  before: DeltaTables,
  changes: ByTable<TableChange | undefined>,
): Promise<DeltaTables> {
  const { storage } = place;
  const newFiles = TABLES.flatMap(({ name }) => newFilesIn(changes[name]?.fileChanges ?? []));
  // No reader sees them before their entry.
  await mapConcurrently(newFiles, STORE_CONCURRENCY, (file) => storage.moveIn(file.localPath, file.path));
  const tablesAfter = { ...before };
  for (const { name } of TABLES) {
    const [table, change] = [before[name], changes[name]];
    if (table === undefined || change === undefined) continue;
    const tableAfter = await commitToTable(place, table, change);
    if (tableAfter === undefined) {
      const uncommittedFiles = newFiles.filter((file) => tablesAfter[file.table] === before[file.table]);
      await storage.remove(uncommittedFiles.map(({ path }) => path));
      const kept =
        tablesAfter.events === before.events
          ? 'nothing of this commit was kept'
          : 'of this commit, only the change of events was kept';
      throw transientError(`Another run has committed to ${storage.address}/${name} first: ${kept}. Run again.`);
    }
    tablesAfter[name] = tableAfter;
    await renewCheckpointIfDue(place, tableAfter.snapshot);
  }
  return tablesAfter;
}
