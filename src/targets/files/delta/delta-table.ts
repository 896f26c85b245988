import { isDeepStrictEqual } from 'node:util';
import type { Day } from '../../../base/days.ts';
import { listAll, type StoredObject } from '../../../storage/storage.ts';
import { findRemovedDays, withPrunedDays } from '../../../table/receipts.ts';
import type { TableName } from '../../../table/tables.ts';
import type { OpenPlace } from '../format.ts';
import type { TableFile } from '../place-version.ts';
import { commitActions, type TableChange } from './commit-actions.ts';
import { type LogState, stateOf } from './delta-state.ts';
import { tableFilesOf } from './file-actions.ts';
import { checkProtocol } from './protocol/features.ts';
import { entryPath, logFolder } from './protocol/paths.ts';
import { readSnapshot } from './protocol/read-log.ts';
import { Snapshot } from './protocol/snapshot.ts';

// One table of a place: how its log is read and goes on.

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

export const emptyTable = (table: TableName): DeltaTable => ({
  snapshot: new Snapshot(table),
  missingPaths: new Set(),
  state: undefined,
  files: [],
  removedDays: [],
});

const tableAddress = ({ storage }: OpenPlace, { table }: Snapshot): string => `${storage.address}/${table}`;

/** Reads the log and looks for its files until both agree; gives `tableBefore` itself if all is as before. */
export async function readTable(place: OpenPlace, tableBefore: DeltaTable): Promise<DeltaTable> {
  const table = await readNewEntries(place, tableBefore);
  if (table.state === undefined) return table;
  const missingPaths = await findMissingPaths(place, table.snapshot);
  if (isDeepStrictEqual(missingPaths, table.missingPaths)) return table;
  // A later entry of the log may have removed them.
  const laterTable = await readNewEntries(place, table);
  return laterTable === table ? tableOf(place, table.snapshot, missingPaths) : readTable(place, laterTable);
}

/** Reads what is new in the log; gives `tableBefore` itself if nothing is. */
export async function readNewEntries(place: OpenPlace, tableBefore: DeltaTable): Promise<DeltaTable> {
  const snapshot = await readSnapshot(place, tableBefore.snapshot);
  if (snapshot === tableBefore.snapshot) return tableBefore;
  checkProtocol(snapshot.protocol, tableAddress(place, snapshot));
  return tableOf(place, snapshot, tableBefore.missingPaths);
}

function tableOf(place: OpenPlace, snapshot: Snapshot, missingPaths: ReadonlySet<string>): DeltaTable {
  const state = stateOf(snapshot.domains, tableAddress(place, snapshot));
  const files = tableFilesOf(snapshot, missingPaths, state, place.storage.address);
  const removedDays = findRemovedDays(state.receipts, files);
  const receipts = withPrunedDays(state.receipts, removedDays, place.options.clock.now());
  return { snapshot, missingPaths, state: { ...state, receipts }, files: [...files.values()], removedDays };
}

/** The live files that are not in the storage. A list may lack a file that is there: each is asked for by itself. */
async function findMissingPaths(place: OpenPlace, { table, liveFiles }: Snapshot): Promise<Set<string>> {
  const listedPaths = new Set((await listDataFiles(place, table)).map(({ path }) => path));
  const missingPaths = new Set<string>();
  for (const path of liveFiles.keys()) {
    if (!listedPaths.has(path) && (await place.storage.read(path)) === undefined) missingPaths.add(path);
  }
  return missingPaths;
}

/**
 * Lists the data files of a table. In the order of paths they come after its log, which may be long and is passed over.
 * Files of others may be among them, or be missing.
 */
export const listDataFiles = ({ storage }: OpenPlace, table: TableName): Promise<StoredObject[]> =>
  listAll(storage, table, `${logFolder(table)}/~`);

/** Makes a change visible by the next entry; undefined if another writer has created that. */
export async function createNextEntry(
  place: OpenPlace,
  { snapshot, missingPaths }: DeltaTable,
  change: TableChange,
): Promise<DeltaTable | undefined> {
  const actions = commitActions(place, snapshot, missingPaths, change);
  const text = `${actions.map((action) => JSON.stringify(action)).join('\n')}\n`;
  const logVersion = snapshot.logVersion + 1;
  if (!(await place.storage.create(entryPath(snapshot.table, logVersion), text))) return undefined;
  // The commit has removed what was missing.
  return tableOf(place, snapshot.after(logVersion, actions), new Set());
}
