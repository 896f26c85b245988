import { type Day, earlierOf } from '../../base/days.ts';
import { formatDuration } from '../../base/durations.ts';
import type { ExtractDeps } from '../deps.ts';
import { CLOCK_TOLERANCE_MS, type DayRange, lengthOf, oldestDays } from '../plan/days.ts';
import type { Plan } from '../plan/plan.ts';
import type { ExportState } from '../window.ts';

/** What answers have shown of the service. */
interface Known {
  /** True if an export of a single day contains that day; undefined while it is not known. */
  readonly singleDaysInclusive: boolean | undefined;
  /** True if an export of several days contains its `to_date`; undefined while it is not known. */
  readonly rangesInclusive: boolean | undefined;
  /** False if bodies end without a line end, as two identical downloads have shown; true if some end with one. */
  readonly finalNewline: boolean | undefined;
  /** Maximum number of days of a window, after a larger one was too large. */
  readonly maxWindowDays: number | undefined;
  /** Number of parts by event names into which the last day that was too large was split. */
  readonly nameGroups: number | undefined;
  /** The latest `to_date` to send, after the service refused a later one. */
  readonly latestToDate: Day | undefined;
  /** The oldest day of which the service has sent rows: it exports the days after it, too. */
  readonly oldestExported: Day | undefined;
  /** True once an export of this or an earlier run had data, which shows that the filters are valid. */
  readonly answered: boolean;
  /** Event names of all downloads. */
  readonly names: ReadonlySet<string>;
}

/** The facts about the service: those of the stored state, and those that answers have shown since. */
export class ServiceFacts {
  readonly #plan: Plan;
  readonly #deps: ExtractDeps;
  #known: Known;
  /** The service's clock minus this machine's (ms): the smallest value that a `Date` header has shown. */
  #aheadMs: number | undefined;
  #isWarned = false;

