import { formatBytes, formatCount, formatDuration } from '../../base/quantities.ts';
import type { LoadResult } from '../../targets/load.ts';
import type { Progress } from '../terminal/progress.ts';

const BAR_COLUMNS = 12;

/** How far a run is at `now`. `waitingUntil`: the instant (ms) until which it sends nothing; undefined: it sends. */
export function progressOf(
  loadResult: LoadResult,
  { plannedDays, began, waitingUntil }: { plannedDays: number; began: number; waitingUntil: number | undefined },
  now: number,
): Progress {
  const { total, answeredExports, receivedBytes } = loadResult;
  const storedDays = total.daysWritten.length + total.daysUnchanged.length;
  const totalDays = Math.max(plannedDays, storedDays);
  const isWaiting = waitingUntil !== undefined;
  const elapsed = now - began;
  const daysToGo = totalDays - storedDays;
  // A narrow terminal cuts the line at its end.
  const parts = [
    `${storedDays} of ${formatCount(totalDays, 'day')} stored`,
    isWaiting && `waiting ${formatDuration(Math.max(0, waitingUntil - now))} for the service`,
    !isWaiting && storedDays > 0 && daysToGo > 0 && `${formatDuration((elapsed / storedDays) * daysToGo)} left`,
    `${formatCount(answeredExports, 'export')}, ${formatBytes(receivedBytes)}`,
    formatCount(total.rowsWritten, 'row'),
    elapsed > 0 && `${(receivedBytes / 1e3 / elapsed).toFixed(1)} MB/s`,
  ];
  const fullColumns = Math.round((storedDays / Math.max(1, totalDays)) * BAR_COLUMNS);
  const bar = '█'.repeat(fullColumns).padEnd(BAR_COLUMNS, '░');
  return { text: parts.filter((part) => part !== false).join(' · '), bar };
}
