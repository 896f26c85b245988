// This folder: which days a run reads. Pure functions of state, receipts, configuration and time.

import { addDays, type Day, dayAt, daysOf, earlierOf, laterOf, nameDays } from '../../base/days.ts';
import { HOUR_MS } from '../../base/durations.ts';
import { configError } from '../../base/errors.ts';
import type { SourceConfig } from '../../config/source.ts';
import type { Filters } from '../../service/export/protocol.ts';
import {
  filtersOf,
  type HashedColumns,
  hashedColumns,
  hashesOf,
  type RequestHashes,
  type RequestSettings,
} from '../export-request.ts';
import { checkState, isComplete, isEndIncluded, isUnread, parseState } from '../export-state.ts';
import {
  type ExportState,
  hasOtherFilters,
  type PriorLoads,
  type PriorReceipt,
  type PriorReceipts,
} from '../receipt.ts';
import { daysLeftOf, lastDayOver, lastDayOverFor, latestToday, oldestDay, SOON_DAYS, todayIn } from './calendar.ts';
import { doubtfulDays } from './doubtful-days.ts';

export type PlanSettings = RequestSettings &
  Pick<
    SourceConfig,
    'startDate' | 'endDate' | 'timezone' | 'lookbackDays' | 'settleHours' | 'toDateInclusive' | 'historyDays' | 'onGap'
  >;

export interface PlanInput {
  readonly settings: PlanSettings;
  /** Plain append: a row cannot be taken back, so only days over for `settleHours` are read, each once. Default false. */
  readonly appends?: boolean | undefined;
  /** The exact days to read, both included, whatever the cursor is (`--from`, `--to`). */
  readonly from?: Day | undefined;
  readonly to?: Day | undefined;
  readonly fullRefresh?: boolean | undefined;
  readonly prior: PriorLoads;
  /** This machine's time (ms since 1970). */
  readonly now: number;
}

/** A warning for the user, given before anything is sent. */
interface PlanWarning {
  readonly event: string;
  readonly message: string;
}

/** The decisions of a run, made before the first request. */
export interface Plan extends Pick<PlanSettings, 'historyDays' | 'onGap'> {
  readonly filters: Filters;
  readonly hashes: RequestHashes;
  readonly hashing: HashedColumns;
  readonly appends: boolean;
  /** The state before the run; undefined before the first commit. */
  readonly state: ExportState | undefined;
  /** The receipts before the run. */
  readonly receipts: PriorReceipts;
  /** The days to read, in order. */
  readonly days: readonly Day[];
  /** Those of them that are read again: they are empty, implausible, or of other filters. */
  readonly readAgain: readonly Day[];
  /** The oldest day that is read for late events alone; undefined: none is. */
  readonly lookedBackTo: Day | undefined;
  /** True if every day is written, also one whose rows are there already (`--full-refresh`, `--from`). */
  readonly rewrites: boolean;
  /** True if the caller named the days (`--from`): a lost one ends the run with exit 4. */
  readonly isNamed: boolean;
  /** A day from here on that is over and no longer exported is a gap; undefined: none is. */
  readonly gapFrom: Day | undefined;
  /** The start, if the state has none. */
  readonly start: Day;
  readonly cursor: Day;
  /** Whether an export includes its `to_date`; undefined: not known. */
  readonly toDateInclusive: boolean | undefined;
  /** The day on which the run finds that out; undefined: it does not. */
  readonly endDayOn: Day | undefined;
  readonly warnings: readonly PlanWarning[];
}

/**
 * Decides which days are read. Pure. Throws a StateError when the stored state must not be used, and a configuration
 * failure for impossible days.
 */
export function planRun(input: PlanInput): Plan {
  const { settings, prior, now, from, appends = false, fullRefresh = false } = input;
  const hashes = hashesOf(settings);
  const state = parseState(prior.state);
  checkState(state, hashes, { now, fullRefresh });
  if (fullRefresh && (from !== undefined || input.to !== undefined))
    throw configError('--full-refresh reads all days: leave --from and --to out.');
  checkBegun('--from', from, now);
  if (state === undefined) checkBegun('start_date', settings.startDate, now);
  const oldest = oldestDay(now, settings.historyDays);
  const start = state?.start_date ?? firstStart(input, state, oldest);
  const cursor = state?.from_date ?? start;
  const read = daysToRead(input, { state, hashes, start, cursor, oldest });
  return {
    filters: filtersOf(settings),
    hashes,
    hashing: hashedColumns(settings),
    historyDays: settings.historyDays,
    onGap: settings.onGap,
    appends,
    state,
    receipts: prior.receipts,
    ...read,
    rewrites: fullRefresh || from !== undefined,
    isNamed: from !== undefined,
    gapFrom: state === undefined || isUnread(state) || fullRefresh || from !== undefined ? undefined : state.from_date,
    start,
    cursor,
    ...endDay(input, state, read.days),
  };
}

