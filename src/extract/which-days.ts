// Which days a run reads, from its state, receipts, configuration and time.

import { HOUR_MS } from '../base/clock.ts';
import { addDays, type Day, daysOf, earlierOf, formatDays, laterOf } from '../base/days.ts';
import { configError } from '../base/errors.ts';
import { groupBy } from '../base/group.ts';
import type { LogEvent, Logger } from '../base/log.ts';
import { lastDayBegunAnywhere, lastDayOver, oldestExportedDay, todayIn } from './calendar.ts';
import { hasOtherFilters, type ReceiptSummary, type ReceiptsByDay } from './checked-day.ts';
import { type ExportSettings, fingerprintsOf, type SettingsFingerprints } from './export-settings.ts';
import { checkState, type ExportState, isComplete } from './export-state.ts';
import { isImplausible } from './plausibility.ts';

/** Days after a day was over in which the rest of it may still come. */
const READ_AGAIN_DAYS = 7;

export interface PlanInput {
  readonly settings: ExportSettings;
  /** Plain append: no row can be taken back. Only days over for `settleHours` are read, each once. Default false. */
  readonly appends?: boolean | undefined;
  /** The first and last day to read, both included (`--from`, `--to`). Without `from` the cursor counts. */
  readonly from?: Day | undefined;
  readonly to?: Day | undefined;
  readonly fullRefresh?: boolean | undefined;
  /** The stored state and receipts of earlier loads; none before the first run, and of a target that stores nothing. */
  readonly state?: ExportState | undefined;
  readonly receipts?: ReceiptsByDay | undefined;
  /** This machine's time (ms since 1970). */
  readonly now: number;
}

/** The decisions of a run, made before the first request. */
export interface RunPlan {
  readonly settings: ExportSettings;
  readonly fingerprints: SettingsFingerprints;
  readonly appends: boolean;
  /** The state before the run; undefined before the first commit. */
  readonly state: ExportState | undefined;
  readonly receipts: ReceiptsByDay;
  /** The start: that of the state, if it has one. */
  readonly start: Day;
  /** The first day that is most likely still exported, and the last that may be read. */
  readonly oldestDay: Day;
  readonly lastDay: Day;
  /** `named`: the caller named the days (`--from`). `refresh`: all days are read again (`--full-refresh`). */
  readonly mode: 'sync' | 'named' | 'refresh';
  /** The days to read, in order. */
  readonly days: readonly Day[];
  /** The day `lookback_days` before the first one to load. */
  readonly oldestLookbackDay?: Day | undefined;
  /** What the user is told before anything is sent. */
  readonly notes: readonly LogEvent[];
}

/** What the days of a run are chosen by. */
type DayCriteria = Omit<RunPlan, 'mode' | 'days' | 'oldestLookbackDay' | 'notes'>;

/** The cursor before the run. */
export const cursorOf = ({ state, start }: Pick<RunPlan, 'state' | 'start'>): Day => state?.from_date ?? start;

/** Whether an export includes its `to_date`: as the setting says, else as a run has proved; undefined: not known. */
export const includesToDateOf = ({ settings, state }: Pick<RunPlan, 'settings' | 'state'>): boolean | undefined =>
  settings.toDateInclusive === 'auto' ? state?.to_date_inclusive : settings.toDateInclusive === 'true';

/** The `to_date` with which a day is requested. Unless an export includes it, rows may come with two days. */
export const toDateOf = (day: Day, includesToDate: boolean | undefined): Day =>
  includesToDate === true ? day : addDays(day, 1);

export function logNotes({ notes }: RunPlan, logger: Logger): void {
  for (const { level, event, message } of notes) logger[level](event, message);
}

/**
 * Decides which days are read. Pure. Throws a configuration failure for a state that must not be used, and for impossible
 * days.
 *
 *   mode           reads
 *   named          every day from `--from` on, up to `--to` or the last that can be read
 *   refresh        every day from the start on, and every stored one, that is still exported, but for pruned days
 *   sync           the days from the cursor on that are not complete; `lookback_days` before the first of them; and
 *                  the days that are read again
 */
