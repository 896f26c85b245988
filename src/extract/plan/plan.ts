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

/** The decisions of an extraction, made before the first request. */
export interface Plan {
  readonly delivery: Delivery;
  readonly fullRefresh: boolean;
  /** True if the caller named the days: other runs with the same filters may want other days. */
  readonly isPartial: boolean;
  /** True if the end-day rule is proved before the first window is delivered, so that windows do not overlap (S7). */
  readonly proveFirst: boolean;
  /** True if no row may be delivered twice: a window whose end is not proved is held back. */
  readonly appends: boolean;
  readonly filters: Filters;
  readonly hashes: RequestHashes;
  /** True if an export of a single day contains that day; undefined while it is not proved. */
  readonly inclusive: boolean | undefined;
  /** True if an export of several days contains its `to_date`; undefined while it is not proved (S62). */
  readonly rangesInclusive: boolean | undefined;
  /** True if the configuration sets the end-day rule: then it is neither proved nor stored. */
  readonly ruleConfigured: boolean;
  readonly windowDays: number;
  /** Hours that a day must have been over before it is delivered (S61); undefined under `fresh`. */
  readonly settleHours: number | undefined;
  /** Number of days before the cursor that every run reads again. */
  readonly lookbackDays: number;
  /** Days to read, in order. */
  readonly days: readonly Day[];
  /** Days of `days` that are gaps unless this machine's clock is ahead: the answer to their request decides (S5). */
  readonly likelyGaps: readonly Day[];
  /**
   * True if a day that the service no longer exports is a gap, since it is wanted and not complete; else the plan is
   * clamped.
   */
  readonly isGap: (day: Day) => boolean;
  readonly onGap: 'fail' | 'warn';
  /** First wanted day; the cursor is the first incomplete day from here on. */
  readonly start: Day;
  /** True if no start is configured: `start` is then the oldest day that can be exported, by this machine's clock. */
  readonly startIsClamped: boolean;
  /** This machine's time when the plan was made (ms since 1970). */
  readonly plannedAt: number;
  /** Number of days for which the service still exports data. */
  readonly historyDays: number;
  readonly cursor: Day;
  readonly coverage: Coverage;
  readonly eventNames: readonly string[];
  readonly rowsOf: PriorLoads['rowsOf'];
  /** The state before the first window, with gaps recorded and hashes set. */
  readonly state: ExportState;
  readonly warnings: readonly PlanWarning[];
}

/**
 * Decides which days are read, and in which windows (S1-S7). Pure. Throws a StateError when the stored state must not
 * be used, and a configuration failure for impossible days.
 */
export function planRun(input: PlanInput): Plan {
  const { settings, prior, now } = input;
  const hashes = hashesOf(settings);
  const { state, startsOver } = checkState(prior.state, hashes, input);
  const coverage = startsOver ? new Coverage([], undefined) : Coverage.of(state, prior.covered);
  const bounds = boundsOf(input, startsOver ? undefined : state, coverage, now);
  const likelyGaps = likelyGapsOf(bounds, coverage);
  const days = wantedDays(bounds, input, coverage);
  const inclusive = ruleOf(settings.toDateInclusive, state?.to_date_inclusive);
  const cursor = coverage.cursor(bounds.start, now);
  const { columns: _columns, hashed: _hashed, gaps: recorded = [], ...kept } = state ?? {};
  const hashed = hashedAfter(state, settings);
  // Days that were lost under other filters are not lost under these.
  const gaps = startsOver ? [] : recorded;
  const proveFirst = input.delivery === 'settled' || input.fullRefresh === true;
  return {
    delivery: input.delivery,
    fullRefresh: input.fullRefresh === true,
    isPartial: input.from !== undefined || input.to !== undefined,
    proveFirst,
    appends: proveFirst && input.appends === true,
    filters: filtersOf(settings),
    hashes,
    inclusive,
    rangesInclusive: ruleOf(settings.toDateInclusive, state?.ranges_inclusive),
    ruleConfigured: settings.toDateInclusive !== 'auto',
    windowDays: Math.min(settings.windowDays, state?.max_window_days ?? settings.windowDays),
    settleHours: input.delivery === 'settled' ? settings.settleHours : undefined,
    lookbackDays: lookbackOf(input),
    days,
    likelyGaps,
    isGap: (day) => bounds.gapFrom !== undefined && day >= bounds.gapFrom && !coverage.has(day),
    onGap: settings.onGap,
    start: bounds.start,
    startIsClamped: bounds.startIsClamped,
    plannedAt: now,
    historyDays: settings.historyDays,
    cursor,
    coverage,
    eventNames: prior.eventNames,
    rowsOf: prior.rowsOf,
    state: {
      ...kept,
      version: 1,
      from_date: state === undefined || startsOver ? cursor : laterOf(state.from_date, cursor),
      start_date: bounds.start,
      ...stateHashes(hashes),
      ...(hashed !== undefined && { hashed }),
      ...(gaps.length > 0 && { gaps: [...gaps].sort() }),
      ...(startsOver && { by_cursor: true }),
    },
    warnings: [...(otherColumns(state, hashes) ? [OLD_FORM] : []), ...warningsOf(bounds, likelyGaps, cursor)],
  };
}

