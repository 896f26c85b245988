import { transientError, type UserError } from '../../../base/errors.ts';
import { mapConcurrently } from '../../../storage/concurrently.ts';
import type { Storage } from '../../../storage/storage.ts';
import { EVENTS, TABLES, type TableName, USER_PROFILES } from '../../../table/tables.ts';
import type { OpenPlace } from '../format.ts';
import { newFilesIn, type PlaceChange, type PlaceVersion } from '../place-version.ts';
import { rewriteOutdated } from '../rewrite-files.ts';
import { stateActions } from './delta-state.ts';
import type { DeltaTable } from './delta-table.ts';
import { createNextEntry, type TableChange } from './next-entry.ts';
import { renewCheckpointIfDue } from './protocol/checkpoint.ts';

/** Number of files that are stored at the same time. */
const STORE_CONCURRENCY = 4;

export interface DeltaTables {
  readonly events: DeltaTable;
  /** Undefined if somebody else made it. */
  readonly user_profiles: DeltaTable | undefined;
}

export interface DeltaVersion extends PlaceVersion {
  readonly tables: DeltaTables;
}

/** Makes a change of a place in three steps. Throws a transient failure if another writer has created an entry first. */
export async function commitToTables(
  place: OpenPlace,
  version: DeltaVersion,
  change: PlaceChange,
): Promise<DeltaTables> {
  const { storage } = place;
  // 1. The older files with values of a column that widens are written anew, on this machine.
  const fileChanges = [...change.fileChanges];
  for await (const rewritten of rewriteOutdated(place.localFiles, version.files, change)) fileChanges.push(rewritten);
  // 2. All new files are stored. No reader sees them before their entry.
  let uncommittedFiles = newFilesIn(fileChanges);
  await mapConcurrently(uncommittedFiles, STORE_CONCURRENCY, (file) => storage.moveIn(file.localPath, file.path));
  // 3. The log of each table that changes gets its next entry, that of events first, and a checkpoint that is due.
  const changes = {
    events: changeOfEvents(version, { ...change, fileChanges }),
    user_profiles: changeOfProfiles(change),
  };
  const tablesAfter = { ...version.tables };
  for (const { name } of TABLES) {
    const deltaTableBefore = version.tables[name];
    const tableChange = changes[name];
    if (deltaTableBefore === undefined || tableChange === undefined) continue;
    const deltaTableAfter = await createNextEntry(place, deltaTableBefore, tableChange);
    if (deltaTableAfter === undefined) {
      await storage.remove(uncommittedFiles.map(({ path }) => path));
      throw otherCommitError(storage, name);
    }
    tablesAfter[name] = deltaTableAfter;
    uncommittedFiles = uncommittedFiles.filter(({ tableName }) => tableName !== name);
    await renewCheckpointIfDue(place, deltaTableAfter.snapshot);
  }
  return tablesAfter;
}

function otherCommitError({ address, workFolder }: Storage, tableName: TableName): UserError {
  // In a bucket the files that were just removed may stay as earlier versions.
  const erasureAdvice = 'If that run erased people, and the bucket keeps versions, run forget --suppressed after it.';
  const message = `Another run has committed to ${address}/${tableName} first: run again.`;
  return transientError(workFolder === undefined ? `${message} ${erasureAdvice}` : message);
}

/**
 * What a change of a place changes in events; undefined if their log needs no entry. Beside changed files these need
 * one, the last three only once a first day has made the table:
 *
 *   a purge               a load that began before it finds the entry taken, and fails
 *   the first profiles    a purge that began before them, and knows of none, fails likewise
 *   missing files         the entry takes them out of the log
 *   another state         the log of events also has what belongs to the whole place
 *
 * A file that is younger than a purge may still be committed: it stays. A reader that then misses one ends with 3.
 */
function changeOfEvents(versionBefore: DeltaVersion, change: PlaceChange): TableChange | undefined {
  const { kind, state } = change;
  const fileChanges = change.fileChanges.filter(({ tableName }) => tableName === EVENTS.name);
  const stateAfter = { ...state.events, suppressionLength: state.suppressionLength };
  const { snapshot, missingPaths, state: stateBefore } = versionBefore.tables.events;
  const areFirstProfiles = state.user_profiles !== undefined && versionBefore.state.user_profiles === undefined;
  const isStateChanged = stateActions(snapshot.domains, stateAfter).length > 0;
  const needsEntry =
    fileChanges.length > 0 ||
    kind === 'purge' ||
    (stateBefore !== undefined && (areFirstProfiles || missingPaths.size > 0 || isStateChanged));
  return needsEntry ? { kind, state: stateAfter, fileChanges } : undefined;
}

function changeOfProfiles({ kind, state, fileChanges }: PlaceChange): TableChange | undefined {
  const profileChanges = fileChanges.filter(({ tableName }) => tableName === USER_PROFILES.name);
  if (state.user_profiles === undefined || (kind !== 'purge' && profileChanges.length === 0)) return undefined;
  return { kind, state: state.user_profiles, fileChanges: profileChanges };
}