export function planRun(input: PlanInput): RunPlan {
  const { settings, state, now, from, to, appends = false, fullRefresh = false } = input;
  const receipts: ReceiptsByDay = input.receipts ?? new Map();
  const fingerprints = fingerprintsOf(settings);
  checkState(state, fingerprints, { now, fullRefresh });
  if (fullRefresh && (from !== undefined || to !== undefined))
    throw configError('--full-refresh reads all days: leave --from and --to out.');
  checkBegun('--from', from, now);
  if (state === undefined) checkBegun('start_date', settings.startDate, now);
  const oldestDay = oldestExportedDay(now, settings.historyDays);
  const start = state?.start_date ?? startBeforeFirstCommit(input, oldestDay);
  const lastDay = lastDayOf(input);
  const criteria = { settings, fingerprints, appends, state, receipts, start, oldestDay, lastDay };
  if (from !== undefined) return planNamedDays(from, input, criteria);
  return fullRefresh ? planRefreshDays(criteria) : planSyncDays(criteria);
}

/** A day that has not begun anywhere is a typing error: a run would read nothing, for a year perhaps. */
function checkBegun(name: string, day: Day | undefined, now: number): void {
  const today = lastDayBegunAnywhere(now);
  if (day !== undefined && day > today)
    throw configError(`${name} ${day} has not begun: no time zone is further than ${today}.`);
}

/** The start before the first commit. A state that another program made may have a cursor alone. */
function startBeforeFirstCommit({ settings: { startDate }, state, from }: PlanInput, oldestDay: Day): Day {
  const start = startDate === undefined ? (from ?? oldestDay) : laterOf(startDate, oldestDay);
  return state === undefined ? start : earlierOf(start, state.from_date);
}

function lastDayOf({ settings, appends, to, now }: PlanInput): Day {
  const latest = appends ? lastDayOver(now - settings.settleHours * HOUR_MS) : todayIn(settings.timezone, now);
  return earlierOf(to ?? settings.endDate ?? latest, latest);
}

const note = (level: 'info' | 'warn', event: string, message: string): LogEvent => ({ level, event, message });

function planNamedDays(from: Day, { settings, to, now }: PlanInput, criteria: DayCriteria): RunPlan {
  const { lastDay } = criteria;
  if (from > lastDay) {
    const { timezone = 'UTC' } = settings;
    throw configError(
      `--from ${from} is after ${lastDay}, the last day: that of --to or end_date, or today in ${timezone}.`,
    );
  }
  const days = daysOf(from, lastDay);
  const openDays = days.filter((day) => day > lastDayOver(now));
  const message = `Not over everywhere yet: ${formatDays(openDays)}. What is loaded of this may not be all.`;
  const notes = to !== undefined && openDays.length > 0 ? [note('warn', 'plan.open_day', message)] : [];
  return { ...criteria, mode: 'named', days, notes };
}

function planRefreshDays(criteria: DayCriteria): RunPlan {
  const { receipts, start, oldestDay, lastDay } = criteria;
  const notes = startWarnings(criteria);
  const isPruned = (day: Day) => receipts.get(day)?.pruned === true;
  const olderDays = [...receipts.keys()].filter((day) => day < oldestDay && !isPruned(day)).sort();
  if (olderDays.length > 0) {
    const message =
      `Days before ${oldestDay} can no longer be exported: ${formatDays(olderDays)} stay as they are. ` +
      'Filters, columns_drop and columns_hash do not change them.';
    notes.push(note('warn', 'plan.older_days', message));
  }
  // `--from` may have loaded days before the start, and earlier runs days after `end_date`.
  const storedDays = [...receipts.keys()].filter((day) => day >= oldestDay);
  const days = union(daysOf(laterOf(start, oldestDay), lastDay), storedDays).filter((day) => !isPruned(day));
  return { ...criteria, mode: 'refresh', days, notes };
}

