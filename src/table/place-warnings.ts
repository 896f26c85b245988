// What `status`, `verify` and a sync say of a place that is sound and yet not as one would expect.

import { addDays, type Day, daysOf, formatDays } from '../base/days.ts';
import type { Logger } from '../base/log.ts';
import { hasOtherFilters } from '../extract/checked-day.ts';
import { isComplete } from '../extract/export-state.ts';
import type { TableState } from './place-state.ts';

/** How to load these days again. */
export const syncAdvice = (days: readonly Day[]): string => `sync with --from ${days[0]} --to ${days[days.length - 1]}`;

/** Warns of days whose rows another program removed, and of days that no sync reads again. */
export function warnOfAbsentDays(logger: Logger, removedDays: readonly Day[], events: TableState | undefined): void {
  if (removedDays.length > 0) {
    const message =
      `Another program removed all rows of ${formatDays(removedDays)}: they count as pruned. To load what the service ` +
      `still has of them: ${syncAdvice(removedDays)}.`;
    logger.warn('days.removed', message, { days: removedDays.length });
  }
  const missingDays = missingDaysMessage(events);
  if (missingDays !== undefined) logger.warn('days.missing', missingDays);
}

/**
 * Names the days from the start to the cursor that are neither loaded nor gaps; undefined if there are none. DuckDB reads
 * the write-ahead log of a newer file into an older one, and so moves its cursor over days that it lacks.
 */
export function missingDaysMessage(events: TableState | undefined): string | undefined {
  const { start_date, from_date, gaps } = events?.exportState ?? {};
  if (events === undefined || start_date === undefined || from_date === undefined) return undefined;
  const gapDays = new Set(gaps);
  const daysBeforeCursor = daysOf(start_date, addDays(from_date, -1));
  const missingDays = daysBeforeCursor.filter((day) => !isComplete(day, events.receipts, gapDays));
  if (missingDays.length === 0) return undefined;
  return (
    `The cursor is after ${formatDays(missingDays)}, which the place lacks: a part of it is older than the rest. To load ` +
    `what the service still has: ${syncAdvice(missingDays)}. Load any other day from a file.`
  );
}

/** Days that keep rows of other filters, dropped or hashed columns than those of the last run. */
export function daysWithOtherFilters({ receipts, exportState }: TableState): Day[] {
  const filters = exportState?.filters;
  if (filters === undefined) return [];
  return [...receipts.values()]
    .filter((receipt) => receipt.pruned !== true && hasOtherFilters(receipt, filters))
    .map(({ day }) => day);
}

/** Warnings about days that are not as the last run would have loaded them. */
export function dayWarnings(state: TableState): string[] {
  const prunedDays = [...state.receipts.values()].filter((receipt) => receipt.pruned === true).map(({ day }) => day);
  const otherFiltersDays = daysWithOtherFilters(state);
  const warnings: string[] = [];
  if (prunedDays.length > 0) warnings.push(`pruned: ${formatDays(prunedDays)}.`);
  if (otherFiltersDays.length > 0)
    warnings.push(`loaded with other filters or columns: ${formatDays(otherFiltersDays)}.`);
  return warnings;
}
