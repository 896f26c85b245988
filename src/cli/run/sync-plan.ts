import { HOUR_MS } from '../../base/clock.ts';
import { formatCount, formatDuration } from '../../base/quantities.ts';
import { readFilterForPlace } from '../../erasure/suppression-list.ts';
import { isSnapshotDue } from '../../extract/profile-snapshot.ts';
import { cursorOf, includesToDateOf, logNotes, planRun, type RunPlan, toDateOf } from '../../extract/which-days.ts';
import { EXPORTS_PER_HOUR } from '../../service/export/quota-rules.ts';
import { checkColumnTypes } from '../../targets/refusals.ts';
import { isStateful } from '../../targets/targets.ts';
import { requirePlanKeys } from '../configuration.ts';
import type { Context } from '../context.ts';
import { readPinnedTypes } from '../pinned-types.ts';
import { loadOptions, storedState } from '../places.ts';
import type { PlanResult } from '../results.ts';
import { tableLines } from '../terminal/layout.ts';
import type { SyncInput } from './run.ts';

/** Shows what a sync would do, without a call to the service. A stream is planned as a first run. */
export async function planSync(
  input: Pick<SyncInput, 'place' | 'config' | 'daySelection' | 'schemaFile'>,
  context: Context,
) {
  const { place, daySelection, schemaFile } = input;
  const config = requirePlanKeys(input.config);
  const state = isStateful(place) ? await storedState(place) : undefined;
  checkColumnTypes(state, loadOptions(place, config, context, readPinnedTypes(schemaFile)));
  // A list that the sync would refuse is refused here, too.
  readFilterForPlace(config, state?.suppressionLength);
  const now = context.clock.now();
  const { exportState, receipts } = state?.events ?? {};
  const plan = planRun({ ...daySelection, settings: config, state: exportState, receipts, now });
  const [snapshot] = state?.user_profiles?.receipts.values() ?? [];
  const loadsProfiles = config.userProfiles && isStateful(place) && isSnapshotDue(snapshot, config, now);
  logNotes(plan, context.logger);
  const includesToDate = includesToDateOf(plan);
  const { waitMs, ...exports } = forecastOf(plan, config.maxConcurrentExports, loadsProfiles);
  const result: PlanResult = {
    v: 1,
    from_date: plan.days[0] ?? null,
    to_date: plan.days.at(-1) ?? null,
    days: plan.days.map((day) => ({
      from_date: day,
      to_date: toDateOf(day, includesToDate),
      read_again: plan.receipts.has(day),
    })),
    ...exports,
    earliest_end: new Date(now + waitMs).toISOString(),
    to_date_inclusive: includesToDate ?? null,
    gaps: plan.state?.gaps ?? [],
    cursor: cursorOf(plan),
  };
  return { result, lines: planLines(result, loadsProfiles, waitMs) };
}

/** What a plan costs if the documented quota is full. `waitMs`: how long the last export then waits for it at least. */
export function forecastOf(
  plan: Pick<RunPlan, 'days' | 'settings' | 'state'>,
  maxConcurrentExports: number,
  loadsProfiles: boolean,
) {
  const { days } = plan;
  const least = days.length + (loadsProfiles ? 1 : 0);
  // To find out the end of an export takes three more.
  const most = least + (includesToDateOf(plan) === undefined && days.length > 0 ? 3 : 0);
  return {
    exports_least: least,
    exports_most: most,
    exports_startable_now: Math.min(most, EXPORTS_PER_HOUR, maxConcurrentExports),
    waitMs: Math.max(0, Math.ceil(most / EXPORTS_PER_HOUR) - 1) * HOUR_MS,
  };
}

/** `loadsProfiles`: true if the sync also exports the user profiles. */
function planLines(plan: PlanResult, loadsProfiles: boolean, waitMs: number): string[] {
  const { days, exports_least: least, exports_most: most, to_date_inclusive: isIncluded } = plan;
  if (days.length === 0) {
    const profileLines = loadsProfiles ? ['One export: the user profiles.'] : [];
    return [`No day to read: the cursor is at ${plan.cursor}.`, ...profileLines];
  }
  const rows = days.map(({ from_date, read_again }, i) => [`${i + 1}`, from_date, read_again ? 'read again' : 'new']);
  const exportsText = `${least === most ? '' : `${least} to `}${formatCount(most, 'export')}`;
  const profilesText = loadsProfiles ? ', the user profiles included' : '';
  return [
    ...tableLines(['', 'day', ''], rows),
    '',
    `  ${formatCount(days.length, 'day')}, ${exportsText}${profilesText}; ${plan.exports_startable_now} may start at once.`,
    waitMs === 0
      ? '  None of them waits, unless others use the quota.'
      : `  The quota lets the last one start in ${formatDuration(waitMs)} at the earliest.`,
    isIncluded === null
      ? '  Whether to_date is included is not known yet: the run finds it out.'
      : `  to_date is ${isIncluded ? '' : 'not '}included.`,
  ];
}