/** A day that has not begun anywhere is a typing error: a run would read nothing, for a year perhaps. */
function checkBegun(name: string, day: Day | undefined, now: number): void {
  const today = latestToday(now);
  if (day !== undefined && day > today)
    throw configError(`${name} ${day} has not begun: no time zone is further than ${today}.`);
}

/** The start before the first commit. A state that another program made may have a cursor alone. */
function firstStart({ settings: { startDate }, from }: PlanInput, state: ExportState | undefined, oldest: Day): Day {
  const start = startDate === undefined ? (from ?? oldest) : laterOf(startDate, oldest);
  return state === undefined ? start : earlierOf(start, state.from_date);
}

/** What a plan starts from, beside its input. */
interface PlanBasis {
  readonly state: ExportState | undefined;
  readonly hashes: RequestHashes;
  readonly start: Day;
  readonly cursor: Day;
  /** The oldest day that the service most likely still exports. */
  readonly oldest: Day;
}

/*
 *   run            reads
 *   --from D       every day from D on
 *   full refresh   every day from the start on that is still exported
 *   any other      the days from the cursor on that are not complete; `lookback_days` before the first of them; and days
 *                  that are read again
 */
function daysToRead(
  input: PlanInput,
  basis: PlanBasis,
): Pick<Plan, 'days' | 'readAgain' | 'lookedBackTo' | 'warnings'> {
  const { from, fullRefresh } = input;
  const last = lastDayOf(input);
  const exactly = { readAgain: [], lookedBackTo: undefined };
  if (from !== undefined) return { ...exactly, days: daysOf(from, last), warnings: openWarning(input, last) };
  if (fullRefresh === true) return { ...exactly, ...refreshDays(input, basis, last) };
  return incrementalDays(input, basis, last);
}

function lastDayOf({ settings, appends, from, to, now }: PlanInput): Day {
  if (from !== undefined && to !== undefined && from > to) {
    throw configError(`--from ${from} is after --to ${to}: nothing lies between them.`);
  }
  const latest = appends === true ? lastDayOverFor(now, settings.settleHours) : todayIn(settings.timezone, now);
  const end = to ?? settings.endDate;
  return end === undefined ? latest : earlierOf(end, latest);
}

function incrementalDays(input: PlanInput, { state, hashes, start, cursor, oldest }: PlanBasis, last: Day) {
  const { settings, prior, appends = false, now } = input;
  const { receipts } = prior;
  const gaps = new Set(state?.gaps);
  const needed = daysOf(cursor, last).filter((day) => !isComplete(day, receipts, gaps));
  const [next] = needed;
  const back = appends || next === undefined ? undefined : addDays(next, -settings.lookbackDays);
  const lookback =
    back === undefined
      ? []
      : daysOf(laterOf(back, laterOf(start, oldest)), addDays(next, -1)).filter((day) => isThere(day, receipts, gaps));
  const otherFilters = [...receipts]
    .filter(([day, receipt]) => day >= oldest && hasOtherFilters(receipt, hashes) && isThere(day, receipts, gaps))
    .map(([day]) => day);
  const readAgain = [...new Set([...doubtfulDays(receipts, { now, appends }), ...otherFilters])]
    .filter((day) => day >= start && day <= last)
    .sort();
  const days = [...new Set([...lookback, ...readAgain, ...needed])].sort();
  const lookedBackTo = lookback.find((day) => day === back && !readAgain.includes(day));
  return { days, readAgain, lookedBackTo, warnings: incrementalWarnings(input, { state, start, oldest }, next) };
}

/** False for a day that was lost, or whose rows were removed: only `--from` reads it. */
const isThere = (day: Day, receipts: PriorReceipts, gaps: ReadonlySet<Day>): boolean =>
  !gaps.has(day) && receipts.get(day)?.pruned !== true;