function planSyncDays(criteria: DayCriteria): RunPlan {
  const { settings, receipts, appends, state, start, oldestDay, lastDay } = criteria;
  const gaps = new Set(state?.gaps);
  const incompleteDays = daysOf(cursorOf(criteria), lastDay).filter((day) => !isComplete(day, receipts, gaps));
  // Only `--from` reads a gap, or a day whose rows were removed.
  const isReadable = (day: Day) =>
    day >= oldestDay && day <= lastDay && !gaps.has(day) && receipts.get(day)?.pruned !== true;
  const suspectDays = emptyOrImplausibleDays(receipts, includesToDateOf(criteria), appends).filter(
    (day) => day >= start,
  );
  const daysOfOtherFilters = [...receipts.keys()].filter((day) => isOfOtherFilters(day, criteria));
  const daysReadAgain = union(suspectDays, daysOfOtherFilters).filter(isReadable);
  const notes = [
    ...startWarnings(criteria),
    ...readAgainNotes(daysReadAgain, criteria),
    ...(appends ? sentEarlyWarnings(incompleteDays, criteria) : []),
  ];
  const plan = { ...criteria, mode: 'sync', notes } as const;
  const [firstIncomplete] = incompleteDays;
  if (appends || firstIncomplete === undefined) return { ...plan, days: union(daysReadAgain, incompleteDays) };
  const oldestLookbackDay = addDays(firstIncomplete, -settings.lookbackDays);
  const lookbackDays = daysOf(laterOf(oldestLookbackDay, start), addDays(firstIncomplete, -1)).filter(isReadable);
  const days = union(lookbackDays, daysReadAgain, incompleteDays);
  return { ...plan, days, oldestLookbackDay };
}

/** True if a day was requested a week after it was over: it is not read again. */
export const wasReadForLastTime = (day: Day, { requested_at }: Pick<ReceiptSummary, 'requested_at'>): boolean =>
  day <= addDays(lastDayOver(Date.parse(requested_at)), -READ_AGAIN_DAYS);

/**
 * The empty or implausible days, but for those that were requested a week after they were over. An empty day whose
 * request asked for too little does not count as requested. Plain append reads only days without rows again.
 */
export function emptyOrImplausibleDays(
  receipts: ReceiptsByDay,
  includesToDate: boolean | undefined,
  appends = false,
): readonly Day[] {
  const isReadAgain = ([day, receipt]: readonly [Day, ReceiptSummary]) => {
    const { rows, is_over, pruned, to_date } = receipt;
    if (!is_over || pruned === true) return false;
    if (rows === 0 && includesToDate === false && to_date === day) return true;
    if (wasReadForLastTime(day, receipt)) return false;
    return rows === 0 || (!appends && isImplausible(day, receipts));
  };
  return [...receipts].filter(isReadAgain).map(([day]) => day);
}

const isOfOtherFilters = (day: Day, { receipts, fingerprints }: DayCriteria): boolean =>
  hasOtherFilters(receipts.get(day), fingerprints.filtersHash);

const union = (...lists: readonly (readonly Day[])[]): Day[] => [...new Set(lists.flat())].sort();

/** Why days are read again that are over. */
function readAgainNotes(daysReadAgain: readonly Day[], criteria: DayCriteria): LogEvent[] {
  const reasonOf = (day: Day) => {
    if (isOfOtherFilters(day, criteria)) return 'they were loaded with other filters or columns';
    return criteria.receipts.get(day)?.rows === 0
      ? 'they had no rows, and the provider may be late'
      : 'they had far fewer rows than usual';
  };
  return [...groupBy(daysReadAgain, reasonOf)].map(([reason, days]) =>
    note('info', 'plan.read_again', `Read again, since ${reason}: ${formatDays(days)}.`),
  );
}

/** Warns of rows that come twice if the destination keeps all: another sync mode sends days that are not over. */
function sentEarlyWarnings(incompleteDays: readonly Day[], { receipts }: DayCriteria): LogEvent[] {
  const days = incompleteDays.filter((day) => (receipts.get(day)?.rows ?? 0) > 0);
  if (days.length === 0) return [];
  const message =
    `${formatDays(days)} had rows in another sync mode before the day was over, and they come again. ` +
    "Clear the stream's data if they should not.";
  return [note('warn', 'plan.sent_early', message)];
}

/** Warns if days after `start_date` are not read. */
function startWarnings({ settings, receipts, state, start, oldestDay }: DayCriteria): LogEvent[] {
  const { startDate = start } = settings;
  if (state === undefined) {
    const message = `Days before ${start} can no longer be exported: reading from ${start} instead of ${startDate}.`;
    return startDate < start ? [note('warn', 'plan.shortened', message)] : [];
  }
  const unreadDays = daysOf(laterOf(startDate, oldestDay), addDays(start, -1)).filter((day) => !receipts.has(day));
  if (unreadDays.length === 0) return [];
  const message =
    `start_date is before ${start}, the start of the first load, and ${formatDays(unreadDays)} can still be exported. ` +
    `Read them with sync … --from ${unreadDays[0]} --to ${unreadDays.at(-1)}; under Airbyte, clear the stream.`;
  return [note('warn', 'plan.earlier_start', message)];
}
