import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { VERSION } from '../../../base/version.ts';
import type { TableState } from '../../../table/place-state.ts';
import type { OpenPlace } from '../format.ts';
import { newFilesIn, type PlaceChange } from '../place-version.ts';
import { type LogState, stateActions } from './delta-state.ts';
import { type DeltaTable, deltaTableAt } from './delta-table.ts';
import { addAction, removeAction } from './file-actions.ts';
import type { Action, MetaData } from './protocol/actions.ts';
import { newTableProtocol } from './protocol/features.ts';
import { dayOfPath, entryPath } from './protocol/paths.ts';
import type { Snapshot } from './protocol/snapshot.ts';
import { partitionColumnsOf, schemaString } from './schema.ts';

// The next entry of the log of one table: it makes a change visible.

/** The operation that the history of the table shows for a change. */
const OPERATIONS = { load: 'WRITE', purge: 'DELETE', prune: 'DELETE' } as const;

/** A change of one table, and what its log holds after it. */
export interface TableChange extends Omit<PlaceChange, 'state'> {
  readonly state: LogState;
}

/** Makes a change visible by the next entry; undefined if another writer has created that. */
export async function createNextEntry(
  place: OpenPlace,
  deltaTable: DeltaTable,
  change: TableChange,
): Promise<DeltaTable | undefined> {
  const { snapshot } = deltaTable;
  const actions = entryActions(place, deltaTable, change);
  const text = `${actions.map((action) => JSON.stringify(action)).join('\n')}\n`;
  const logVersion = snapshot.logVersion + 1;
  if (!(await place.storage.create(entryPath(snapshot.tableName, logVersion), text))) return undefined;
  return deltaTableAt(place, snapshot.after(logVersion, actions), deltaTable.missingPaths);
}

/** All that the entry says of a change. */
function entryActions(
  { options }: OpenPlace,
  { snapshot, missingPaths }: DeltaTable,
  { kind, fileChanges, state }: TableChange,
): Action[] {
  const timestamp = Math.floor(options.clock.now());
  const commitInfo = {
    timestamp,
    operation: OPERATIONS[kind],
    operationParameters: { days: String(fileChanges.length) },
    // Not every reader takes the −1 of a first commit.
    ...(snapshot.logVersion >= 0 && { readVersion: snapshot.logVersion }),
    isBlindAppend: false,
    engineInfo: `dfinery-elt/${VERSION}`,
    txnId: randomUUID(),
  };
  const changedDays = new Set(fileChanges.map(({ day }) => day));
  const leavingFiles = [...snapshot.liveFiles].filter(([path]) => {
    const fileDay = dayOfPath(path);
    // A file without a day has all profiles.
    const isReplaced = fileDay === undefined ? fileChanges.length > 0 : changedDays.has(fileDay);
    return isReplaced || missingPaths.has(path);
  });
  return [
    { commitInfo },
    ...metaDataActions(snapshot, state, timestamp),
    ...stateActions(snapshot.domains, state),
    ...leavingFiles.map(([, add]) => removeAction(add, timestamp)),
    ...newFilesIn(fileChanges).map((file) => addAction(file, timestamp)),
  ];
}

/** The actions that make the table, or change its columns; none if nothing changes. */
function metaDataActions(snapshot: Snapshot, state: TableState, timestamp: number): Action[] {
  const { tableName, metaData: metaDataBefore } = snapshot;
  const newMetaData = {
    id: randomUUID(),
    name: tableName,
    format: { provider: 'parquet', options: {} },
    partitionColumns: partitionColumnsOf(tableName),
    createdTime: timestamp,
    configuration: {},
  } as const;
  const metaData: MetaData = {
    ...(metaDataBefore ?? newMetaData),
    schemaString: schemaString(state, tableName),
  };
  if (metaDataBefore === undefined) return [{ protocol: newTableProtocol(state.timezone !== null) }, { metaData }];
  return isDeepStrictEqual(metaData, metaDataBefore) ? [] : [{ metaData }];
}
