import { randomUUID } from 'node:crypto';
import { DAY_MS } from '../../../base/durations.ts';
import { VERSION } from '../../../base/version.ts';
import type { TableState } from '../../../table/place-state.ts';
import type { Table } from '../../../table/tables.ts';
import type { Change } from '../format.ts';
import { stateActions } from './delta-state.ts';
import { addOf, removeOf } from './file.ts';
import type { Action, MetaData } from './protocol/entry.ts';
import type { LogSnapshot } from './protocol/snapshot.ts';
import { partitionColumnsOf, protocolOf, schemaString } from './schema.ts';

const APP_ID = 'dfinery-elt';
/** The operation that the history of the table shows for a change. */
const OPERATIONS = { load: 'WRITE', purge: 'DELETE', prune: 'DELETE' } as const;
/** Default time that files which left the table stay for its readers (ms). */
export const DEFAULT_RETENTION_MS = DAY_MS;
const RETENTION = 'delta.deletedFileRetentionDuration';
const SECONDS = /^interval (\d{1,9}) seconds$/;

/** The time that files which left a table stay for its readers (ms), as its last load set it. */
export function retentionMsOf(metaData: MetaData | undefined): number {
  const seconds = SECONDS.exec(metaData?.configuration[RETENTION] ?? '')?.[1];
  return seconds === undefined ? DEFAULT_RETENTION_MS : Number(seconds) * 1_000;
}

interface CommitFacts {
  /** Time of the commit (ms since 1970). */
  readonly now: number;
  readonly retentionMs: number;
  /** Paths of live files, from the folder of the table, that somebody removed from the storage: they leave the log, too. */
  readonly missing: ReadonlySet<string>;
  readonly table: Table['name'];
}

/** The actions of the log entry that makes a change of the latest version. */
export function commitActions(
  log: LogSnapshot,
  change: Change,
  { now, retentionMs, missing, table }: CommitFacts,
): Action[] {
  const { kind, added, removed, state } = change;
  const days = new Set([...added, ...removed].map(({ day }) => day));
  const gone = new Set(removed.map(({ path }) => path));
  const leaving = [...log.files.values()].filter(({ path }) => gone.has(`${table}/${path}`) || missing.has(path));
  const commitInfo = {
    timestamp: Math.floor(now),
    operation: OPERATIONS[kind],
    operationParameters: { days: String(days.size) },
    readVersion: log.version,
    isBlindAppend: false,
    engineInfo: `dfinery-elt/${VERSION}`,
    txnId: randomUUID(),
  };
  return [
    { commitInfo },
    { txn: { appId: APP_ID, version: log.version + 1, lastUpdated: Math.floor(now) } },
    ...tableActions(log.metaData, state, { now, retentionMs, table }),
    ...stateActions(log.domains, state),
    ...leaving.map((add) => removeOf(add, now)),
    ...added.map((file) => addOf(file, state, now, table)),
  ];
}

/** The actions that make the table, or change its columns; none if nothing changes. */
function tableActions(
  before: MetaData | undefined,
  state: TableState,
  { now, retentionMs, table }: Omit<CommitFacts, 'missing'>,
): Action[] {
  const schema = schemaString(state, table);
  const retention = `interval ${Math.ceil(retentionMs / 1_000)} seconds`;
  if (before?.schemaString === schema && before.configuration[RETENTION] === retention) return [];
  const metaData: MetaData = {
    ...before,
    id: before?.id ?? randomUUID(),
    name: table,
    format: { provider: 'parquet', options: {} },
    schemaString: schema,
    partitionColumns: partitionColumnsOf(table),
    createdTime: before?.createdTime ?? Math.floor(now),
    configuration: { ...before?.configuration, [RETENTION]: retention },
  };
  return [...(before === undefined ? [{ protocol: protocolOf(state.timezone !== null) }] : []), { metaData }];
}
