import { HOUR_MS } from '../../../base/clock.ts';
import { transientError } from '../../../base/errors.ts';
import { type ErasePredicate, listAll, type Storage, type StoredObject } from '../../../storage/storage.ts';
import type { OpenPlace } from '../format.ts';
import { type DeltaTable, listDataFiles, readNewEntries } from './delta-table.ts';
import { writeCheckpoint } from './protocol/checkpoint.ts';
import { entryPath, logFileOf, logFolder, mayBeOwnFile, versionStem } from './protocol/paths.ts';
import type { Snapshot } from './protocol/snapshot.ts';

// Removes data files that left a table long ago, those of dead runs, and after a purge all of the past.

/** Minimum age (ms) of a file that is removed because no commit names it. A younger one may be committed soon. */
const UNCOMMITTED_MS = HOUR_MS;

/** Removes files that no version within the retention names, also those that dead runs left. */
export async function removeExpiredFiles(place: OpenPlace, deltaTable: DeltaTable): Promise<void> {
  if (deltaTable.state === undefined) return;
  const { storage, retentionMs } = place;
  const dataFiles = await listDataFiles(storage, deltaTable.snapshot.tableName);
  // A file that another run has just committed must be in the snapshot.
  const { snapshot } = await readNewEntries(place, deltaTable);
  const now = place.options.clock.now();
  const isExpired = ({ path, modified }: StoredObject) => {
    if (snapshot.liveFiles.has(path)) return false;
    const leftAt = snapshot.tombstones.get(path)?.deletionTimestamp;
    if (leftAt !== undefined) return leftAt < now - retentionMs;
    return mayBeOwnFile(path) && modified < now - Math.max(retentionMs, UNCOMMITTED_MS);
  };
  await storage.remove(dataFiles.filter(isExpired).map(({ path }) => path));
}

/**
 * Removes all data files and all of the log but the latest version. What no version names stays if it is younger than
 * the commit of the purge to events (`purgedAt`, ms).
 */
export async function eraseAllButLatest(place: OpenPlace, snapshot: Snapshot, purgedAt: number): Promise<void> {
  const { storage } = place;
  const { tableName } = snapshot;
  const shouldEraseDataFile: ErasePredicate = ({ path, modified }) => {
    if (snapshot.liveFiles.has(path) || !mayBeOwnFile(path)) return false;
    return modified < purgedAt || snapshot.tombstones.has(path);
  };
  await storage.erase(tableName, shouldEraseDataFile);
  // No history comes before the first entry.
  if (snapshot.logVersion <= 0) return;
  // The files of all tombstones are gone.
  await writeCheckpoint(place, snapshot, Infinity);
  const shouldEraseLogFile: ErasePredicate = ({ path, modified }) => {
    const logVersion = logFileOf(path)?.logVersion;
    return logVersion === undefined ? modified < purgedAt : logVersion < snapshot.logVersion;
  };
  await storage.erase(logFolder(tableName), shouldEraseLogFile);
}

/** The time at which a version was stored, by the clock of the store (ms since 1970). */
export async function findCommitTime(storage: Storage, { tableName, logVersion }: Snapshot): Promise<number> {
  const objects = await listAll(storage, logFolder(tableName), versionStem(tableName, logVersion));
  const entry = objects.find(({ path }) => path === entryPath(tableName, logVersion));
  if (entry !== undefined) return entry.modified;
  throw transientError(`${storage.address}/${logFolder(tableName)} does not list version ${logVersion}: run again.`);
}
