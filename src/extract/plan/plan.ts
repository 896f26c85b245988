// This folder: which days a run reads, and in which windows. Pure functions of state, configuration and time.

import { addDays, type Day, daysOf, earlierOf, laterOf } from '../../base/days.ts';
import { configError } from '../../base/errors.ts';
import type { SourceConfig } from '../../config/source.ts';
import type { Filters } from '../../service/export/protocol.ts';
import {
  filtersOf,
  hashedAfter,
  hashesOf,
  type RequestHashes,
  type RequestSettings,
  stateHashes,
} from '../export-request.ts';
import { checkState, otherColumns } from '../state.ts';
import type { ExportState, PriorLoads } from '../window.ts';
import { Coverage, lastSettledDay, latestToday, oldestDays } from './days.ts';
import { clampWarning, gapWarning, type PlanWarning, retentionLimitWarnings } from './gaps.ts';

/** `fresh`: days through today, read again next time. `settled`: days that have been over for a while, each once. */
export type Delivery = 'fresh' | 'settled';

/** The effective delivery: `auto` is `settled` for a stream that only appends rows, else `fresh`. */
export const deliveryOf = (configured: SourceConfig['delivery'], { isPlainAppend = false } = {}): Delivery =>
  configured === 'auto' ? (isPlainAppend ? 'settled' : 'fresh') : configured;

export type PlanSettings = RequestSettings &
  Pick<
    SourceConfig,
    | 'startDate'
    | 'endDate'
    | 'windowDays'
    | 'lookbackDays'
    | 'settleHours'
    | 'toDateInclusive'
    | 'historyDays'
    | 'onGap'
  >;

export interface PlanInput {
  readonly settings: PlanSettings;
  readonly delivery: Delivery;
  /** True if the consumer keeps every row: it neither merges by key nor removes rows. Default false. */
  readonly appends?: boolean | undefined;
  /** The exact days to read, both included, whatever the cursor is (`--from`, `--to`). */
  readonly from?: Day | undefined;
  readonly to?: Day | undefined;
  readonly fullRefresh?: boolean | undefined;
  /** True to resume at the state's cursor, without lookback. */
  readonly resume?: boolean | undefined;
  readonly prior: PriorLoads;
  /** This machine's time (ms since 1970). */
  readonly now: number;
}

export interface PlannedDelivery {
  readonly delivery: Delivery;
  readonly fullRefresh: boolean;
  /** True if no row may be delivered twice: a window whose end is not proved is held back. */
  readonly appends: boolean;
  /** Hours that a day must have been over before it is delivered; undefined under `fresh`. */
  readonly settleHours: number | undefined;
  /** Number of days before the cursor that every run reads again. */
  readonly lookbackDays: number;
}

/** What is known of whether an export contains its `to_date`: of single days, and separately of several. */
export interface PlannedRule {
  /** True if an export of a single day contains that day; undefined while it is not proved. */
  readonly singleDaysInclusive: boolean | undefined;
  /** True if an export of several days contains its `to_date`; undefined while it is not proved. */
  readonly rangesInclusive: boolean | undefined;
  /** True if the configuration sets the rule: then it is neither proved nor stored. */
  readonly ruleConfigured: boolean;
  /** True if the rule is proved before the first window is delivered, so that windows do not overlap. */
  readonly proveFirst: boolean;
}

