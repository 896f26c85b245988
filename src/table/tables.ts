import { type ColumnGroup, DETAIL_LOG_ID, EXTERNAL_ID, KNOWN_COLUMNS, UNIFIED_ID } from '../cells/header.ts';
import type { ColumnType } from '../cells/types/column-types.ts';
import type { DuckDbColumn } from '../cells/types/duckdb-types.ts';
import type { CellForms } from '../cells/types/forms.ts';

/** A column of the export as a target stores it. */
export interface StoredColumn {
  /** Its name in the export; the event name's is always `df_event_name`. */
  readonly source: string;
  /** 1 for the first column of that name in a header, 2, 3… for further ones. */
  readonly occurrence: number;
  /** Its name in the table, which never changes. */
  readonly name: string;
  /** Its name in `event_items`; null for columns of other groups. */
  readonly itemName: string | null;
  readonly group: ColumnGroup;
  /** Its type; null while it has no table column. */
  readonly type: ColumnType | null;
  /** Union of the forms of all committed days. */
  readonly forms: CellForms;
  /** Its place among the columns of the table, from 0, also while it has no type. */
  readonly position: number;
}

/** A column that has a type, and so a column in the table. */
export type TypedColumn<C extends StoredColumn = StoredColumn> = C & { readonly type: ColumnType };

export const typedColumns = <C extends StoredColumn>(columns: readonly C[]): TypedColumn<C>[] =>
  columns.filter((column): column is TypedColumn<C> => column.type !== null);

/** The first column of a name in the export. */
export const findColumn = <C extends StoredColumn>(columns: readonly C[], source: string): C | undefined =>
  columns.find((column) => column.source === source && column.occurrence === 1);

/** The name of a column's cells in `_rescued`: that in the export, or for a repeated name that in the table. */
export const rescueKey = ({ occurrence, source, name }: StoredColumn): string => (occurrence === 1 ? source : name);

/** A column before its first cell. */
export const newColumn = (
  column: Partial<StoredColumn> & Pick<StoredColumn, 'source' | 'group' | 'position'>,
): StoredColumn => ({ occurrence: 1, name: column.source, itemName: null, type: null, forms: 0, ...column });

/** The program's columns of `events`, with their types. */
const PROGRAM_COLUMNS = [
  { name: '_key', type: 'VARCHAR' },
  { name: 'event_date', type: 'DATE' },
  { name: '_rescued', type: 'VARCHAR' },
  { name: '_loaded_at', type: 'TIMESTAMP' },
] as const satisfies readonly DuckDbColumn[];
export type ProgramColumn = (typeof PROGRAM_COLUMNS)[number];

export const isItemGroup = (group: ColumnGroup): boolean => group === 'standard_item' || group === 'custom_item';

export type TableName = 'events' | 'user_profiles';

export interface Table {
  readonly name: TableName;
  /** False: a commit replaces days. True: the table holds one download, which the next replaces whole. */
  readonly isSnapshot: boolean;
  /** The column of the export whose cells are the keys of rows. */
  readonly idColumn: string;
  readonly programColumns: readonly ProgramColumn[];
  /** The columns that it has from the start. */
  readonly initialColumns: readonly StoredColumn[];
}

export const EVENTS: Table = {
  name: 'events',
  isSnapshot: false,
  idColumn: DETAIL_LOG_ID,
  programColumns: PROGRAM_COLUMNS,
  // Every export has them.
  initialColumns: [...KNOWN_COLUMNS.values()]
    .filter(({ required }) => required)
    .map(({ name, group, type }, position) => newColumn({ source: name, group, type, position })),
};

export const USER_PROFILES: Table = {
  name: 'user_profiles',
  isSnapshot: true,
  idColumn: UNIFIED_ID,
  programColumns: PROGRAM_COLUMNS.filter(({ name }) => name !== 'event_date'),
  initialColumns: [
    newColumn({ source: UNIFIED_ID, group: 'unified_id', type: 'string', position: 0 }),
    newColumn({ source: EXTERNAL_ID, group: 'custom', type: 'string', position: 1 }),
  ],
};

/** The tables of a place, events first. */
export const TABLES: readonly Table[] = [EVENTS, USER_PROFILES];
export type ByTable<T> = Readonly<Record<TableName, T>>;
