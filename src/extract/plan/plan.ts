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
import { parseState, StateError } from '../state.ts';
import type { ExportState, PriorLoads } from '../window.ts';
import { Coverage, lastSettledDay, latestToday, oldestDays } from './days.ts';
import { clampWarning, gapWarning, type PlanWarning, retentionLimitWarnings } from './gaps.ts';

/** How the rows of a run are delivered. */
export interface PlannedDelivery {
  readonly delivery: Delivery;
  readonly fullRefresh: boolean;
  /** True if no row may be delivered twice: a window whose end is not proved is held back. */
  readonly appends: boolean;
  /** Hours that a day must have been over before it is delivered (S61); undefined under `fresh`. */
  readonly settleHours: number | undefined;
  /** Number of days before the cursor that every run reads again. */
  readonly lookbackDays: number;
}

/** What is known of whether an export contains its `to_date`: of single days and of several apart (S2, S62). */
export interface PlannedRule {
  /** True if an export of a single day contains that day; undefined while it is not proved. */
  readonly inclusive: boolean | undefined;
  /** True if an export of several days contains its `to_date`; undefined while it is not proved. */
  readonly rangesInclusive: boolean | undefined;
  /** True if the configuration sets the rule: then it is neither proved nor stored. */
  readonly ruleConfigured: boolean;
  /** True if the rule is proved before the first window is delivered, so that windows do not overlap (S7). */
  readonly proveFirst: boolean;
}

/** What is requested of the service. */
interface PlannedRequests {
  readonly filters: Filters;
  readonly hashes: RequestHashes;
  /** True if the caller named the days: other runs with the same filters may want other days. */
  readonly isPartial: boolean;
  readonly windowDays: number;
  /** Number of days for which the service still exports data. */
  readonly historyDays: number;
  readonly eventNames: readonly string[];
}

/** Which days are read, and what is complete before. */
interface PlannedDays {
  /** Days to read, in order. */
  readonly days: readonly Day[];
  /** Days of `days` that are gaps unless this machine's clock is ahead: the answer to their request decides (S5). */
  readonly likelyGaps: readonly Day[];
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
}

/** The decisions of an extraction, made before the first request. */
export interface Plan extends PlannedDelivery, PlannedRule, PlannedRequests, PlannedDays {
  /** The state before the first window, with gaps recorded and hashes set. */
  readonly state: ExportState;
  readonly warnings: readonly PlanWarning[];
}

/**
 * Decides which days are read, and in which windows, from the stored state, the receipts and what the service still has
 * (S1-S7). Pure. Throws a StateError when the stored state must not be used, and a configuration failure for impossible
 * days.
 */
export function planRun(input: PlanInput): Plan {
  const { settings, prior } = input;
  const hashes = hashesOf(settings);
  const { state, startsOver } = checkState(prior.state, hashes, input);
  const days = planDays(input, state, startsOver);
  return {
    ...planDelivery(input),
    ...planRule(input, state),
    filters: filtersOf(settings),
    hashes,
    isPartial: input.from !== undefined || input.to !== undefined,
    windowDays: Math.min(settings.windowDays, state?.max_window_days ?? settings.windowDays),
    historyDays: settings.historyDays,
    eventNames: prior.eventNames,
    ...days,
    state: firstState(input, state, startsOver, { ...days, hashes }),
    warnings: [...(otherColumns(state, hashes) ? [OLD_FORM] : []), ...days.warnings],
  };
}

function planDelivery(input: PlanInput): PlannedDelivery {
  const { delivery, settings, fullRefresh = false } = input;
  return {
    delivery,
    fullRefresh,
    appends: readsOnce(input) && input.appends === true,
    settleHours: delivery === 'settled' ? settings.settleHours : undefined,
    lookbackDays: lookbackOf(input),
  };
}

/** True if each day is read once in the run, without an overlap (S7). */
const readsOnce = ({ delivery, fullRefresh }: PlanInput): boolean => delivery === 'settled' || fullRefresh === true;

/** Number of lookback days; 0 under `settled`, where each day is read once (S7). */
const lookbackOf = ({ delivery, settings }: PlanInput): number => (delivery === 'settled' ? 0 : settings.lookbackDays);

function planRule(input: PlanInput, state: ExportState | undefined): PlannedRule {
  const { toDateInclusive: configured } = input.settings;
  const ruleOf = (proved: boolean | undefined) => (configured === 'auto' ? proved : configured === 'true');
  return {
    inclusive: ruleOf(state?.to_date_inclusive),
    rangesInclusive: ruleOf(state?.ranges_inclusive),
    ruleConfigured: configured !== 'auto',
    proveFirst: readsOnce(input),
  };
}

