import { randomUUID } from 'node:crypto';
import { DAY_MS } from '../../../base/clock.ts';
import { SCALAR_TYPES, scalarOf } from '../../../cells/types/duckdb-types.ts';
import type { TableState } from '../../../table/place-state.ts';
import { EVENTS, type Table } from '../../../table/tables.ts';
import { dayFolder, type FileLayout, fileColumns, PARTITION_COLUMN } from '../file-layout.ts';
import type { FilesOptions } from '../format.ts';
import type { MetaData } from './protocol/actions.ts';

/** Characters that readers refuse in a column's name. */
const REFUSED_CHARACTERS = /[ ,;{}()\n\t=]/g;

export const DELTA_LAYOUT: FileLayout = {
  hasAllColumns: false,
  newPath: (day, table) => `${table === EVENTS.name ? dayFolder(day) : table}/part-${randomUUID()}.parquet`,
  // Before equal names are numbered.
  columnName: (source) => source.replaceAll(REFUSED_CHARACTERS, '_'),
  // Not every reader knows a timestamp without a zone. So a table whose datetimes are instants has none.
  loadedAtType: (timezone) => (timezone === null ? 'TIMESTAMP' : 'TIMESTAMPTZ'),
};

/** Profiles have no partitions. */
export const partitionColumnsOf = (table: Table['name']): string[] => (table === EVENTS.name ? [PARTITION_COLUMN] : []);

/** The schema of the table with these columns, as the log writes it. */
export function schemaString(state: TableState, table: Table['name']): string {
  const fields = [...fileColumns(DELTA_LAYOUT, state)].map(([name, type]) => {
    const { scalar, isList } = scalarOf(type);
    const { delta } = SCALAR_TYPES[scalar];
    return { name, type: isList ? { type: 'array', elementType: delta, containsNull: true } : delta };
  });
  const columns = [...fields, ...partitionColumnsOf(table).map((name) => ({ name, type: 'date' }))];
  return JSON.stringify({
    type: 'struct',
    fields: columns.map((field) => ({ ...field, nullable: true, metadata: {} })),
  });
}

const RETENTION_SETTING = 'delta.deletedFileRetentionDuration';
/** Default time that files which left a table stay for its readers (ms). */
export const DEFAULT_RETENTION_MS = DAY_MS;

/** The configuration of a table with this retention (ms). */
export const retentionSetting = (retentionMs: number) => ({
  [RETENTION_SETTING]: `interval ${Math.ceil(retentionMs / 1_000)} seconds`,
});

/** The time that files which left a table stay for its readers (ms): of this load, else as its last load set it. */
export function retentionMsOf({ retentionMs }: FilesOptions, metaData: MetaData | undefined): number {
  if (retentionMs !== undefined) return retentionMs;
  const seconds = /^interval (\d{1,9}) seconds$/.exec(metaData?.configuration[RETENTION_SETTING] ?? '')?.[1];
  return seconds === undefined ? DEFAULT_RETENTION_MS : Number(seconds) * 1_000;
}