function incrementalWarnings(
  input: PlanInput,
  { state, start, oldest }: Pick<PlanBasis, 'state' | 'start' | 'oldest'>,
  next: Day | undefined,
): PlanWarning[] {
  const { startDate } = input.settings;
  const { receipts } = input.prior;
  if (state === undefined) {
    return startDate !== undefined && startDate < start ? [shortened(startDate, start)] : [];
  }
  const earlier = daysOf(laterOf(startDate ?? start, oldest), addDays(start, -1)).filter((day) => !receipts.has(day));
  const retention = next === undefined ? [] : retentionWarnings(next, input);
  return earlier.length === 0 ? retention : [...retention, earlierStart(earlier, start)];
}

/** The warning for a `start_date` that lies before the start that the first load has fixed. */
function earlierStart(days: readonly Day[], start: Day): PlanWarning {
  const message =
    `start_date is before ${start}, the start of the first load, and ${nameDays(days)} can still be exported. ` +
    `Read them with sync … --from ${days[0]} --to ${days.at(-1)}; under Airbyte, clear the stream.`;
  return { event: 'plan.earlier_start', message };
}

function refreshDays({ prior: { receipts } }: PlanInput, { start, oldest, state, hashes }: PlanBasis, last: Day) {
  const first = laterOf(start, oldest);
  const older = [...receipts].filter(([day]) => day < first).sort(([a], [b]) => (a < b ? -1 : 1));
  const warnings: PlanWarning[] = start < first && state === undefined ? [shortened(start, first)] : [];
  const name = (stays: readonly (readonly [Day, PriorReceipt])[], how: string) => {
    if (stays.length === 0) return;
    const days = nameDays(stays.map(([day]) => day));
    const message = `Days before ${first} can no longer be exported: ${days} stay as they are${how}.`;
    warnings.push({ event: 'plan.older_days', message });
  };
  const isOther = ([, receipt]: readonly [Day, PriorReceipt]) => hasOtherFilters(receipt, hashes);
  name(
    older.filter((entry) => !isOther(entry)),
    '',
  );
  name(older.filter(isOther), ', with other filters: columns_drop and columns_hash do not change them');
  return { days: daysOf(first, last).filter((day) => receipts.get(day)?.pruned !== true), warnings };
}

const shortened = (wished: Day, first: Day): PlanWarning => ({
  event: 'plan.shortened',
  message: `Days before ${first} can no longer be exported: reading from ${first} instead of ${wished}.`,
});

/** The warning for a named day that is not over yet. */
function openWarning({ to, now }: PlanInput, last: Day): PlanWarning[] {
  if (to === undefined || last <= lastDayOver(now)) return [];
  const message = `${last} is not over everywhere yet: what is loaded of it may not be all.`;
  return [{ event: 'plan.open_day', message }];
}

function retentionWarnings(next: Day, { settings, now }: PlanInput): PlanWarning[] {
  const left = daysLeftOf(next, dayAt(now), settings.historyDays);
  if (left > SOON_DAYS || left < 0) return [];
  const when = left === 0 ? 'today' : left === 1 ? 'tomorrow' : `in ${left} days`;
  const message = `${next}, the first day not yet complete, can no longer be exported ${when}: let this run finish.`;
  return [{ event: 'plan.retention_limit', message }];
}

/** Whether an export includes its end; a run that does not know finds it out on the newest day that is over. */
function endDay(
  { settings, now }: PlanInput,
  state: ExportState | undefined,
  days: readonly Day[],
): Pick<Plan, 'toDateInclusive' | 'endDayOn'> {
  const toDateInclusive = isEndIncluded(settings, state);
  const over = lastDayOver(now);
  return { toDateInclusive, endDayOn: toDateInclusive === undefined ? days.findLast((day) => day <= over) : undefined };
}

/** The documented limit of exports in an hour. */
const EXPORTS_PER_HOUR = 100;

export interface Forecast {
  /** Exports that the plan sends if nothing fails: one a day, one of profiles, more to find out the end of an export. */
  readonly least: number;
  readonly most: number;
  readonly startableNow: number;
  /** The earliest instant at which the last export may start (ms since 1970). */
  readonly earliestEnd: number;
}

/** What a plan costs if the documented quota is full; the service is not asked. `beside`: exports that are no day. */
export function forecastOf({ days, endDayOn }: Plan, atOnce: number, now: number, beside = 0): Forecast {
  const least = days.length + beside;
  const most = least + (endDayOn === undefined ? 0 : 2);
  const hours = Math.max(0, Math.ceil(most / EXPORTS_PER_HOUR) - 1);
  return { least, most, startableNow: Math.min(most, EXPORTS_PER_HOUR, atOnce), earliestEnd: now + hours * HOUR_MS };
}
