import type { Day } from '../../base/days.ts';
import { codecOf } from '../../cells/types/column-types.ts';
import type { DuckDbColumn, DuckDbType } from '../../cells/types/duckdb-types.ts';
import { zoneOf } from '../../cells/types/zone.ts';
import type { TableState } from '../../table/place-state.ts';
import { EVENTS, type TableName, typedColumns } from '../../table/tables.ts';

export const PARTITION_COLUMN = 'event_date';

/** The columns that a file has, or may have: their types in it, by name. */
export type FileColumns = ReadonlyMap<string, DuckDbType>;

/** Where the files of a format are, and which columns they have. */
export interface FileLayout {
  /** True if all files have all columns, in the same order; else a file lacks columns without a value. */
  readonly hasAllColumns: boolean;
  /** The path of a new file, from the root of the storage. */
  newStoragePath(day: Day, tableName: TableName): string;
  /** Derives the name of a column from that in the export; absent: the same. */
  columnNameOf?(source: string): string;
  loadedAtType(timezone: string | null): DuckDbType;
}

/** True if a file has its columns as its table has them now. */
export const hasCurrentColumns = ({ hasAllColumns }: FileLayout, inFile: FileColumns, inTable: FileColumns): boolean =>
  (!hasAllColumns || inFile.size === inTable.size) && [...inFile].every(([name, type]) => inTable.get(name) === type);

/** The folder of a day, from the root of the storage. */
export const dayFolder = (day: Day): string => `${EVENTS.name}/${PARTITION_COLUMN}=${day}`;

/** The columns of this program that each file has. */
export const fileProgramColumns = ({ loadedAtType }: FileLayout, timezone: string | null): DuckDbColumn[] => [
  { name: '_key', type: 'VARCHAR' },
  { name: '_rescued', type: 'VARCHAR' },
  { name: '_loaded_at', type: loadedAtType(timezone) },
];

/** All columns that a file can have but its partition, in their order. */
export function tableColumnsOf(layout: FileLayout, { columns, timezone }: TableState): FileColumns {
  const zone = zoneOf(timezone);
  return new Map([
    ...fileProgramColumns(layout, timezone).map(({ name, type }) => [name, type] as const),
    ...typedColumns(columns).map(({ name, type }) => [name, codecOf(type, zone).duckdbType] as const),
  ]);
}
