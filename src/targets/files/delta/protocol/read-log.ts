import { mapConcurrently } from '../../../../storage/concurrently.ts';
import { listAll } from '../../../../storage/storage.ts';
import type { OpenPlace } from '../../format.ts';
import { damagedError } from '../../stored-state.ts';
import { parseEntry } from './actions.ts';
import { readCheckpoint } from './checkpoint.ts';
import { entryPath, logFileOf, logFolder, versionStem } from './paths.ts';
import { Snapshot } from './snapshot.ts';

const READ_CONCURRENCY = 16;

/**
 * Reads the latest snapshot of a table: from the latest checkpoint that is newer than `before`, else on from `before`.
 * Gives `before` itself if nothing is new. Throws UserError for a log that is damaged.
 */
export const readSnapshot = (place: OpenPlace, before: Snapshot): Promise<Snapshot> =>
  // A purge may remove a listed file before it is read. How that fails depends on the storage, so each failure is tried
  // again. Then the checkpoint of the purge has everything.
  readOnce(place, before).catch(() => readOnce(place, before));

async function readOnce(place: OpenPlace, before: Snapshot): Promise<Snapshot> {
  const { storage } = place;
  const { table } = before;
  const objects = await listAll(storage, logFolder(table), versionStem(table, before.logVersion + 1));
  const logFiles = objects.flatMap(({ path }) => logFileOf(path) ?? []);
  if (logFiles.length === 0) return before;
  const checkpointVersion = logFiles.findLast(({ isEntry }) => !isEntry)?.logVersion;
  const startSnapshot =
    checkpointVersion === undefined
      ? before
      : new Snapshot(table, checkpointVersion, await readCheckpoint(place, table, checkpointVersion));
  const entries = logFiles.filter(({ isEntry, logVersion }) => isEntry && logVersion > startSnapshot.logVersion);
  const texts = await mapConcurrently(entries, READ_CONCURRENCY, ({ logVersion }) =>
    storage.read(entryPath(table, logVersion)),
  );
  const actions = entries.flatMap(({ logVersion }, i) => {
    const text = texts[i];
    const expectedVersion = startSnapshot.logVersion + 1 + i;
    // A missing version would be a hole in the data.
    if (logVersion !== expectedVersion || text === undefined) {
      throw damagedError(`${storage.address}/${logFolder(table)}`, `version ${expectedVersion} is missing`);
    }
    return parseEntry(text.toString('utf8'), table, `${storage.address}/${entryPath(table, logVersion)}`);
  });
  return startSnapshot.after(startSnapshot.logVersion + entries.length, actions);
}
