import { TYPES } from '../../../types/index.ts';
import type { ColumnType } from '../../../types/type.ts';
import type { Zone } from '../../../types/zone.ts';

/** A NULL of a column's type, as SQL. */
export function typedNull(type: ColumnType, zone: Zone | undefined): string {
  return `CAST(NULL AS ${TYPES[type].duckdb(zone !== undefined)})`;
}

/** A value in a column's own type: files keep the type that a query gives, and all files of a dataset have one. */
export function castTo(value: string, type: ColumnType, zone: Zone | undefined): string {
  return `CAST(${value} AS ${TYPES[type].duckdb(zone !== undefined)})`;
}
