// This folder: which days a run reads. Pure functions of state, receipts, configuration and time.

import { addDays, type Day, daysBetween, daysOf, earlierOf, laterOf } from '../../base/days.ts';
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
import { checkState, isComplete, isUnread, parseState } from '../export-state.ts';
import { implausible } from '../plausible.ts';
import type { ExportState, PriorLoads, StoredReceipts } from '../receipt.ts';
import { lastDayOver, lastDayOverFor, latestToday, nameDays, oldestDay, readAgainDays, todayIn } from './calendar.ts';

export type PlanSettings = RequestSettings &
  Pick<
    SourceConfig,
    | 'startDate'
    | 'endDate'
    | 'timezone'
    | 'lookbackDays'
    | 'settleHours'
    | 'toDateInclusive'
    | 'historyDays'
    | 'onGap'
    | 'onImplausible'
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
export interface Plan extends Pick<PlanSettings, 'historyDays' | 'onGap' | 'onImplausible'> {
  readonly filters: Filters;
  readonly hashes: RequestHashes;
  readonly hashing: HashedColumns;
  readonly appends: boolean;
  /** Hours that a day must have been over before it is read; undefined without plain append. */
  readonly settleHours: number | undefined;
  /** The state before the run; undefined before the first commit. */
  readonly state: ExportState | undefined;
  /** The receipts before the run. */
  readonly receipts: StoredReceipts;
  /** True if a full refresh meets other filters: stored row counts do not compare. */
  readonly isMixed: boolean;
  /** The days to read, in order. */
  readonly days: readonly Day[];
  /** Those of them that are read again because they are empty or implausible. */
  readonly readAgain: readonly Day[];
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
  const isMixed = checkState(state, hashes, { now, fullRefresh });
  if (fullRefresh && (from !== undefined || input.to !== undefined))
    throw configError('--full-refresh reads all days: leave --from and --to out.');
  checkBegun('--from', from, now);
  if (state === undefined) checkBegun('start_date', settings.startDate, now);
  const oldest = oldestDay(now, settings.historyDays);
  const start = state?.start_date ?? firstStart(input, state, oldest);
  const cursor = state?.from_date ?? start;
  const wanted = wantedDays(input, { state, isMixed, start, cursor, oldest });
  return {
    filters: filtersOf(settings),
    hashes,
    hashing: hashedColumns(settings),
    historyDays: settings.historyDays,
    onGap: settings.onGap,
    onImplausible: settings.onImplausible,
    appends,
    settleHours: appends ? settings.settleHours : undefined,
    state,
    receipts: prior.receipts,
    isMixed,
    ...wanted,
    isNamed: from !== undefined,
    gapFrom: state === undefined || isUnread(state) || fullRefresh || from !== undefined ? undefined : state.from_date,
    start,
    cursor,
    ...endDay(input, state, wanted.days),
  };
}

/** A day that has not begun anywhere is a typing error: a run would read nothing, for a year perhaps. */
function checkBegun(name: string, day: Day | undefined, now: number): void {
  const today = latestToday(now);
  if (day !== undefined && day > today) throw configError(`${name} ${day} has not begun: today is ${today}.`);
}

/** The start before the first commit. A state that another program made may have a cursor alone. */
function firstStart({ settings: { startDate }, from }: PlanInput, state: ExportState | undefined, oldest: Day): Day {
  const start = startDate === undefined ? (from ?? oldest) : laterOf(startDate, oldest);
  return state === undefined ? start : earlierOf(start, state.from_date);
}

interface Known {
  readonly state: ExportState | undefined;
  readonly isMixed: boolean;
  readonly start: Day;
  readonly cursor: Day;
  readonly oldest: Day;
}

/*
 *   run            reads
 *   --from D       every day from D on
 *   full refresh   every day from the start on that is still exported
 *   any other      the days from the cursor on that are not complete; `lookback_days` before the first of them; and days
 *                  that are read again
 */
function wantedDays(input: PlanInput, known: Known): Pick<Plan, 'days' | 'readAgain' | 'warnings'> {
  const { from, fullRefresh } = input;
  const last = lastDayOf(input);
  if (from !== undefined) return { days: daysOf(from, last), readAgain: [], warnings: openWarning(input, last) };
  if (fullRefresh === true) return refreshDays(input, known, last);
  return incrementalDays(input, known, last);
}

function lastDayOf({ settings, appends, from, to, now }: PlanInput): Day {
  if (from !== undefined && to !== undefined && from > to) {
    throw configError(`--from ${from} is after --to ${to}: nothing lies between them.`);
  }
  const latest = appends === true ? lastDayOverFor(now, settings.settleHours) : todayIn(settings.timezone, now);
  const wanted = to ?? settings.endDate;
  return wanted === undefined ? latest : earlierOf(wanted, latest);
}

