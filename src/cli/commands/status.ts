import { formatSecond } from '../../base/clock.ts';
import { dayAt, formatDays } from '../../base/days.ts';
import { configError } from '../../base/errors.ts';
import { formatCount, withSeparators } from '../../base/quantities.ts';
import { daysUntilCursorIsLost } from '../../extract/calendar.ts';
import { isImplausible } from '../../extract/plausibility.ts';
import type { PlaceState } from '../../table/place-state.ts';
import { daysWithOtherFilters } from '../../table/place-warnings.ts';
import { countStoredRows, type StoredReceipt } from '../../table/receipts.ts';
import type { Place, StatefulTarget } from '../../targets/contract.ts';
import { STATEFUL_TARGETS } from '../../targets/targets.ts';
import { defineCommand } from '../command.ts';
import type { CommandConfig } from '../configuration.ts';
import { readPlaceAndConfig, storedState } from '../places.ts';
import type { Status } from '../results.ts';

export const command = defineCommand({
  targets: STATEFUL_TARGETS,
  examples: ['status duckdb events.duckdb', 'status delta s3://bucket/events --json'],
  docsPage: 'operations.md',
  async run(values, context) {
    const { config, place } = readPlaceAndConfig(values, STATEFUL_TARGETS, context);
    const status = await readStatus(place, config);
    return { result: status, lines: statusLines(status) };
  },
});

/** Reads what a place holds, without its rows. */
export async function readStatus(place: Place<StatefulTarget>, config: CommandConfig): Promise<Status> {
  const { target, address, clock } = place;
  const state = await storedState(place);
  if (state === undefined)
    throw configError(
      `${address} holds nothing yet: load it with sync ${target.name} ${address}. If it was loaded before: is the path right?`,
    );
  const { receipts, exportState, timezone } = state.events;
  const [snapshot] = state.user_profiles?.receipts.values() ?? [];
  const cursor = exportState?.from_date ?? null;
  const dayReceipts = [...receipts.values()];
  const daysWhere = (test: (receipt: StoredReceipt) => boolean) => dayReceipts.filter(test).map(({ day }) => day);
  const storedReceipts = dayReceipts.filter(({ pruned }) => pruned !== true);
  return {
    v: 1,
    target: target.name,
    place: address,
    cursor,
    first_day: storedReceipts[0]?.day ?? null,
    last_day: storedReceipts.at(-1)?.day ?? null,
    days: storedReceipts.length,
    changed: dayReceipts.map(({ day, changed_at }) => ({ day, changed_at })),
    rows: countStoredRows(storedReceipts),
    profiles: snapshot ? { rows: snapshot.rows_stored, as_of: snapshot.requested_at } : null,
    timezone,
    to_date_inclusive: exportState?.to_date_inclusive ?? null,
    open_days: daysWhere(({ is_over }) => is_over === false),
    gaps: exportState?.gaps ?? [],
    pruned_days: daysWhere(({ pruned }) => pruned === true),
    other_filters_days: daysWithOtherFilters(state.events),
    implausible_days: daysWhere(({ day }) => isImplausible(day, receipts)),
    days_until_loss: cursor === null ? null : daysUntilCursorIsLost(cursor, dayAt(clock.now()), config),
    last_run: lastRunOf(state),
  };
}

function lastRunOf({ lastRun }: PlaceState): Status['last_run'] {
  if (lastRun === undefined) return null;
  const { exitCode: exit, ...run } = lastRun;
  return { ...run, exit };
}

function statusLines(status: Status): string[] {
  const { place, days, rows, first_day, last_day, profiles, cursor, days_until_loss: daysLeft, last_run: run } = status;
  const span = first_day === null ? '' : ` from ${first_day} to ${last_day}`;
  const daysText = (label: string, names: readonly string[]) => names.length > 0 && `${label}: ${formatDays(names)}`;
  const lines = [
    `${place}: ${formatCount(rows, 'row')} in ${formatCount(days, 'day')}${span}`,
    profiles && `User profiles: ${withSeparators(profiles.rows)}, as of ${formatSecond(profiles.as_of)} UTC`,
    `Next sync begins at: ${cursor ?? 'the first day'}`,
    daysLeft !== null && daysLeft < 0 && 'The service no longer exports that day',
    daysLeft !== null && daysLeft >= 0 && `Days until the service drops that day: ${daysLeft}`,
    daysText('Loaded before they were over', status.open_days),
    daysText('Lost at the service', status.gaps),
    daysText('Removed from the place', status.pruned_days),
    daysText('Loaded with other filters or columns', status.other_filters_days),
    daysText('Far fewer rows than usual', status.implausible_days),
    run === null
      ? 'Last run: none is recorded'
      : `Last run: ${formatSecond(run.ended)} UTC, exit ${run.exit}, ` +
        `${formatCount(run.rows, 'row')} in ${formatCount(run.days, 'day')}${run.cause === null ? '' : `: ${run.cause}`}`,
  ];
  return lines.filter((line) => line !== false && line !== null);
}