interface Bounds {
  readonly first: Day;
  readonly last: Day;
  /** First wanted day before any clamping. */
  readonly wanted: Day;
  readonly start: Day;
  readonly startIsClamped: boolean;
  readonly gapFrom: Day | undefined;
  readonly oldest: { readonly surely: Day; readonly probably: Day };
  readonly explicit: boolean;
}

function boundsOf(input: PlanInput, state: ExportState | undefined, coverage: Coverage, now: number): Bounds {
  const { settings, fullRefresh } = input;
  const oldest = oldestDays(now, settings.historyDays);
  const last = lastDayOf(input, now);
  if (input.from !== undefined && input.to !== undefined && input.from > input.to) {
    throw configError(`--from ${input.from} is after --to ${input.to}: nothing lies between them.`);
  }
  const remembered = settings.startDate ?? state?.start_date ?? state?.from_date;
  const unmoved = state === undefined || coverage.cursor(remembered ?? last, now) === state.start_date;
  // If no start is configured and nothing has been read yet, the start moves with the oldest day that can be exported.
  const floating = remembered === undefined || (settings.startDate === undefined && unmoved);
  const anyStart = floating ? laterOf(remembered ?? oldest.probably, oldest.probably) : remembered;
  const start = fullRefresh && state === undefined ? laterOf(anyStart, oldest.probably) : anyStart;
  const common = { last, start, startIsClamped: floating && start === oldest.probably, oldest };
  const moved = remembered !== undefined && remembered < start ? remembered : undefined;
  if (input.from !== undefined) {
    return { ...common, first: input.from, wanted: input.from, gapFrom: input.from, explicit: true };
  }
  if (fullRefresh) {
    const from = input.resume ? coverage.cursor(start, now) : anyStart;
    return { ...common, first: laterOf(from, oldest.probably), wanted: from, gapFrom: undefined, explicit: true };
  }
  const cursor = coverage.cursor(start, now);
  const wanted = laterOf(start, addDays(cursor, input.resume ? 0 : -lookbackOf(input)));
  const first = laterOf(wanted, earlierOf(cursor, oldest.probably));
  return { ...common, first, wanted: moved ?? wanted, gapFrom: floating ? undefined : cursor, explicit: false };
}

/** Number of lookback days; 0 under `settled`, where each day is read once (S7). */
const lookbackOf = ({ delivery, settings }: PlanInput): number => (delivery === 'settled' ? 0 : settings.lookbackDays);

function lastDayOf(input: PlanInput, now: number): Day {
  const { settings } = input;
  const latest = input.delivery === 'settled' ? lastSettledDay(now, settings.settleHours) : latestToday(now);
  const wanted = input.to ?? settings.endDate;
  return wanted === undefined ? latest : earlierOf(wanted, latest);
}

function likelyGapsOf(bounds: Bounds, coverage: Coverage): Day[] {
  if (bounds.gapFrom === undefined) return [];
  const lost = daysOf(laterOf(bounds.gapFrom, bounds.first), earlierOf(bounds.last, addDays(bounds.oldest.surely, -1)));
  return lost.filter((day) => !coverage.has(day));
}

function wantedDays(bounds: Bounds, input: PlanInput, coverage: Coverage): Day[] {
  const all = daysOf(bounds.first, bounds.last);
  // Some days after the cursor may be complete already (mapped tasks). They are not requested again, unless there is a
  // lookback: a receipt does not show that all late rows have arrived.
  if (bounds.explicit || lookbackOf(input) > 0) return all;
  const from = bounds.gapFrom ?? coverage.cursor(bounds.start, input.now);
  return all.filter((day) => day < from || !coverage.has(day));
}

const ruleOf = (configured: PlanSettings['toDateInclusive'], proved: boolean | undefined): boolean | undefined =>
  configured === 'auto' ? proved : configured === 'true';

function warningsOf(bounds: Bounds, likelyGaps: readonly Day[], cursor: Day): PlanWarning[] {
  const out: PlanWarning[] = [];
  if (likelyGaps.length > 0) out.push(gapWarning(likelyGaps));
  if (bounds.wanted < bounds.first && bounds.first <= bounds.last) out.push(clampWarning(bounds.wanted, bounds.first));
  if (bounds.gapFrom !== undefined && !bounds.explicit)
    out.push(...retentionLimitWarnings(cursor, bounds.last, bounds.oldest.probably));
  return out;
}

/**
 * `fresh`: days through today are read, and read again next time. `settled`: only days that have been over for a while
 * are read, each once.
 */
export type Delivery = 'fresh' | 'settled';

/** The effective delivery (S7): `auto` is `settled` for a stream that only appends rows, else `fresh`. */
export const deliveryOf = (configured: SourceConfig['delivery'], isPlainAppend: boolean): Delivery =>
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
  /**
   * True to resume at the state's cursor, where an earlier attempt stopped: without lookback, and a full refresh not
   * from its start.
   */
  readonly resume?: boolean | undefined;
  readonly prior: PriorLoads;
  /** This machine's time (ms since 1970). */
  readonly now: number;
}

/**
 * Checks the stored state against the requests of this run (S6). `startsOver`: a full refresh meets other filters, or a
 * cursor in the future, so that the target's contents do not count. Throws a StateError if the state must not be used.
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
    'Other columns are dropped or hashed than before, or under another key: rows of days that the service no longer exports keep the old form.',
};
