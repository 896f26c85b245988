import { randomUUID } from 'node:crypto';
import validStats from '../../../../schemas/delta-log.stats.validator';
import validNote from '../../../../schemas/files-state.note.validator';
import type { Day } from '../../../base/days.ts';
import { VERSION } from '../../../base/version.ts';
import type { PlaceState, TableState } from '../../../table/place-state.ts';
import { EVENTS, type Table, typedColumns } from '../../../table/tables.ts';
import type { Change, NewFiles } from '../format.ts';
import type { DayFile, NewFile } from '../local-files.ts';
import { type ColumnTypes, PARTITION_COLUMN } from '../parquet-file.ts';
import { checked, damagedError, parseJson } from '../stored-state.ts';
import { stateActions } from './delta-state.ts';
import { type Action, type Add, dayOfFile, type MetaData } from './protocol/entry.ts';
import type { Snapshot } from './protocol/snapshot.ts';
import { partitionColumnsOf, protocolOf, schemaString } from './schema.ts';
import { DEFAULT_RETENTION_MS } from './vacuum.ts';

// The entry of a commit: what it says of a change, and how a file of it is read again.

/** The operation that the history of the table shows for a change. */
const OPERATIONS = { load: 'WRITE', purge: 'DELETE', prune: 'DELETE' } as const;
const RETENTION = 'delta.deletedFileRetentionDuration';
const SECONDS = /^interval (\d{1,9}) seconds$/;

/** The time that files which left a table stay for its readers (ms), as its last load set it. */
export function retentionMsOf(metaData: MetaData | undefined): number {
  const seconds = SECONDS.exec(metaData?.configuration[RETENTION] ?? '')?.[1];
  return seconds === undefined ? DEFAULT_RETENTION_MS : Number(seconds) * 1_000;
}

/** A change of one table, and the state after it. */
export interface TableChange extends Pick<Change, 'kind' | 'state'> {
  readonly files: NewFiles;
}

export const addedIn = (files: NewFiles): NewFile[] => [...files.values()].filter((file) => file !== undefined);

/**
 * The actions of the log entry that makes a change of the latest snapshot. `leaving`: paths of live files that leave the
 * table. `now`: the time of the commit (ms since 1970).
 */
export function commitActions(
  snapshot: Snapshot,
  { kind, files, state }: TableChange,
  leaving: ReadonlySet<string>,
  now: number,
  retentionMs: number,
): Action[] {
  const { table } = snapshot;
  const removedAdds = [...snapshot.files].flatMap(([path, add]) => (leaving.has(path) ? [add] : []));
  const commitInfo = {
    timestamp: Math.floor(now),
    operation: OPERATIONS[kind],
    operationParameters: { days: String(files.size) },
    readVersion: snapshot.version,
    isBlindAppend: false,
    engineInfo: `dfinery-elt/${VERSION}`,
    txnId: randomUUID(),
  };
  return [
    { commitInfo },
    ...tableActions(snapshot, state, now, retentionMs),
    ...stateActions(snapshot.domains, state),
    ...removedAdds.map((add) => removeOf(add, now)),
    ...addedIn(files).map((file) => addOf(file, state, now, table)),
  ];
}

/** The actions that make the table, or change its columns; none if nothing changes. */
function tableActions(
  { table, metaData: before }: Snapshot,
  state: PlaceState,
  now: number,
  retentionMs: number,
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

/** The tag of this program on the files of the log. */
const FILE_TAG = 'dfinery';

interface Stats {
  readonly numRecords: number;
  readonly nullCount: Readonly<Record<string, number>>;
}

/** A table whose files are read from a log. */
interface FilesTable {
  readonly name: Table['name'];
  readonly columns: ColumnTypes;
  /** The day of a file of profiles, since these have no partitions. */
  readonly receiptDay: Day | undefined;
}

/** A live file. Throws a configuration failure for one that another program wrote. `where`: the address of the file. */
export function dayFileOf(path: string, add: Add, table: FilesTable, where: string): DayFile {
  const { [PARTITION_COLUMN]: partition } = add.partitionValues;
  const day = table.name === EVENTS.name ? partition : table.receiptDay;
  const note = add.tags?.[FILE_TAG];
  if (note == null || add.stats == null || day == null || (partition ?? undefined) !== dayOfFile(path)) {
    throw damagedError(where, 'another program wrote it into the table');
  }
  const { sha256 } = checked<{ sha256: string }>(validNote, parseJson(note, where), where);
  const { numRecords, nullCount } = checked<Stats>(validStats, parseJson(add.stats, where), where);
  const columns = new Map([...table.columns].filter(([name]) => name in nullCount));
  return { table: table.name, day, path, rows: numRecords, bytes: add.size, sha256, columns };
}

function addOf(file: NewFile, state: TableState, now: number, table: Table['name']): Action {
  return {
    add: {
      path: file.path.slice(`${table}/`.length),
      partitionValues: table === EVENTS.name ? { [PARTITION_COLUMN]: file.day } : {},
      size: file.bytes,
      modificationTime: Math.floor(now),
      dataChange: true,
      stats: statsOf(file, state),
      tags: { [FILE_TAG]: JSON.stringify({ sha256: file.sha256 }) },
    },
  };
}

const removeOf = (add: Add, now: number): Action => ({
  remove: {
    path: add.path,
    deletionTimestamp: Math.floor(now),
    dataChange: true,
    extendedFileMetadata: true,
    partitionValues: add.partitionValues,
    size: add.size,
    tags: add.tags ?? {},
  },
});

/**
 * The number of rows, and for each column those without a value. Only system datetimes have least and greatest values.
 * Those of any other column would keep a person's value in the log.
 */
function statsOf({ rows, statistics }: NewFile, { columns, timezone }: TableState): string {
  const datetimeColumns = typedColumns(columns).filter(({ group, type }) => group === 'system' && type === 'datetime');
  const rangeOf = (which: 'least' | 'greatest') =>
    Object.fromEntries(
      datetimeColumns.flatMap(({ name }) => {
        const text = instant(statistics.get(name)?.[which] ?? '', timezone === null ? '' : 'Z');
        return text === undefined ? [] : [[name, text]];
      }),
    );
  const nullCount = Object.fromEntries([...statistics].map(([name, { nulls }]) => [name, nulls]));
  return JSON.stringify({
    numRecords: rows,
    minValues: rangeOf('least'),
    maxValues: rangeOf('greatest'),
    nullCount,
  });
}

const INSTANT = /^(\d{4}-\d{2}-\d{2}) (\d{2}:\d{2}:\d{2})(?:\.(\d{1,6}))?(?:\+00)?$/;

/** An instant with milliseconds, as readers expect it; undefined for one with microseconds, which would be cut. */
function instant(text: string, zone: string): string | undefined {
  const match = INSTANT.exec(text);
  if (match === null) return undefined;
  const [, date, time, fraction = ''] = match;
  const digits = fraction.padEnd(6, '0');
  return digits.endsWith('000') ? `${date}T${time}.${digits.slice(0, 3)}${zone}` : undefined;
}
