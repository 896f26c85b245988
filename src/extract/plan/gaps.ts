import { addDays, type Day, daysBetween } from '../../base/days.ts';
import { configError, EXIT, type UserError } from '../../base/errors.ts';
import { plainCount } from '../../base/quantities.ts';

/** A warning for the user, given before anything is sent. */
export interface PlanWarning {
  readonly event: string;
  readonly message: string;
}

/** Warn when the cursor is at most this many days from the oldest day that can be exported. */
const RETENTION_WARNING_DAYS = 7;
const NAMED_DAYS = 40;

/** Formats days for a message: `2026-01-01`, `2026-01-01 to 2026-01-03`, `2026-01-01, 2026-01-04`. */
export function nameDays(days: readonly Day[]): string {
  const runs: string[] = [];
  for (let i = 0; i < days.length; i++) {
    const first = days[i];
    while (i + 1 < days.length && days[i + 1] === addDays(days[i], 1)) i++;
    runs.push(first === days[i] ? first : `${first} to ${days[i]}`);
  }
  if (runs.length <= NAMED_DAYS) return runs.join(', ');
  return `${runs.slice(0, NAMED_DAYS).join(', ')} and ${runs.length - NAMED_DAYS} more`;
}

/** The failure for lost days under `on_gap: fail` (exit 4). `stored`: windows before them are committed. */
export function gapError(days: readonly Day[], stored = false): UserError {
  return configError(
    `${plainCount(days.length, 'day')} can no longer be exported and would be lost: ${nameDays(days)}. ` +
      `${stored ? 'What was stored before them is complete' : 'Nothing was changed'}; ` +
      'set on_gap to warn to record the gap and go on from the oldest day there is.',
    { exitCode: EXIT.lost },
  );
}

export const gapWarning = (days: readonly Day[]): PlanWarning => ({
  event: 'plan.gap',
  message:
    `${plainCount(days.length, 'day')} can no longer be exported, by this machine's clock: ${nameDays(days)}. The service is ` +
    'asked for the first of them, and decides.',
});

export const clampWarning = (wanted: Day, first: Day): PlanWarning => ({
  event: 'plan.clamped',
  message: `Days before ${first} can no longer be exported: reading from ${first} instead of ${wanted}.`,
});

export function retentionLimitWarnings(cursor: Day, last: Day, oldest: Day): PlanWarning[] {
  const left = daysBetween(oldest, cursor);
  if (left > RETENTION_WARNING_DAYS || cursor > last) return [];
  const when = left <= 0 ? 'today' : `in ${plainCount(left, 'day')}`;
  return [
    {
      event: 'plan.retention_limit',
      message: `${cursor}, the first day not yet complete, falls out of what the service exports ${when}: let this run finish.`,
    },
  ];
}
