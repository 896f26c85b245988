import { type Day, formatDays } from '../../../base/days.ts';
import { configError } from '../../../base/errors.ts';
import { listAll, type Storage, type StoredObject } from '../../../storage/storage.ts';
import { findRemovedDays, withPrunedDays } from '../../../table/receipts.ts';
import type { TableName } from '../../../table/tables.ts';
import type { OpenPlace } from '../format.ts';
import type { TableFile } from '../place-version.ts';
import { type LogState, stateInDomains } from './delta-state.ts';
import { tableFilesIn } from './file-actions.ts';
import { dayOfPath, logFolder } from './protocol/paths.ts';
import { readSnapshot } from './protocol/read-log.ts';
import { Snapshot } from './protocol/snapshot.ts';

// One table of a place: what its log says, and which of its files are there.

/** A Delta table at one version. */
export interface DeltaTable {
  readonly snapshot: Snapshot;
  /** Its live files that somebody removed from the storage. */
  readonly missingPaths: ReadonlySet<string>;
  /** Undefined before the first commit. Removed days count as pruned. */
  readonly state: LogState | undefined;
  readonly files: readonly TableFile[];
  /** Days that have rows by their receipts, and no file. */
  readonly removedDays: readonly Day[];
}

/** A table without a log. */
const emptyDeltaTable = (snapshot: Snapshot): DeltaTable => ({
  snapshot,
  missingPaths: new Set(),
  state: undefined,
  files: [],
  removedDays: [],
});

/** The table at a snapshot. `absentPaths`: files that are not in the storage, of which the log may still name some. */
export function deltaTableAt(place: OpenPlace, snapshot: Snapshot, absentPaths: ReadonlySet<string>): DeltaTable {
  const { address } = place.storage;
  const missingPaths = new Set([...absentPaths].filter((path) => snapshot.liveFiles.has(path)));
  const state = stateInDomains(snapshot.domains, `${address}/${snapshot.tableName}`);
  const files = tableFilesIn(snapshot, missingPaths, state, address);
  const removedDays = findRemovedDays(state.receipts, files);
  const receipts = withPrunedDays(state.receipts, removedDays, place.options.clock.now());
  return { snapshot, missingPaths, state: { ...state, receipts }, files: [...files.values()], removedDays };
}

/** Reads the log, and looks for the files. */
export async function readDeltaTable(place: OpenPlace, tableName: TableName): Promise<DeltaTable> {
  const snapshot = await readSnapshot(place, new Snapshot(tableName));
  return snapshot.logVersion < 0 ? emptyDeltaTable(snapshot) : lookForFiles(place, snapshot);
}

/** The table of a snapshot, or of a later one: a later entry of the log may have removed files that are missing. */
async function lookForFiles(place: OpenPlace, snapshot: Snapshot): Promise<DeltaTable> {
  const listedPaths = new Set((await listDataFiles(place.storage, snapshot.tableName)).map(({ path }) => path));
  const missingPaths = await findMissingPaths(place.storage, snapshot, listedPaths);
  const latestSnapshot = missingPaths.size === 0 ? snapshot : await readSnapshot(place, snapshot);
  if (latestSnapshot.logVersion > snapshot.logVersion) return lookForFiles(place, latestSnapshot);
  refuseOlderLog(place.storage, snapshot, missingPaths, listedPaths);
  return deltaTableAt(place, snapshot, missingPaths);
}

/** Reads what is new in the log alone, where `readDeltaTable` has looked for the files before. */
export async function readNewEntries(place: OpenPlace, deltaTableBefore: DeltaTable): Promise<DeltaTable> {
  const snapshot = await readSnapshot(place, deltaTableBefore.snapshot);
  if (snapshot.logVersion === deltaTableBefore.snapshot.logVersion) return deltaTableBefore;
  return deltaTableAt(place, snapshot, deltaTableBefore.missingPaths);
}

/** The live files that are not in the storage. A list may lack a file that is there: each is asked for by itself. */
async function findMissingPaths(storage: Storage, { liveFiles }: Snapshot, listedPaths: ReadonlySet<string>) {
  const missingPaths = new Set<string>();
  for (const path of liveFiles.keys()) {
    if (!listedPaths.has(path) && (await storage.read(path)) === undefined) missingPaths.add(path);
  }
  return missingPaths;
}

/** Throws a configuration failure for a log that was put back from a copy. Its newer files would else be removed. */
function refuseOlderLog(
  storage: Storage,
  { tableName, liveFiles, tombstones }: Snapshot,
  missingPaths: ReadonlySet<string>,
  listedPaths: ReadonlySet<string>,
): void {
  const unnamedPaths = [...listedPaths].filter((path) => !liveFiles.has(path) && !tombstones.has(path));
  const unnamedDays = new Set(unnamedPaths.map(dayOfPath));
  const newerDays = [...missingPaths].flatMap((path) => dayOfPath(path) ?? []).filter((day) => unnamedDays.has(day));
  if (newerDays.length === 0) return;
  throw configError(
    `${storage.address}/${tableName}: of ${formatDays(newerDays)} the _delta_log names a file that is gone, and not the one that ` +
      'is there. Put the newer log back if this one is an older copy. If a run that loads these days anew is under way, wait ' +
      'for it; if it was killed, move their folders away.',
  );
}

/**
 * Lists the data files of a table. In the order of paths they come after its log, which may be long and is passed over.
 * Files of others may be among them, or be missing.
 */
export const listDataFiles = (storage: Storage, tableName: TableName): Promise<StoredObject[]> =>
  listAll(storage, tableName, `${logFolder(tableName)}/~`);
