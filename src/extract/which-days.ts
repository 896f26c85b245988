// Which days a run reads. Pure functions of state, receipts, configuration and time.

import { addDays, type Day, daysOf, earlierOf, laterOf, nameDays } from '../base/days.ts';
import { configError } from '../base/errors.ts';
import type { SourceConfig } from '../config/source.ts';
import type { Filters } from '../service/export/protocol.ts';
import { lastDayOver, lastDayOverFor, latestToday, oldestDay, todayIn } from './calendar.ts';
import { type HashedColumns, hashedColumnsOf } from './column-hashing.ts';
import { doubtfulDays } from './doubtful-days.ts';
import { filtersOf, fingerprintsOf, type RequestFingerprints, type RequestSettings } from './export-request.ts';
import { checkState, type ExportState, includesEndOf, isComplete, isUnread, parseState } from './export-state.ts';
import { hasOtherFilters, type PriorLoads, type PriorReceipts } from './receipt.ts';

export type PlanSettings = RequestSettings &
  Pick<
    SourceConfig,
    'startDate' | 'endDate' | 'timezone' | 'lookbackDays' | 'settleHours' | 'toDateInclusive' | 'historyDays' | 'onGap'
  >;

export interface PlanInput {
  readonly settings: PlanSettings;
  /**
   * Plain append: a row cannot be taken back, so only days over for `settleHours` are read, each once. Default false.
   */
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
export interface Plan extends Pick<PlanSettings, 'onGap'> {
  readonly filters: Filters;
  readonly fingerprints: RequestFingerprints;
  readonly hashedColumns: HashedColumns;
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
  /** The oldest day that the service most likely still exports. */
  readonly oldest: Day;
  /** The start, if the state has none. */
  readonly start: Day;
  readonly cursor: Day;
  /** Whether an export includes its `to_date`; undefined: not known. */
  readonly includesEnd: boolean | undefined;
  /** The day on which the run finds that out; undefined: it does not. */
  readonly findEndDayOn: Day | undefined;
  readonly warnings: readonly PlanWarning[];
}

/** The part of a plan that the downloads need. */
export type DownloadPlan = Pick<
  Plan,
  'filters' | 'fingerprints' | 'oldest' | 'state' | 'receipts' | 'days' | 'includesEnd' | 'findEndDayOn'
>;

/**
 * Decides which days are read. Pure. Throws a StateError when the stored state must not be used, and a configuration
 * failure for impossible days.
 *
 *   run            reads
 *   --from D       every day from D on
 *   full refresh   every day from the start on that is still exported
 *   any other      the days from the cursor on that are not complete; `lookback_days` before the first of them; and
 *                  the days that are read again
 */
export function planRun(input: PlanInput): Plan {
  const { settings, prior, now, from, to, appends = false, fullRefresh = false } = input;
  const fingerprints = fingerprintsOf(settings);
  const state = parseState(prior.state);
  checkState(state, fingerprints, { now, fullRefresh });
  const isNamed = from !== undefined;
  if (fullRefresh && (isNamed || to !== undefined))
    throw configError('--full-refresh reads all days: leave --from and --to out.');
  checkBegun('--from', from, now);
  if (state === undefined) checkBegun('start_date', settings.startDate, now);
  const oldest = oldestDay(now, settings.historyDays);
  const start = state?.start_date ?? firstStart(input, state, oldest);
  const cursor = state?.from_date ?? start;
  const basis = { ...input, appends, state, fingerprints, start, cursor, oldest, last: lastDayOf(input) };
  const chosenDays = isNamed ? namedDays(from, basis) : fullRefresh ? refreshDays(basis) : incrementalDays(basis);
  const includesEnd = includesEndOf(settings, state);
  const newestOver = chosenDays.days.findLast((day) => day <= lastDayOver(now));
  return {
    filters: filtersOf(settings),
    fingerprints,
    hashedColumns: hashedColumnsOf(settings),
    oldest,
    onGap: settings.onGap,
    appends,
    state,
    receipts: prior.receipts,
    ...chosenDays,
    rewrites: fullRefresh || isNamed,
    isNamed,
    gapFrom: fullRefresh || isNamed ? undefined : gapFromOf(state),
    start,
    cursor,
    includesEnd,
    findEndDayOn: includesEnd === undefined ? newestOver : undefined,
  };
}

/** Gaps begin at the cursor of an earlier run. */
const gapFromOf = (state: ExportState | undefined): Day | undefined =>
  state === undefined || isUnread(state) ? undefined : state.from_date;

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

function lastDayOf({ settings, appends, from, to, now }: PlanInput): Day {
  const latest = appends === true ? lastDayOverFor(now, settings.settleHours) : todayIn(settings.timezone, now);
  const end = to ?? settings.endDate;
  if (from !== undefined && end !== undefined && from > end) {
    const limit = to === undefined ? 'end_date' : '--to';
    throw configError(`--from ${from} is after ${limit} ${end}: nothing lies between them.`);
  }
  return end === undefined ? latest : earlierOf(end, latest);
}

/** What the days are chosen from. */
interface PlanBasis extends PlanInput, Pick<Plan, 'state' | 'fingerprints' | 'start' | 'cursor' | 'oldest'> {
  readonly appends: boolean;
  /** The last day that may be read. */
  readonly last: Day;
}

type ChosenDays = Pick<Plan, 'days' | 'readAgain' | 'lookedBackTo' | 'warnings'>;

const NO_OTHER_REASON = { readAgain: [], lookedBackTo: undefined };

function namedDays(from: Day, { settings, to, last, now }: PlanBasis): ChosenDays {
  if (from > last) throw configError(`--from ${from} is after ${last}, today in ${settings.timezone ?? 'UTC'}.`);
  const message = `${last} is not over everywhere yet: what is loaded of it may not be all.`;
  const isOpen = to !== undefined && last > lastDayOver(now);
  return {
    ...NO_OTHER_REASON,
    days: daysOf(from, last),
    warnings: isOpen ? [{ event: 'plan.open_day', message }] : [],
  };
}

function refreshDays({ prior: { receipts }, start, oldest, state, fingerprints, last }: PlanBasis): ChosenDays {
  const first = laterOf(start, oldest);
  const older = [...receipts.keys()].filter((day) => day < first).sort();
  const isOther = (day: Day) => hasOtherFilters(receipts.get(day), fingerprints);
  const sameFilters = older.filter((day) => !isOther(day));
  const otherFilters = older.filter(isOther);
  const withOthers = ', with other filters: columns_drop and columns_hash do not change them';
  return {
    ...NO_OTHER_REASON,
    days: daysOf(first, last).filter((day) => receipts.get(day)?.pruned !== true),
    warnings: [
      ...(start < first && state === undefined ? [shortenedWarning(start, first)] : []),
      ...(sameFilters.length > 0 ? [olderDays(first, sameFilters, '')] : []),
      ...(otherFilters.length > 0 ? [olderDays(first, otherFilters, withOthers)] : []),
    ],
  };
}

const olderDays = (first: Day, days: readonly Day[], how: string): PlanWarning => ({
  event: 'plan.older_days',
  message: `Days before ${first} can no longer be exported: ${nameDays(days)} stay as they are${how}.`,
});

function incrementalDays(basis: PlanBasis): ChosenDays {
  const { settings, prior, appends, state, start, cursor, oldest, last } = basis;
  const gaps = new Set(state?.gaps);
  const incompleteDays = daysOf(cursor, last).filter((day) => !isComplete(day, prior.receipts, gaps));
  const [firstIncomplete] = incompleteDays;
  const readAgain = daysReadAgain(basis);
  const warnings = incrementalWarnings(basis);
  if (appends || firstIncomplete === undefined) {
    return { days: union(readAgain, incompleteDays), readAgain, lookedBackTo: undefined, warnings };
  }
  const lookbackStart = addDays(firstIncomplete, -settings.lookbackDays);
  const lookback = daysOf(laterOf(lookbackStart, laterOf(start, oldest)), addDays(firstIncomplete, -1)).filter((day) =>
    mayBeReadAgain(day, basis),
  );
  const isWhole = lookback[0] === lookbackStart && !readAgain.includes(lookbackStart);
  const lookedBackTo = isWhole ? lookbackStart : undefined;
  return { days: union(lookback, readAgain, incompleteDays), readAgain, lookedBackTo, warnings };
}

const union = (...lists: readonly (readonly Day[])[]): Day[] => [...new Set(lists.flat())].sort();

/** The days that are empty, implausible, or of other filters. */
function daysReadAgain(basis: PlanBasis): Day[] {
  const { prior, appends, now, fingerprints, start, oldest, last } = basis;
  const { receipts } = prior;
  const otherFilters = [...receipts.keys()].filter((day) => hasOtherFilters(receipts.get(day), fingerprints));
  const exported = otherFilters.filter((day) => day >= oldest && mayBeReadAgain(day, basis));
  return union(doubtfulDays(receipts, { now, appends }), exported).filter((day) => day >= start && day <= last);
}

/** False for a day that was lost, or whose rows were removed: only `--from` reads it. */
const mayBeReadAgain = (day: Day, { prior, state }: PlanBasis): boolean =>
  state?.gaps?.includes(day) !== true && prior.receipts.get(day)?.pruned !== true;

function incrementalWarnings({ settings, prior, state, start, oldest }: PlanBasis): PlanWarning[] {
  const { startDate = start } = settings;
  if (state === undefined) return startDate < start ? [shortenedWarning(startDate, start)] : [];
  const unreadDays = daysOf(laterOf(startDate, oldest), addDays(start, -1)).filter((day) => !prior.receipts.has(day));
  if (unreadDays.length === 0) return [];
  const message =
    `start_date is before ${start}, the start of the first load, and ${nameDays(unreadDays)} can still be exported. ` +
    `Read them with sync … --from ${unreadDays[0]} --to ${unreadDays.at(-1)}; under Airbyte, clear the stream.`;
  return [{ event: 'plan.earlier_start', message }];
}

const shortenedWarning = (startDate: Day, first: Day): PlanWarning => ({
  event: 'plan.shortened',
  message: `Days before ${first} can no longer be exported: reading from ${first} instead of ${startDate}.`,
});
