import { type Day, laterOf } from '../../base/days.ts';
import { formatDuration, HOUR_MS } from '../../base/durations.ts';
import type { Plan } from '../plan/which-days.ts';
import type { ExtractDeps } from '../session.ts';

/** The facts about the service: those of the stored state, and those that answers have shown since. */
export class ServiceFacts {
  /** Whether an export includes its `to_date`; undefined while it is not known. */
  toDateInclusive: boolean | undefined;
  /** True once the run has tried to find that out. */
  isEndDayAsked = false;
  /** False if files end without a line end. */
  finalNewline: boolean | undefined;
  /** The newest day that the service no longer exports: it exports none before it. */
  goneThrough: Day | undefined;
  /** Event names of all downloads. */
  readonly eventNames = new Set<string>();
  /** True once the service has exported a day as CSV in this run. */
  hasExported = false;
  readonly #deps: ExtractDeps;
  /** The service's clock minus this machine's (ms): the smallest value that a `Date` header has shown. */
  #aheadMs: number | undefined;
  #isWarned = false;

  constructor(plan: Plan, deps: ExtractDeps) {
    this.#deps = deps;
    this.toDateInclusive = plan.toDateInclusive;
    this.finalNewline = plan.state?.final_newline;
  }

  /** Records what one day proves about the end of an export. */
  recordEndDay(isInclusive: boolean, day: Day): void {
    this.toDateInclusive = isInclusive;
    this.#deps.counts.toDateInclusive = isInclusive;
    const message = `The export of ${day} proves that to_date is ${isInclusive ? 'included' : 'not included'}.`;
    this.#deps.logger.info('end_day.proved', message, { day, to_date_inclusive: isInclusive });
  }

  recordGone(day: Day): void {
    this.goneThrough = laterOf(day, this.goneThrough ?? day);
  }

  /** Records that a day was exported as CSV. */
  recordExported(names: readonly string[]): void {
    for (const name of names) this.eventNames.add(name);
    this.hasExported = true;
  }

  /** Records a `Date` header (ms since 1970). Warns once if the clocks differ. */
  recordTime(service: number | undefined): void {
    const { clock, logger } = this.#deps;
    const machine = clock.now();
    if (service === undefined) return;
    this.#aheadMs = Math.min(service - machine, this.#aheadMs ?? Number.POSITIVE_INFINITY);
    if (this.#isWarned || Math.abs(machine - service) <= HOUR_MS) return;
    this.#isWarned = true;
    const apart = formatDuration(Math.abs(machine - service));
    const message = `The clocks of this machine and of the service are ${apart} apart: the earlier one decides which days are over.`;
    logger.warn('clock.apart', message, {
      machine: new Date(machine).toISOString(),
      service: new Date(service).toISOString(),
    });
  }

  /** True once an answer of the service told its time. */
  get hasAnswered(): boolean {
    return this.#aheadMs !== undefined;
  }

  /** The time by the earlier of the two clocks, as far as the service's is known (ms since 1970). */
  earlierTime(): number {
    return this.#deps.clock.now() + Math.min(0, this.#aheadMs ?? 0);
  }
}
