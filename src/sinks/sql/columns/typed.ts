import { TYPES } from '../../../types/index.ts';
import type { ColumnType } from '../../../types/type.ts';
import type { Zone } from '../../../types/zone.ts';
import type { StoredColumn } from './stored.ts';

/** A column of the export that has a type, and so a place in every row. */
export type Typed = StoredColumn & { readonly type: ColumnType };

export const isTyped = <C extends StoredColumn>(column: C): column is C & { type: ColumnType } => column.type !== null;

/** The columns of the export that a table or file has, in their order. */
export function typedColumns<C extends StoredColumn>(columns: readonly C[]): (C & { type: ColumnType })[] {
  return columns.filter(isTyped);
}

/** A NULL of a column's type, as SQL. */
export function typedNull(type: ColumnType, zone: Zone | undefined): string {
  return `CAST(NULL AS ${TYPES[type].duckdb(zone !== undefined)})`;
}

/** A value in a column's own type: files keep the type that a query gives, and all files of a dataset have one. */
export function castTo(value: string, type: ColumnType, zone: Zone | undefined): string {
  return `CAST(${value} AS ${TYPES[type].duckdb(zone !== undefined)})`;
}
