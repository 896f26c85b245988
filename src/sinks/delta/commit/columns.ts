import { CORRECTION_DATETIME, DETAIL_LOG_ID, LOG_ID, SERVER_DATETIME } from '../../../schema/groups.ts';
import { isTyped, type StoredColumn } from '../../../table/columns.ts';
import { isRetyped, type PlannedColumn } from '../../../table/plan.ts';
import type { Zone } from '../../../types/zone.ts';
import { reshaped } from '../../sql/files/columns.ts';

const KEY_SOURCES: ReadonlySet<string> = new Set([DETAIL_LOG_ID, LOG_ID, SERVER_DATETIME, CORRECTION_DATETIME]);

/**
 * True for a column that every file of `events` has: what keys, dates and items are worked out from. The others are in a
 * file only where it may hold values of them, so that a column without any can change its type without a new file (S43).
 */
// Stryker disable next-line ConditionalExpression: a column that a file lacks is NULL to every reader
const isEverywhere = ({ group }: StoredColumn): boolean => group === 'system' || group === 'unified_id';

/** The columns that the files of a window have, and those it does not take and rescues, by their keys. */
export function columnsOfWindow(plan: readonly PlannedColumn[]): Map<string, PlannedColumn> {
  const there = plan.filter(
    (column) => column.isRefused || (column.type !== null && (column.readAs !== null || isEverywhere(column))),
  );
  return new Map(there.map((column) => [column.key, column]));
}

/** Of all columns those that a file has. */
export function columnsIn<C extends StoredColumn>(all: readonly C[], names: ReadonlySet<string>): C[] {
  return all.filter((column) => isTyped(column) && names.has(column.name));
}

/** True when a file holds a column whose type the plan changes. */
export function isRetypedIn(plan: readonly PlannedColumn[], names: ReadonlySet<string>): boolean {
  return plan.some((column) => isRetyped(column) && names.has(column.name));
}

/** The columns of an older file as they are after the plan: a select list. */
export function selectAfter(
  plan: readonly PlannedColumn[],
  names: ReadonlySet<string>,
  zone: Zone | undefined,
): string {
  return reshaped(
    // Stryker disable next-line ConditionalExpression: no older file has a column that is new
    plan.filter((column) => column.before !== null && names.has(column.name)),
    zone,
  );
}

/** What keys, events and replacing are worked out from: all that is read of files that do not change. */
export function keyColumns(columns: readonly StoredColumn[]): Set<string> {
  // Stryker disable next-line ConditionalExpression,MethodExpression: more columns than are needed may be read
  const ids = columns.filter((column) => column.occurrence === 1 && KEY_SOURCES.has(column.source));
  return new Set(['_key', '_dfinery_window', ...ids.map(({ name }) => name)]);
}

export function storedColumn(column: StoredColumn): StoredColumn {
  const { source, occurrence, name, itemName, group, type, evidence, position, firstShape } = column;
  return { source, occurrence, name, itemName, group, type, evidence, position, firstShape };
}