/** The decisions of an extraction, made before the first request. */
export interface Plan extends PlannedDelivery, PlannedRule {
  readonly filters: Filters;
  readonly hashes: RequestHashes;
  /** True if the caller named the days: other runs with the same filters may want other days. */
  readonly isPartial: boolean;
  readonly windowDays: number;
  /** Number of days for which the service still exports data. */
  readonly historyDays: number;
  readonly eventNames: readonly string[];
  readonly days: readonly Day[];
  /**
   * Days of `days`, in their order, that are gaps unless this machine's clock is ahead: the answer to their request
   * decides.
   */
  readonly likelyGaps: ReadonlySet<Day>;
  /**
   * True if a day is a gap once the service no longer exports it: wanted and not complete. Else the plan is clamped.
   */
  readonly isGap: (day: Day) => boolean;
  readonly onGap: 'fail' | 'warn';
  /** First wanted day; the cursor is the first incomplete day from here on. */
  readonly start: Day;
  /** True if no start is configured: `start` is then the oldest day that can be exported, by this machine's clock. */
  readonly startIsClamped: boolean;
  /** This machine's time when the plan was made (ms since 1970). */
  readonly plannedAt: number;
  readonly cursor: Day;
  readonly coverage: Coverage;
  readonly rowsOf: PriorLoads['rowsOf'];
  /** The state before the first window, with gaps recorded and hashes set. */
  readonly state: ExportState;
  readonly warnings: readonly PlanWarning[];
}

/**
 * Decides which days are read, and in which windows, from the stored state, the receipts and what the service still has
 *. Pure. Throws a StateError when the stored state must not be used, and a configuration failure for impossible
 * days.
 */
export function planRun(input: PlanInput): Plan {
  const { settings, prior, delivery, fullRefresh = false } = input;
  const hashes = hashesOf(settings);
  const { state, startsOver } = checkState(prior.state, hashes, input);
  const days = planDays(input, state, startsOver);
  const { toDateInclusive: configured } = settings;
  const ruleOf = (proved: boolean | undefined) => (configured === 'auto' ? proved : configured === 'true');
  // Then each day is read once in the run, without an overlap.
  const readsOnce = delivery === 'settled' || fullRefresh;
  return {
    delivery,
    fullRefresh,
    appends: readsOnce && input.appends === true,
    settleHours: delivery === 'settled' ? settings.settleHours : undefined,
    lookbackDays: lookbackOf(input),
    singleDaysInclusive: ruleOf(state?.to_date_inclusive),
    rangesInclusive: ruleOf(state?.ranges_inclusive),
    ruleConfigured: configured !== 'auto',
    proveFirst: readsOnce,
    filters: filtersOf(settings),
    hashes,
    isPartial: input.from !== undefined || input.to !== undefined,
    windowDays: Math.min(settings.windowDays, state?.max_window_days ?? settings.windowDays),
    historyDays: settings.historyDays,
    onGap: settings.onGap,
    plannedAt: input.now,
    eventNames: prior.eventNames,
    rowsOf: prior.rowsOf,
    ...days,
    state: firstState(input, state, startsOver, { ...days, hashes }),
    warnings: [...(otherColumns(state, hashes) ? [OLD_FORM] : []), ...days.warnings],
  };
}

/** Number of lookback days; 0 under `settled`, where each day is read once. */
const lookbackOf = ({ delivery, settings }: PlanInput): number => (delivery === 'settled' ? 0 : settings.lookbackDays);

/*
 * The days of a run. `given` is the start that is configured, else the stored one, else `oldest`: the first day that
 * the service probably still exports. `start`, from which on the cursor is the first incomplete day, is `given`; but
 * not before `oldest` in a first full refresh, nor while it follows the oldest day: nobody configured one, and nothing
 * was read since it was stored.
 *
 *   run            reads from                                             a missing day is a gap from
 *   --from D       D                                                      D
 *   full refresh   `given`, not before `oldest`                           never
 *   any other      the cursor less `lookback_days`, not before `start`,   the cursor, but never while the start
 *                  nor before `oldest` but for incomplete days            follows the oldest day
 *
 * A resumed run has no lookback. The last day is `--to` or the configured end, at most the latest that may be
 * requested. Complete days between are read only if they were named, are to be refreshed, or may get late rows (a
 * lookback).
 */

