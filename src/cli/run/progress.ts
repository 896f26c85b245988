import { formatDuration } from '../../base/durations.ts';
import { count, formatBytes } from '../../base/quantities.ts';
import type { LoadCounts } from '../../targets/load.ts';
import type { Progress } from '../progress.ts';

const LINE_EVERY_MS = 5_000;
/** A wait for the service may last an hour. */
const WAITING_LINE_EVERY_MS = 60_000;
const BAR_COLUMNS = 12;

/** How far a run is at `now`. `waitingUntil`: the instant (ms) until which it sends nothing; undefined: it sends. */
export function progressOf(
  counts: LoadCounts,
  { plannedDays, began, waitingUntil }: { plannedDays: number; began: number; waitingUntil: number | undefined },
  now: number,
): Progress {
  const { stored, exports, bytes } = counts;
  const days = stored.days.length + stored.daysUnchanged.length;
  const planned = Math.max(plannedDays, days);
  const isWaiting = waitingUntil !== undefined;
  const elapsed = now - began;
  const daysToGo = planned - days;
  // A narrow terminal cuts the line at its end.
  const parts = [
    `${days} of ${count(planned, 'day')} stored`,
    isWaiting && `waiting ${formatDuration(Math.max(0, waitingUntil - now))} for the service`,
    !isWaiting && days > 0 && daysToGo > 0 && `${formatDuration((elapsed / days) * daysToGo)} left`,
    `${count(exports, 'export')}, ${formatBytes(bytes)}`,
    count(stored.rows, 'row'),
    elapsed > 0 && `${(bytes / 1e3 / elapsed).toFixed(1)} MB/s`,
  ];
  return {
    text: parts.filter((part) => part !== false).join(' · '),
    bar: barOf(days, exports, planned),
    lineEveryMs: isWaiting ? WAITING_LINE_EVERY_MS : LINE_EVERY_MS,
  };
}

/** Full for days that are stored, half for those that are requested. */
function barOf(days: number, exports: number, planned: number): string {
  const columns = (part: number) => Math.round((Math.min(part, planned) / Math.max(1, planned)) * BAR_COLUMNS);
  const stored = columns(days);
  const asked = Math.max(stored, columns(exports));
  const bar = '█'.repeat(stored) + '▒'.repeat(asked - stored) + '░'.repeat(BAR_COLUMNS - asked);
  return asked === stored ? bar : `${bar} ▒ requested ·`;
}