/** The days of a run, with what is to be said of them. `startsOver`: what was read before does not count. */
function planDays(
  input: PlanInput,
  state: ExportState | undefined,
  startsOver: boolean,
): PlannedDays & Pick<Plan, 'warnings'> {
  const { settings, prior, now } = input;
  const coverage = startsOver ? new Coverage([], undefined) : Coverage.of(state, prior.covered);
  const start = startOf(input, startsOver ? undefined : state, coverage);
  const wanted = wantedDaysOf(input, start, coverage);
  const likelyGaps = likelyGapsOf(wanted, coverage, oldestOf(input).surely);
  const cursor = coverage.cursor(start.day, now);
  return {
    days: daysIn(wanted, input, coverage),
    likelyGaps,
    isGap: (day) => wanted.gapFrom !== undefined && day >= wanted.gapFrom && !coverage.has(day),
    onGap: settings.onGap,
    start: start.day,
    startIsClamped: start.followsOldest && start.day === oldestOf(input).probably,
    plannedAt: now,
    cursor,
    coverage,
    rowsOf: prior.rowsOf,
    warnings: warningsOf(wanted, likelyGaps, cursor, oldestOf(input).probably),
  };
}

const oldestOf = ({ now, settings }: PlanInput) => oldestDays(now, settings.historyDays);

/** The first day that runs want. */
interface Start {
  /** The day from which on the cursor is the first incomplete day. */
  readonly day: Day;
  /** The start that is configured, else the stored one; undefined without either. */
  readonly given: Day | undefined;
  /**
   * True if no start is configured and nothing has been read since it was stored: it is no older than what can be
   * exported.
   */
  readonly followsOldest: boolean;
}

/** `state`: the state that counts, if there is one. */
function startOf(input: PlanInput, state: ExportState | undefined, coverage: Coverage): Start {
  const { settings, fullRefresh, now } = input;
  const given = settings.startDate ?? state?.start_date ?? state?.from_date;
  const oldest = oldestOf(input).probably;
  if (given === undefined) return { day: oldest, given, followsOldest: true };
  const isNothingRead = state === undefined || coverage.cursor(given, now) === state.start_date;
  const followsOldest = settings.startDate === undefined && isNothingRead;
  // The first full refresh reads what there is; later ones keep the start, from which the cursor counts.
  const isClamped = followsOldest || (fullRefresh === true && state === undefined);
  return { day: isClamped ? laterOf(given, oldest) : given, given, followsOldest };
}

/*
 * Which days a run reads. `start` is the day of `startOf`, `oldest` the first day that the service probably still has.
 *
 *   run                     wanted from                        read from                      gaps from
 *   --from D                D                                  D                              D
 *   full refresh            the given start, or `start` where  the same, not before `oldest`  none
 *                           it follows the oldest day
 *   full refresh, resumed   the cursor                         the same, not before `oldest`  none
 *   resumed                 the cursor, not before `start`     the same                       the cursor, unless the
 *                                                                                             start follows the oldest
 *   any other               the cursor less `lookback_days`,   the same, not before `oldest`  as above
 *                           not before `start`                 but from the cursor, if earlier
 *
 * In the last two, a stored start before `oldest` is still wanted: a run then says that its days are not exported.
 */

/** The days that a run may read, all of them or those that are not complete. */
interface WantedDays {
  /** The first wanted day, which the service may no longer export; then `first` is a later one. */
  readonly wanted: Day;
  readonly first: Day;
  readonly last: Day;
  /** The first day that is a gap if it is not complete and no longer exported; undefined if none can be. */
  readonly gapFrom: Day | undefined;
  /** True if all days are read, since they were named or everything is to be read again. */
  readonly readsAll: boolean;
}

function wantedDaysOf(input: PlanInput, start: Start, coverage: Coverage): WantedDays {
  const { from, to, fullRefresh, resume, now } = input;
  if (from !== undefined && to !== undefined && from > to) {
    throw configError(`--from ${from} is after --to ${to}: nothing lies between them.`);
  }
  const last = lastDayOf(input);
  if (from !== undefined) return { wanted: from, first: from, last, gapFrom: from, readsAll: true };
  const oldest = oldestOf(input).probably;
  const cursor = coverage.cursor(start.day, now);
  const { day, given = day, followsOldest } = start;
  if (fullRefresh) {
    const wanted = resume ? cursor : followsOldest ? day : given;
    return { wanted, first: laterOf(wanted, oldest), last, gapFrom: undefined, readsAll: true };
  }
  const again = laterOf(day, addDays(cursor, resume ? 0 : -lookbackOf(input)));
  return {
    wanted: given < day ? given : again,
    // What is read again may be shortened to what the service has; an incomplete day never is.
    first: laterOf(again, earlierOf(cursor, oldest)),
    last,
    gapFrom: followsOldest ? undefined : cursor,
    readsAll: false,
  };
}

