// This folder: the state of a place (columns, receipts, cursor, column changes), and what a batch of days makes of it.
// `batch.ts` is the way in, `column-plan.ts` decides types, `names.ts` names. Pure: no DuckDB, no disk.

import type { CellForms } from '../cells/types/forms.ts';
import { type ColumnGroup, KNOWN_COLUMNS } from '../cells/types/known-columns.ts';
import type { ColumnType } from '../cells/types/type.ts';

/** A column of the export as a target stores it. */
export interface StoredColumn {
  /** Its name in the export; the event name's is always `df_event_name`. */
  readonly source: string;
  /** 1 for the first column of that name in a header, 2, 3… for further ones. */
  readonly occurrence: number;
  /** Its name in `events`, which never changes. */
  readonly name: string;
  /** Its name in `event_items`; null for columns of other groups. */
  readonly itemName: string | null;
  readonly group: ColumnGroup;
  /** Its type; null while it has no table column. */
  readonly type: ColumnType | null;
  /** Union of the forms of all committed days. */
  readonly forms: CellForms;
  readonly position: number;
  /** Shape of the first cell seen. */
  readonly firstShape: string | null;
}

/** A column that has a type, and so a value in every row. */
export type Typed<C extends StoredColumn = StoredColumn> = C & { readonly type: ColumnType };

export const isTyped = <C extends StoredColumn>(column: C): column is Typed<C> => column.type !== null;

export function typedColumns<C extends StoredColumn>(columns: readonly C[]): Typed<C>[] {
  return columns.filter(isTyped);
}

/** The columns that every export has: those of a new target. */
export const FIRST_COLUMNS: readonly StoredColumn[] = [...KNOWN_COLUMNS.values()]
  .filter((column) => column.required)
  .map((column, position) => ({
    source: column.name,
    occurrence: 1,
    name: column.name,
    itemName: null,
    group: column.group,
    type: column.type,
    forms: 0,
    position,
    firstShape: null,
  }));

/** Copies a column without the fields that only a plan has. */
export function storedColumn(column: StoredColumn): StoredColumn {
  const { source, occurrence, name, itemName, group, type, forms, position, firstShape } = column;
  return { source, occurrence, name, itemName, group, type, forms, position, firstShape };
}

export const isItem = (group: ColumnGroup): boolean => group === 'standard_item' || group === 'custom_item';
