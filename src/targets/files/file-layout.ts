import type { Day } from '../../base/days.ts';
import type { DuckDbType } from '../../cells/types/codec.ts';
import { codecOf } from '../../cells/types/column-types.ts';
import { zoneOf } from '../../cells/types/zone.ts';
import type { TableState } from '../../table/place-state.ts';
import { EVENTS, type Table, typedColumns } from '../../table/tables.ts';

export const PARTITION_COLUMN = 'event_date';

/** What decides the columns of a file. */
export type TableColumns = Pick<TableState, 'columns' | 'timezone'>;

/** The types of columns by their names. */
export type ColumnTypes = ReadonlyMap<string, DuckDbType>;

/** Where the files of a format are, and which columns they have. */
export interface FileLayout {
  /** True if all files have all columns, in the same order; else a file lacks columns without a value. */
  readonly hasAllColumns: boolean;
  /** The path of a new file, from the root of the storage. */
  newPath(day: Day, table: Table['name']): string;
  /** All columns that a file can have, in their order, with their types. */
  columnsOf(columns: TableColumns): ColumnTypes;
}

/** The folder of a day, from the root of the storage. */
export const dayFolder = (day: Day): string => `${EVENTS.name}/${PARTITION_COLUMN}=${day}`;

/** All columns that a file can have but its partition, in their order. `loadedAt`: the type of `_loaded_at`. */
export function parquetColumns({ columns, timezone }: TableColumns, loadedAt: DuckDbType = 'TIMESTAMP'): ColumnTypes {
  const zone = zoneOf(timezone);
  return new Map([
    ['_key', 'VARCHAR'],
    ['_rescued', 'VARCHAR'],
    ['_loaded_at', loadedAt],
    ...typedColumns(columns).map(({ name, type }) => [name, codecOf(type, zone).duckdbType] as const),
  ]);
}