function lastDayOf({ settings, delivery, to, now }: PlanInput): Day {
  const latest = delivery === 'settled' ? lastSettledDay(now, settings.settleHours) : latestToday(now);
  const wanted = to ?? settings.endDate;
  return wanted === undefined ? latest : earlierOf(wanted, latest);
}

/** The wanted days that are gaps, where `oldest` is the first day that the service may still export. */
function likelyGapsOf({ first, last, gapFrom }: WantedDays, coverage: Coverage, oldest: Day): Day[] {
  if (gapFrom === undefined) return [];
  const lost = daysOf(laterOf(gapFrom, first), earlierOf(last, addDays(oldest, -1)));
  return lost.filter((day) => !coverage.has(day));
}

/** The wanted days that are read. */
function daysIn({ first, last, readsAll }: WantedDays, input: PlanInput, coverage: Coverage): Day[] {
  const all = daysOf(first, last);
  // Some days after the cursor may be complete already (mapped tasks). They are not requested again, unless there is a
  // lookback: a receipt does not show that all late rows have arrived.
  if (readsAll || lookbackOf(input) > 0) return all;
  return all.filter((day) => !coverage.has(day));
}

function warningsOf(days: WantedDays, likelyGaps: readonly Day[], cursor: Day, oldest: Day): PlanWarning[] {
  const { wanted, first, last } = days;
  const out: PlanWarning[] = [];
  if (likelyGaps.length > 0) out.push(gapWarning(likelyGaps));
  if (wanted < first && first <= last) out.push(clampWarning(wanted, first));
  if (days.gapFrom !== undefined && !days.readsAll) out.push(...retentionLimitWarnings(cursor, last, oldest));
  return out;
}

/** The state before the first window. */
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

/** `fresh`: days through today, read again next time. `settled`: days that have been over for a while, each once. */
export type Delivery = 'fresh' | 'settled';

/** The effective delivery (S7): `auto` is `settled` for a stream that only appends rows, else `fresh`. */
export const deliveryOf = (configured: SourceConfig['delivery'], { isPlainAppend = false } = {}): Delivery =>
  configured === 'auto' ? (isPlainAppend ? 'settled' : 'fresh') : configured;

/** The part of the configuration that a plan needs. */
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
  /** True to resume at the state's cursor, without lookback, and a full refresh not from its start. */
  readonly resume?: boolean | undefined;
  readonly prior: PriorLoads;
  /** This machine's time (ms since 1970). */
  readonly now: number;
}

/**
 * Checks that the stored state is of the service and the filters of this run, and its cursor not in the future (S6).
 * `startsOver`: a full refresh meets other filters, or a cursor in the future, so that the target's contents do not
 * count. Throws a StateError if the state must not be used.
 */
export function checkState(
  stored: unknown,
  hashes: RequestHashes,
  run: { readonly now: number; readonly fullRefresh?: boolean | undefined },
): { readonly state: ExportState | undefined; readonly startsOver: boolean } {
  const state = parseState(stored);
  if (state === undefined) return { state, startsOver: false };
  if (state.service !== undefined && state.service !== hashes.service) {
    throw new StateError(
      'service',
      'The target holds the data of another service (base_url or service_id differ)',
      'use another target for this one',
    );
  }
  const startsOver = state.question !== undefined && state.question !== hashes.request;
  if (startsOver && run.fullRefresh !== true) {
    if (otherColumns(state, hashes)) throw new StateError('columns', OTHER_COLUMNS, REREAD_COLUMNS);
    throw new StateError(
      'filters',
      'The target was filled with other filters (events, properties or their conditions differ)',
      'put them back, use another target, or read everything again with --full-refresh',
    );
  }
  const today = latestToday(run.now);
  const future = state.from_date > today;
  if (future && run.fullRefresh === true) return { state, startsOver: true };
  if (future && !startsOver) {
    throw new StateError(
      'future',
      `The stored cursor ${state.from_date} lies in the future (today is at most ${today})`,
      'check the clock of this machine, or read everything again with --full-refresh',
    );
  }
  return { state, startsOver };
}

/** True if the rows of a target have another form than this run would give them (S47). */
export const otherColumns = (state: ExportState | undefined, hashes: RequestHashes): boolean =>
  state?.question !== undefined && state.columns !== hashes.columns;

const OTHER_COLUMNS =
  'The target was filled with other columns dropped or hashed, or under another key (columns_drop, columns_hash or hash_key differ)';
const REREAD_COLUMNS =
  'put them back, use another target, or read everything again with --full-refresh. Rows of days that the ' +
  'service no longer exports keep the old form';

/** The warning that a full refresh does not reach days that are no longer exported. */
const OLD_FORM: PlanWarning = {
  event: 'columns.changed',
  message:
    'Other columns are dropped or hashed than before, or under another key: ' +
    'rows of days that the service no longer exports keep the old form.',
};
