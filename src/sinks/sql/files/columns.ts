import { isTyped, type StoredColumn, typedColumns } from '../../../table/columns.ts';
import { isRetyped, type PlannedColumn } from '../../../table/plan.ts';
import type { Zone } from '../../../types/zone.ts';
import { rescuedAfter, valueAfter } from '../columns/retype.ts';
import { castTo, typedNull } from '../columns/typed.ts';
import { identifier } from '../engine/quote.ts';

/** The columns of every `events` file before those of the export, as SQL names. */
const OWN_COLUMNS = ['_key', '_dfinery_window', '_rescued'] as const;

/** All columns of an `events` file, in order, as SQL names. */
export function eventColumns(columns: readonly StoredColumn[]): string {
  return [...OWN_COLUMNS, ...typedColumns(columns).map((column) => identifier(column.name))].join(', ');
}

/** True when the files written so far lack a column or have one of another type. */
export function isReshaped(plan: readonly PlannedColumn[]): boolean {
  return plan.some((column) => column.type !== column.before);
}

/** The columns of an older `events` file as they are after the plan: a select list. */
export function reshaped(plan: readonly PlannedColumn[], zone: Zone | undefined): string {
  const changed = plan.filter(isRetyped);
  const changes = new Map(changed.map((column) => [column.name, column]));
  const values = plan.filter(isTyped).map((column) => {
    const name = identifier(column.name);
    const change = changes.get(column.name);
    if (column.before === null) return `${typedNull(column.type, zone)} AS ${name}`;
    return change === undefined ? name : `${castTo(valueAfter(change, zone), column.type, zone)} AS ${name}`;
  });
  const rescued = rescuedAfter(changed, zone);
  return ['_key', '_dfinery_window', `CAST(${rescued} AS VARCHAR) AS _rescued`, ...values].join(', ');
}