  constructor(plan: Plan, deps: ExtractDeps) {
    const { final_newline, max_window_days, name_groups, last_receipt } = plan.state;
    this.#plan = plan;
    this.#deps = deps;
    this.#known = {
      singleDaysInclusive: plan.singleDaysInclusive,
      rangesInclusive: plan.rangesInclusive,
      finalNewline: final_newline,
      maxWindowDays: max_window_days,
      nameGroups: name_groups,
      latestToDate: undefined,
      oldestExported: undefined,
      // An earlier run with these filters received data, which shows that they are valid.
      answered: last_receipt !== undefined && !plan.fullRefresh,
      names: new Set(),
    };
  }

  /** What is known now: never changed, but replaced when an answer shows more. */
  get known(): Known {
    return this.#known;
  }

  /** Records the rule for single days, which the export of `day` proves. */
  recordSingleDays(inclusive: boolean, day: Day): void {
    if (this.#known.singleDaysInclusive === inclusive) return;
    this.#update({ singleDaysInclusive: inclusive });
    this.#deps.counts.singleDaysInclusive = inclusive;
    const message = `The export of ${day} proves that to_date is ${inclusive ? 'included' : 'not included'}.`;
    this.#deps.logger.info('rule.proved', message, { window: day, to_date_inclusive: inclusive });
  }

  /** Records that several days do not contain their `to_date`, which an export proves. */
  recordRangesExclusive(): void {
    this.#update({ rangesInclusive: false });
  }

  /** Records that several days contain their `to_date`, which an export proves. */
  recordRangesInclusive({ from, to }: { readonly from: Day; readonly to: Day }): void {
    this.#update({ rangesInclusive: true });
    const message = `The export of ${from} to ${to} proves that several days contain their to_date.`;
    this.#deps.logger.info('rule.ranges_proved', message, { window: from, to_date_inclusive: true });
  }

  /** Records how a body that is accepted as complete ends: one line end shows that bodies have them. */
  recordEnd(finalNewline: boolean): void {
    if (finalNewline || this.#known.finalNewline === undefined) this.#update({ finalNewline });
  }

  recordNames(names: readonly string[]): void {
    this.#update({ answered: true, names: new Set([...this.#known.names, ...names]) });
  }

  recordNameGroups(parts: number): void {
    this.#update({ nameGroups: Math.max(1, parts) });
  }

  limitToDate(latestToDate: Day): void {
    this.#update({ latestToDate });
  }

  /** Records that the service has sent rows of days from `first` on, however old they are by `history_days`. */
  recordExported(first: Day): void {
    this.#update({ oldestExported: earlierOf(first, this.#known.oldestExported ?? first) });
  }

  /** Limits later windows to half as many days as this one, or fewer. Returns that number. */
  halveWindowDays(days: DayRange): number {
    const count = Math.ceil(lengthOf(days) / 2);
    this.#update({ maxWindowDays: Math.min(count, this.#known.maxWindowDays ?? count) });
    return count;
  }

  /** Records a `Date` header (ms since 1970). Warns once a run if the clocks differ too much. */
  recordTime(service: number | undefined): void {
    if (service === undefined) return;
    const { clock, logger } = this.#deps;
    const machine = clock.now();
    this.#aheadMs = Math.min(service - machine, this.#aheadMs ?? Number.POSITIVE_INFINITY);
    if (this.#isWarned || Math.abs(machine - service) <= CLOCK_TOLERANCE_MS) return;
    this.#isWarned = true;
    const apart = formatDuration(Math.abs(machine - service));
    logger.warn(
      'clock.apart',
      `This machine's clock and the service's are ${apart} apart: the earlier one decides which days are over.`,
      { machine: new Date(machine).toISOString(), service: new Date(service).toISOString() },
    );
  }

  /** The time by the earlier of the two clocks, as far as the service's is known (ms since 1970). */
  earlierTime(): number {
    return this.#deps.clock.now() + Math.min(0, this.#aheadMs ?? 0);
  }

  /**
   * True if the day can no longer be exported by the service's clock either, so that it need not be requested.
   * Rows of an older day show that it can.
   */
  isSurelyGone(day: Day): boolean {
    const { oldestExported } = this.#known;
    if (this.#aheadMs === undefined || (oldestExported !== undefined && day >= oldestExported)) return false;
    return day < oldestDays(this.earlierTime(), this.#plan.historyDays).surely;
  }

  /** True if the service most likely exports the day by the configured history. */
  isInHistory(day: Day): boolean {
    return day >= oldestDays(this.earlierTime(), this.#plan.historyDays).probably;
  }

  /** The facts to store with `state`; a configured rule is not stored. */
  stored(state: ExportState): Partial<ExportState> {
    const { singleDaysInclusive, rangesInclusive, finalNewline, maxWindowDays, nameGroups } = this.#known;
    const { ruleConfigured } = this.#plan;
    return {
      ...(!ruleConfigured && singleDaysInclusive !== undefined && { to_date_inclusive: singleDaysInclusive }),
      ...(!ruleConfigured && rangesInclusive !== undefined && { ranges_inclusive: rangesInclusive }),
      ...((finalNewline === false || state.final_newline === false) && { final_newline: finalNewline === true }),
      ...(maxWindowDays !== undefined && { max_window_days: maxWindowDays }),
      ...(nameGroups !== undefined && { name_groups: nameGroups }),
    };
  }

  #update(facts: Partial<Known>): void {
    this.#known = { ...this.#known, ...facts };
  }
}

/** The keys of the state that `stored` writes. */
const STORED = ['to_date_inclusive', 'ranges_inclusive', 'final_newline', 'max_window_days', 'name_groups'] as const;

/** The facts about the service in a state. */
export const factsIn = (state: ExportState): Partial<ExportState> =>
  Object.fromEntries(STORED.filter((key) => state[key] !== undefined).map((key) => [key, state[key]]));
