import pLimit from 'p-limit';
import { listAll } from '../../../../storage/storage.ts';
import type { FilesPlace } from '../../format.ts';
import { damagedError } from '../../stored-state.ts';
import { entryPath, logFileOf, logFolder, parseEntry, versionStem } from './actions.ts';
import { readCheckpoint } from './checkpoint.ts';
import { Snapshot } from './snapshot.ts';

/** Number of entries that are fetched at the same time. */
const READ_CONCURRENCY = 16;

/**
 * Reads the latest snapshot of a table: from the latest checkpoint that is newer than `before`, else on from `before`.
 * Gives `before` itself if nothing is new. Throws UserError for a log that is damaged.
 */
export function readSnapshot(place: FilesPlace, before: Snapshot): Promise<Snapshot> {
  // A purge may remove a listed file before it is read. Then its checkpoint has everything.
  return readOnce(place, before).catch(() => readOnce(place, before));
}

async function readOnce(place: FilesPlace, before: Snapshot): Promise<Snapshot> {
  const { storage } = place;
  const { table } = before;
  const { checkpoint, entries } = await listLog(place, before);
  if (checkpoint < 0 && entries.length === 0) return before;
  const start =
    checkpoint < 0 ? before : new Snapshot(table, checkpoint, await readCheckpoint(place, table, checkpoint));
  const versions = entries.filter((version) => version > start.version);
  const texts = await pLimit(READ_CONCURRENCY).map(versions, (version) => storage.read(entryPath(table, version)));
  const actions = versions.flatMap((version, i) => {
    const text = texts[i];
    const expected = start.version + 1 + i;
    // A missing version would be a hole in the data.
    if (version !== expected || text === undefined) {
      throw damagedError(`${storage.address}/${logFolder(table)}`, `version ${expected} is missing`);
    }
    const where = `${storage.address}/${entryPath(table, version)}`;
    return parseEntry(text.toString('utf8'), table, where);
  });
  return start.after(start.version + versions.length, actions);
}

/** Lists the log after a version: its latest checkpoint (−1 if there is none), and its entries in order. */
async function listLog({ storage }: FilesPlace, { table, version }: Snapshot) {
  const objects = await listAll(storage, logFolder(table), versionStem(table, version + 1));
  const files = objects.flatMap(({ path }) => logFileOf(path) ?? []);
  const checkpoints = files.filter(({ isEntry }) => !isEntry).map(({ version }) => version);
  const entries = files.filter(({ isEntry }) => isEntry).map(({ version }) => version);
  return { checkpoint: Math.max(-1, ...checkpoints), entries };
}
