import { randomUUID } from 'node:crypto';
import { SCALAR_TYPES, scalarOf } from '../../../cells/types/duckdb-types.ts';
import type { TableState } from '../../../table/place-state.ts';
import { EVENTS, type TableName } from '../../../table/tables.ts';
import { dayFolder, type FileLayout, PARTITION_COLUMN, tableColumnsOf } from '../file-layout.ts';

/** Characters that readers refuse in a column's name. */
const REFUSED_CHARACTERS = /[ ,;{}()\n\t=]/g;

export const DELTA_LAYOUT: FileLayout = {
  hasAllColumns: false,
  newStoragePath: (day, tableName) =>
    `${tableName === EVENTS.name ? dayFolder(day) : tableName}/part-${randomUUID()}.parquet`,
  // Before equal names are numbered.
  columnNameOf: (source) => source.replaceAll(REFUSED_CHARACTERS, '_'),
  // Not every reader knows a timestamp without a zone. So a table whose datetimes are instants has none.
  loadedAtType: (timezone) => (timezone === null ? 'TIMESTAMP' : 'TIMESTAMPTZ'),
};

/** Profiles have no partitions. */
export const partitionColumnsOf = (tableName: TableName): string[] =>
  tableName === EVENTS.name ? [PARTITION_COLUMN] : [];

/** The schema of the table with these columns, as the log writes it. */
export function schemaString(state: TableState, tableName: TableName): string {
  const fields = [...tableColumnsOf(DELTA_LAYOUT, state)].map(([name, type]) => {
    const { scalar, isList } = scalarOf(type);
    const { delta } = SCALAR_TYPES[scalar];
    return { name, type: isList ? { type: 'array', elementType: delta, containsNull: true } : delta };
  });
  const columns = [...fields, ...partitionColumnsOf(tableName).map((name) => ({ name, type: 'date' }))];
  return JSON.stringify({
    type: 'struct',
    fields: columns.map((field) => ({ ...field, nullable: true, metadata: {} })),
  });
}
