import { EXIT } from '../../base/errors.ts';
import { formatBytes, formatCount, formatDuration, withSeparators } from '../../base/quantities.ts';
import { cursorOf, type RunPlan } from '../../extract/which-days.ts';
import type { Place } from '../../targets/contract.ts';
import type { LoadResult } from '../../targets/load.ts';
import { isStdout } from '../../targets/targets.ts';
import type { Summary } from '../results.ts';

/** `keepsCursor`: false for a stream. */
export function summaryOf(
  plan: RunPlan,
  loadResult: LoadResult,
  { seconds, keepsCursor }: { readonly seconds: number; readonly keepsCursor: boolean },
): Summary {
  const { total, answeredExports, receivedBytes } = loadResult;
  return {
    v: 1,
    rows: total.rowsWritten,
    rows_new: Math.max(0, total.rowsGained),
    days: total.daysWritten.length + total.daysUnchanged.length,
    days_unchanged: total.daysUnchanged.length,
    days_changed: total.daysChanged,
    exports: answeredExports,
    bytes: receivedBytes,
    seconds,
    from_date: plan.days[0] ?? null,
    next_from_date: keepsCursor ? (loadResult.cursor ?? cursorOf(plan)) : null,
    to_date_inclusive: loadResult.includesToDate ?? null,
    columns_added: total.columnsAdded,
    columns_widened: total.columnsWidened,
    rescued_cells: [...total.rescuedCells.values()].reduce((sum, cells) => sum + cells, 0),
    suppressed_rows: loadResult.suppressedRows,
    profiles: loadResult.profileCount ?? null,
    gaps: loadResult.gaps,
    open_days: loadResult.openDays,
    implausible_days: loadResult.implausibleDays,
    exit: EXIT.done,
    error: null,
  };
}

export function describeSummary(summary: Summary, place: Pick<Place, 'target' | 'address'>): string {
  const placeText = isStdout(place) ? 'the stream' : place.address;
  const daysText = summary.days === 0 ? nothingStoredText(summary, placeText) : storedText(summary, placeText);
  return summary.profiles === null ? daysText : `${daysText} ${formatCount(summary.profiles, 'user profile')} stored.`;
}

function nothingStoredText({ exit, profiles, from_date, next_from_date }: Summary, placeText: string): string {
  // A run that failed at once may know no cursor.
  if (exit !== EXIT.done && profiles === null) return `Nothing was committed to ${placeText}.`;
  const cursorText = next_from_date === null ? '' : `; the cursor stays at ${next_from_date}`;
  if (from_date === null) return `Nothing new for ${placeText}${cursorText}.`;
  return `${profiles === null ? 'Nothing' : 'No day'} was committed to ${placeText}${cursorText}.`;
}

function storedText(summary: Summary, placeText: string): string {
  const { rows, rows_new: newRows, days, days_unchanged: unchangedDays, next_from_date: cursor } = summary;
  const writtenDays = days - unchangedDays;
  const cost = `(${formatBytes(summary.bytes)}, ${formatCount(summary.exports, 'export')})`;
  const duration = formatDuration(summary.seconds * 1_000);
  const lead =
    writtenDays === 0
      ? `Nothing changed in ${formatCount(days, 'day')} of ${placeText} ${cost}, read in ${duration}`
      : `${formatCount(rows, 'row')} in ${formatCount(writtenDays, 'day')} ${cost} committed to ${placeText} in ${duration}`;
  const countText = (n: number, noun: string, suffix = '') => n > 0 && `${formatCount(n, noun)}${suffix}`;
  const extras = [
    writtenDays > 0 && countText(unchangedDays, 'day', ' unchanged'),
    newRows < rows && `${withSeparators(newRows)} of them new, ${withSeparators(rows - newRows)} replaced`,
    countText(summary.columns_added.length, 'new column'),
    countText(summary.columns_widened.length, 'column', ' of another type'),
    countText(summary.rescued_cells, 'cell', ' rescued'),
    countText(summary.suppressed_rows, 'row', ' of forgotten people held out'),
    countText(summary.gaps.length, 'day', ' lost at the service'),
    countText(summary.implausible_days.length, 'day', ' with far fewer rows than usual'),
    cursor !== null && `the cursor is at ${cursor}`,
  ];
  return `${[lead, ...extras.filter((extra) => extra !== false)].join('; ')}.`;
}