/** `startsOver`: what was read before does not count. */
function planDays(input: PlanInput, state: ExportState | undefined, startsOver: boolean) {
  const { settings, prior, now, from, fullRefresh = false, resume = false } = input;
  const { surely: goneBefore, probably: oldest } = oldestDays(now, settings.historyDays);
  const coverage = startsOver ? new Coverage([], undefined) : Coverage.of(state, prior.covered);
  const { given, start, followsOldest } = startOf(input, startsOver ? undefined : state, coverage, oldest);
  const cursor = coverage.cursor(start, now);
  const last = lastDayOf(input);

  const again = laterOf(start, addDays(cursor, resume ? 0 : -lookbackOf(input)));
  const wanted = from ?? (fullRefresh || given < start ? given : again);
  // What is read again may be shortened to what the service has; an incomplete day never is.
  const first = from ?? (fullRefresh ? laterOf(given, oldest) : laterOf(again, earlierOf(cursor, oldest)));
  const gapFrom = from ?? (fullRefresh || followsOldest ? undefined : cursor);
  const isGap = (day: Day) => gapFrom !== undefined && day >= gapFrom && !coverage.has(day);

  const all = daysOf(first, last);
  // A receipt does not show that all late rows have arrived. Without a lookback some days after the cursor may be
  // complete already (mapped tasks), and are not requested again.
  const readsAll = from !== undefined || fullRefresh || lookbackOf(input) > 0;
  const days = readsAll ? all : all.filter((day) => !coverage.has(day));
  const likelyGaps = new Set(all.filter((day) => day < goneBefore && isGap(day)));

  const warnings: PlanWarning[] = [];
  if (likelyGaps.size > 0) warnings.push(gapWarning([...likelyGaps]));
  if (wanted < first && first <= last) warnings.push(clampWarning(wanted, first));
  if (gapFrom !== undefined && from === undefined) warnings.push(...retentionLimitWarnings(cursor, last, oldest));
  const startIsClamped = followsOldest && start === oldest;
  return { days, likelyGaps, isGap, start, startIsClamped, cursor, coverage, warnings };
}

/** `state`: the state that counts, if there is one. */
function startOf(
  { settings, fullRefresh, now }: PlanInput,
  state: ExportState | undefined,
  coverage: Coverage,
  oldest: Day,
): { readonly given: Day; readonly start: Day; readonly followsOldest: boolean } {
  const given = settings.startDate ?? state?.start_date ?? state?.from_date ?? oldest;
  const isNothingRead = state === undefined || coverage.cursor(given, now) === state.start_date;
  const followsOldest = settings.startDate === undefined && isNothingRead;
  // The first full refresh reads what there is; later ones keep the start, from which the cursor counts.
  const isClamped = followsOldest || (fullRefresh === true && state === undefined);
  return { given, start: isClamped ? laterOf(given, oldest) : given, followsOldest };
}

function lastDayOf({ settings, delivery, from, to, now }: PlanInput): Day {
  if (from !== undefined && to !== undefined && from > to) {
    throw configError(`--from ${from} is after --to ${to}: nothing lies between them.`);
  }
  const latest = delivery === 'settled' ? lastSettledDay(now, settings.settleHours) : latestToday(now);
  const wanted = to ?? settings.endDate;
  return wanted === undefined ? latest : earlierOf(wanted, latest);
}

function firstState(
  { settings }: PlanInput,
  state: ExportState | undefined,
  startsOver: boolean,
  { cursor, start, hashes }: Pick<Plan, 'cursor' | 'start' | 'hashes'>,
): ExportState {
  const { columns: _columns, hashed: _hashed, gaps: recorded = [], ...kept } = state ?? {};
  const hashed = hashedAfter(state, settings);
  // Days that were lost under other filters are not lost under these.
  const gaps = startsOver ? [] : recorded;
  return {
    ...kept,
    version: 1,
    from_date: state === undefined || startsOver ? cursor : laterOf(state.from_date, cursor),
    start_date: start,
    ...stateHashes(hashes),
    ...(hashed !== undefined && { hashed }),
    ...(gaps.length > 0 && { gaps: [...gaps].sort() }),
    ...(startsOver && { by_cursor: true }),
  };
}

/** The warning that a full refresh does not reach days that are no longer exported. */
const OLD_FORM: PlanWarning = {
  event: 'columns.changed',
  message:
    'Other columns are dropped or hashed than before, or under another key: ' +
    'rows of days that the service no longer exports keep the old form.',
};
