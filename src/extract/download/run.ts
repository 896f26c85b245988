import { join } from 'node:path';
import { type Day, laterOf } from '../../base/days.ts';
import { formatDuration, HOUR_MS } from '../../base/durations.ts';
import { configError } from '../../base/errors.ts';
import type { ExportAnswer } from '../../service/export/protocol.ts';
import { toDateOf } from '../export-request.ts';
import type { Plan } from '../plan/which-days.ts';
import type { ExtractDeps } from '../session.ts';
import { RunFolder } from '../spool.ts';

/** Differences between the clocks (ms) from which a run warns, and from which it ends. */
const CLOCK_WARNING_MS = HOUR_MS;
const CLOCK_LIMIT_MS = 12 * HOUR_MS;

/**
 * Compares the clock of this machine (ms) with that of the service. A sentence if they are more than an hour apart; throws
 * a configuration failure above twelve.
 */
export function clockWarning(machine: number, { serverTime: service }: ExportAnswer): string | undefined {
  if (service === undefined) return undefined;
  const apart = Math.abs(machine - service);
  if (apart <= CLOCK_WARNING_MS) return undefined;
  const [here, there] = [new Date(machine).toISOString(), new Date(service).toISOString()];
  const message = `The clock of this machine (${here}) and that of the service (${there}) are ${formatDuration(apart)} apart`;
  if (apart > CLOCK_LIMIT_MS) throw configError(`${message}: set this clock right, nothing was stored with it.`);
  return `${message}.`;
}

/** What the downloads of one run share: its plan, its folder, and what answers have shown of the service. */
export class Run {
  readonly plan: Plan;
  readonly deps: ExtractDeps;
  /** The caller's signal combined with the end of the run. */
  readonly signal: AbortSignal;
  /** Whether an export includes its `to_date`; undefined while it is not known. */
  toDateInclusive: boolean | undefined;
  /** True if this run has found that out. */
  isEndDayProved = false;
  /** False if files end without a line end; undefined while it is not known. */
  finalNewline: boolean | undefined;
  /** The newest day that the service no longer exports: it exports none before it. */
  goneThrough: Day | undefined;
  /** Event names of all downloads. */
  readonly eventNames = new Set<string>();
  /** True once the service has exported a day as CSV, in this run or an earlier one. */
  exportsDays: boolean;
  /** True once the service has answered in any way. */
  hasAnswered = false;
  readonly #folder: RunFolder;
  readonly #end: AbortController;
  /** Number of requests that the service object had sent before all that is counted. */
  readonly #sentBefore: number;
  #files = 0;
  #isWarnedOfClock = false;

  private constructor(plan: Plan, deps: ExtractDeps, folder: RunFolder) {
    this.plan = plan;
    this.deps = deps;
    this.#folder = folder;
    this.#end = new AbortController();
    this.signal = AbortSignal.any([deps.signal, this.#end.signal]);
    this.toDateInclusive = plan.toDateInclusive;
    this.finalNewline = plan.state?.final_newline;
    this.exportsDays = plan.receipts.size > 0;
    this.#sentBefore = deps.service.sent - deps.counts.exports;
  }

  static async open(plan: Plan, deps: ExtractDeps): Promise<Run> {
    return new Run(plan, deps, await RunFolder.open(deps.spoolDir, deps.clock, 'spool'));
  }

  /** Path of the private folder of the run. */
  get folder(): string {
    return this.#folder.path;
  }

  newPath(): string {
    return join(this.#folder.path, `${++this.#files}.csv`);
  }

  /** The `to_date` with which a day is requested. */
  toDateOf(day: Day): Day {
    return toDateOf(day, this.toDateInclusive);
  }

  /** Records what one day proves about the end of an export. */
  recordEndDay(isIncluded: boolean, day: Day): void {
    this.toDateInclusive = isIncluded;
    this.isEndDayProved = true;
    this.deps.counts.toDateInclusive = isIncluded;
    const message = `The export of ${day} proves that to_date is ${isIncluded ? 'included' : 'not included'}.`;
    this.deps.logger.info('end_day.proved', message, { day, to_date_inclusive: isIncluded });
  }

  recordGone(day: Day): void {
    this.goneThrough = laterOf(day, this.goneThrough ?? day);
  }

  /** Records that a day was exported as CSV. */
  recordExported(eventNames: readonly string[]): void {
    for (const name of eventNames) this.eventNames.add(name);
    this.exportsDays = true;
  }

  /** Counts the requests that were sent. */
  countExports(): void {
    this.deps.counts.exports = this.deps.service.sent - this.#sentBefore;
  }

  /**
   * Records that the service answered, and compares its clock with that of this machine. Warns once above an hour; throws
   * a configuration failure above twelve, since the wrong days would be read.
   */
  recordAnswer(answer: ExportAnswer): void {
    this.hasAnswered ||= answer.kind === 'data' || answer.status !== undefined;
    const warning = clockWarning(this.deps.clock.now(), answer);
    if (warning === undefined || this.#isWarnedOfClock) return;
    this.#isWarnedOfClock = true;
    this.deps.logger.warn('clock.apart', warning);
  }

  /** Ends all requests. */
  abort(): void {
    this.#end.abort(new Error('the run has ended'));
  }

  /** Removes the folder, once all requests have ended. */
  close(): Promise<void> {
    return this.#folder.remove();
  }
}