function incrementalDays(input: PlanInput, { state, start, cursor, oldest }: Known, last: Day) {
  const { settings, prior, appends = false, now } = input;
  const { receipts } = prior;
  const gaps = new Set(state?.gaps);
  const needed = daysOf(cursor, last).filter((day) => !isComplete(day, receipts, gaps));
  const [next] = needed;
  const warnings: PlanWarning[] = [];
  const back = appends || next === undefined ? undefined : laterOf(start, addDays(next, -settings.lookbackDays));
  const lookback =
    back === undefined
      ? []
      : daysOf(laterOf(back, oldest), addDays(next, -1)).filter((day) => isThere(day, receipts, gaps));
  // A day without a receipt is one whose stored rows cannot be read.
  const unreadable = (state?.read_again ?? []).filter((day) => !receipts.has(day) && day >= oldest);
  const late = readAgainDays(receipts, { now, appends });
  const readAgain = [...late, ...unreadable].filter((day) => day >= start && day <= last).sort();
  const { startDate } = settings;
  if (state === undefined && startDate !== undefined && startDate < start) warnings.push(shortened(startDate, start));
  if (state !== undefined && next !== undefined) warnings.push(...retentionWarnings(next, oldest));
  return { days: [...new Set([...lookback, ...readAgain, ...needed])].sort(), readAgain, warnings };
}

/** False for a day that was lost, or whose rows were removed: only `--from` reads it. */
const isThere = (day: Day, receipts: StoredReceipts, gaps: ReadonlySet<Day>): boolean =>
  !gaps.has(day) && receipts.get(day)?.pruned !== true;

function refreshDays({ prior: { receipts } }: PlanInput, { start, oldest, state, isMixed }: Known, last: Day) {
  const first = laterOf(start, oldest);
  const older = [...receipts.keys()].filter((day) => day < first).sort();
  const warnings: PlanWarning[] = start < first && state === undefined ? [shortened(start, first)] : [];
  if (older.length > 0) {
    const how = isMixed ? ', as other filters or columns made them' : '';
    const message = `Days before ${first} can no longer be exported: ${nameDays(older)} stay as they are${how}.`;
    warnings.push({ event: 'plan.older_days', message });
  }
  return { days: daysOf(first, last).filter((day) => receipts.get(day)?.pruned !== true), readAgain: [], warnings };
}

const shortened = (wanted: Day, first: Day): PlanWarning => ({
  event: 'plan.shortened',
  message: `Days before ${first} can no longer be exported: reading from ${first} instead of ${wanted}.`,
});

/** The warning for a named day that is not over yet. */
function openWarning({ to, now }: PlanInput, last: Day): PlanWarning[] {
  if (to === undefined || last <= lastDayOver(now)) return [];
  const message = `${last} is not over everywhere yet: what is loaded of it may not be all.`;
  return [{ event: 'plan.open_day', message }];
}

/** Warn if days will be lost within so many days. */
const RETENTION_WARNING_DAYS = 7;

function retentionWarnings(next: Day, oldest: Day): PlanWarning[] {
  const left = daysBetween(oldest, next);
  if (left > RETENTION_WARNING_DAYS) return [];
  const when = left <= 0 ? 'today' : left === 1 ? 'tomorrow' : `in ${left} days`;
  const message = `${next}, the first day not yet complete, can no longer be exported ${when}: let this run finish.`;
  return [{ event: 'plan.retention_limit', message }];
}

/**
 * A rule that is not known is found out on the newest day that is over. One that is known is found out again after an
 * empty day that is implausible, on the newest day that had rows.
 */
function endDay(
  { settings, prior, now }: PlanInput,
  state: ExportState | undefined,
  days: readonly Day[],
): Pick<Plan, 'toDateInclusive' | 'endDayOn'> {
  const { toDateInclusive: configured } = settings;
  if (configured !== 'auto') return { toDateInclusive: configured === 'true', endDayOn: undefined };
  const over = lastDayOver(now);
  const known = state?.to_date_inclusive;
  if (known === undefined) return { toDateInclusive: undefined, endDayOn: days.findLast((day) => day <= over) };
  const isDoubtful = days.some(
    (day) => prior.receipts.get(day)?.rows === 0 && implausible(day, prior.receipts) !== undefined,
  );
  if (!isDoubtful) return { toDateInclusive: known, endDayOn: undefined };
  const withRows = [...prior.receipts].filter(([day, { rows, pruned }]) => rows > 0 && day <= over && pruned !== true);
  const oldest = oldestDay(now, settings.historyDays);
  const newest = withRows
    .map(([day]) => day)
    .sort()
    .at(-1);
  return { toDateInclusive: known, endDayOn: newest !== undefined && newest > oldest ? newest : undefined };
}

/** The documented limit of exports in an hour. */
const EXPORTS_PER_HOUR = 100;

export interface Forecast {
  /** Exports that the plan sends if nothing fails: one a day, and more to find out the end of an export. */
  readonly least: number;
  readonly most: number;
  readonly startableNow: number;
  /** The earliest instant at which the last export may start (ms since 1970). */
  readonly earliestEnd: number;
}

/** What a plan costs if the documented quota is full; the service is not asked. */
export function forecastOf({ days, endDayOn }: Plan, atOnce: number, now: number): Forecast {
  const isAsked = endDayOn !== undefined && days.length > 0;
  const least = days.length + (isAsked && !days.includes(endDayOn) ? 1 : 0);
  const most = least + (isAsked ? 2 : 0);
  const hours = Math.max(0, Math.ceil(most / EXPORTS_PER_HOUR) - 1);
  return { least, most, startableNow: Math.min(most, EXPORTS_PER_HOUR, atOnce), earliestEnd: now + hours * HOUR_MS };
}
