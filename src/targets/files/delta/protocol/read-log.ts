import { mapConcurrently } from '../../../../storage/concurrently.ts';
import { listAll, type Storage, type StoredObject } from '../../../../storage/storage.ts';
import type { TableName } from '../../../../table/tables.ts';
import type { OpenPlace } from '../../format.ts';
import { damagedError } from '../../stored-state.ts';
import { type Action, parseEntry } from './actions.ts';
import { readCheckpoint } from './checkpoint.ts';
import { checkProtocol } from './features.ts';
import { entryPath, logFileOf, logFolder, versionStem } from './paths.ts';
import { Snapshot } from './snapshot.ts';

const READ_CONCURRENCY = 16;

/**
 * Reads the latest snapshot of a table: on from `snapshotBefore`, or from the latest checkpoint that is newer. Gives
 * `snapshotBefore` itself if nothing is new. Throws UserError for a log that is damaged, or of another protocol.
 */
export async function readSnapshot(place: OpenPlace, snapshotBefore: Snapshot): Promise<Snapshot> {
  const { tableName, logVersion } = snapshotBefore;
  const listNewFiles = () => listAll(place.storage, logFolder(tableName), versionStem(tableName, logVersion + 1));
  // A storage that cannot be listed is not asked twice: some take a minute to fail.
  const objects = await listNewFiles();
  // How a listed file fails that a purge has removed depends on the storage: so each failure is tried again. Then the
  // checkpoint of the purge has everything.
  return readListed(place, snapshotBefore, objects).catch(async () =>
    readListed(place, snapshotBefore, await listNewFiles()),
  );
}

async function readListed(place: OpenPlace, snapshotBefore: Snapshot, objects: StoredObject[]): Promise<Snapshot> {
  const { storage } = place;
  const { tableName } = snapshotBefore;
  const logFiles = objects.flatMap(({ path }) => logFileOf(path) ?? []);
  const lastFile = logFiles.at(-1);
  if (lastFile === undefined) return snapshotBefore;
  const checkpointVersion = logFiles.findLast(({ isEntry }) => !isEntry)?.logVersion;
  const startSnapshot =
    checkpointVersion === undefined
      ? snapshotBefore
      : new Snapshot(tableName, checkpointVersion, await readCheckpoint(place, tableName, checkpointVersion));
  const { logVersion: startVersion } = startSnapshot;
  // A stray file may have an absurd number, and a listing may lack a new file. So n files lead n versions on at most.
  const count = Math.min(lastFile.logVersion - startVersion, logFiles.length);
  const versions = Array.from({ length: count }, (_, i) => startVersion + 1 + i);
  const entries = await mapConcurrently(versions, READ_CONCURRENCY, (version) =>
    readEntry(storage, tableName, version),
  );
  const snapshot = startSnapshot.after(startVersion + count, entries.flat());
  checkProtocol(snapshot.protocol, `${storage.address}/${tableName}`);
  return snapshot;
}

/** The actions of an entry. Throws a configuration failure for a missing one: it would be a hole in the data. */
async function readEntry(storage: Storage, tableName: TableName, logVersion: number): Promise<Action[]> {
  const path = entryPath(tableName, logVersion);
  const text = await storage.read(path);
  if (text !== undefined) return parseEntry(text.toString('utf8'), tableName, `${storage.address}/${path}`);
  throw damagedError(`${storage.address}/${logFolder(tableName)}`, `version ${logVersion} is missing`);
}
