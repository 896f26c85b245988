import { randomUUID } from 'node:crypto';
import { SCALAR_TYPES, scalarOf } from '../../../cells/types/duckdb-types.ts';
import type { TableState } from '../../../table/place-state.ts';
import { EVENTS, type TableName } from '../../../table/tables.ts';
import { dayFolder, type FileLayout, fileColumns, PARTITION_COLUMN } from '../file-layout.ts';

/** Characters that readers refuse in a column's name. */
const REFUSED_CHARACTERS = /[ ,;{}()\n\t=]/g;

export const DELTA_LAYOUT: FileLayout = {
  hasAllColumns: false,
  newPath: (day, table) => `${table === EVENTS.name ? dayFolder(day) : table}/part-${randomUUID()}.parquet`,
  // Before equal names are numbered.
  columnNameOf: (source) => source.replaceAll(REFUSED_CHARACTERS, '_'),
  // Not every reader knows a timestamp without a zone. So a table whose datetimes are instants has none.
  loadedAtType: (timezone) => (timezone === null ? 'TIMESTAMP' : 'TIMESTAMPTZ'),
};

/** Profiles have no partitions. */
export const partitionColumnsOf = (table: TableName): string[] => (table === EVENTS.name ? [PARTITION_COLUMN] : []);

/** The schema of the table with these columns, as the log writes it. */
export function schemaString(state: TableState, table: TableName): string {
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
