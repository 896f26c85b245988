import { TYPES } from '../../types/index.ts';
import type { ColumnType } from '../../types/type.ts';
import type { Zone } from '../../types/zone.ts';
import { type Change, isTyped, rescuedAfter, type Typed, valueAfter } from '../duckdb/alter.ts';
import type { StoredColumn } from '../duckdb/columns.ts';
import type { PlannedColumn } from '../duckdb/plan.ts';
import { identifier } from '../duckdb/sql.ts';

/** The columns of every `events` file before those of the export, as SQL names. */
export const OWN_COLUMNS = ['_key', '_dfinery_window', '_rescued'] as const;

/** The columns of the export that the files have, in their order. */
export function typedColumns(columns: readonly StoredColumn[]): Typed[] {
  return columns.filter(isTyped);
}

/** All columns of an `events` file, in order, as SQL names. */
export function eventColumns(columns: readonly StoredColumn[]): string {
  return [...OWN_COLUMNS, ...typedColumns(columns).map((column) => identifier(column.name))].join(', ');
}

/** A NULL of a column's type. */
export function nothing(type: ColumnType, zone: Zone | undefined): string {
  return `CAST(NULL AS ${TYPES[type].duckdb(zone !== undefined)})`;
}

/** A value that has a column's type whatever it was: a file keeps what it is given, and one schema is all files'. */
export function exactly(value: string, type: ColumnType, zone: Zone | undefined): string {
  return `CAST(${value} AS ${TYPES[type].duckdb(zone !== undefined)})`;
}

/** True when the files written so far lack a column or have one of another type. */
export function isReshaped(plan: readonly PlannedColumn[]): boolean {
  return plan.some((column) => column.type !== column.before);
}

/** The columns of an older `events` file as they are after the plan: a select list. */
export function reshaped(plan: readonly PlannedColumn[], zone: Zone | undefined): string {
  const changed = plan.filter((c): c is Change => c.before !== null && c.type !== null && c.type !== c.before);
  const changes = new Map(changed.map((column) => [column.name, column]));
  const values = plan.filter(isTyped).map((column) => {
    const name = identifier(column.name);
    const change = changes.get(column.name);
    if (column.before === null) return `${nothing(column.type, zone)} AS ${name}`;
    return change === undefined ? name : `${exactly(valueAfter(change, zone), column.type, zone)} AS ${name}`;
  });
  const rescued = rescuedAfter(changed, zone);
  return ['_key', '_dfinery_window', `CAST(${rescued} AS VARCHAR) AS _rescued`, ...values].join(', ');
}
