// What `status`, `verify` and a sync say of a place that is sound and yet not as one would expect.

import { type Day, formatDays } from '../base/days.ts';
import type { Logger } from '../base/log.ts';
import { hasOtherFilters } from '../extract/checked-day.ts';
import type { TableState } from './place-state.ts';

/** How to load these days again. */
export const syncAdvice = (days: readonly Day[]): string => `sync with --from ${days[0]} --to ${days[days.length - 1]}`;

/** Warns of days whose rows another program removed, if there are any. */
export function warnOfRemovedDays(logger: Logger, days: readonly Day[]): void {
  if (days.length === 0) return;
  const message =
    `Another program removed all rows of ${formatDays(days)}: they count as pruned. To load what the service still has ` +
    `of them: ${syncAdvice(days)}.`;
  logger.warn('days.removed', message, { days: days.length });
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
  const warningOf = (what: string, days: readonly Day[]) =>
    days.length === 0 ? [] : [`${what}: ${formatDays(days)}.`];
  const otherFiltersDays = daysWithOtherFilters(state);
  return [...warningOf('pruned', prunedDays), ...warningOf('loaded with other filters or columns', otherFiltersDays)];
}
