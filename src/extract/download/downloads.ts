import { type Day, nameDays } from '../../base/days.ts';
import { configError } from '../../base/errors.ts';
import { NOT_FOUND } from '../../service/export/outcomes.ts';
import { lastDayOver, oldestDay } from '../calendar.ts';
import type { ExtractDeps } from '../extract-deps.ts';
import { Spool } from '../spool.ts';
import type { DownloadPlan } from '../which-days.ts';
import { type DayResult, type DownloadDeps, downloadDay, ServiceBehaviour } from './day.ts';

/** The newest days that a first run asks for before all others, until one comes as CSV. */
const MAX_PROOFS = 7;

const daysOver = ({ days }: DownloadPlan, now: number): Day[] => days.filter((day) => day <= lastDayOver(now));

/** Downloads the days of a plan, several at once, and delivers them in order. */
export class Downloads {
  readonly behaviour: ServiceBehaviour;
  readonly #deps: DownloadDeps;
  readonly #end: AbortController;
  /** The days that were started and not delivered. */
  readonly #started = new Map<Day, Promise<DayResult>>();

  private constructor(deps: DownloadDeps, end: AbortController) {
    this.behaviour = deps.behaviour;
    this.#deps = deps;
    this.#end = end;
  }

  static async open(plan: DownloadPlan, deps: ExtractDeps): Promise<Downloads> {
    const spool = await Spool.open(deps.spoolDir, deps.clock);
    const end = new AbortController();
    const signal = AbortSignal.any([deps.signal, end.signal]);
    const over = daysOver(plan, deps.clock.now());
    const findEndDayOn = plan.includesEnd === undefined ? over.at(-1) : undefined;
    const behaviour = new ServiceBehaviour(plan);
    return new Downloads({ ...deps, signal, plan, spool, behaviour, findEndDayOn }, end);
  }

  /**
   * The results in the order of days; at most `maxConcurrentExports` days are downloaded ahead. Throws a failure that
   * ends the run when the turn of its day comes.
   */
  async *results(): AsyncGenerator<DayResult, void, undefined> {
    const { plan, signal } = this.#deps;
    await this.#sendFirst();
    this.#startFrom(0);
    for (const [i, day] of plan.days.entries()) {
      const result = await this.#download(day);
      signal.throwIfAborted();
      this.#started.delete(day);
      this.#startFrom(i + 1);
      yield result;
    }
  }

  #startFrom(i: number): void {
    const { plan, maxConcurrentExports } = this.#deps;
    for (const day of plan.days.slice(i, i + maxConcurrentExports)) this.#download(day);
  }

  /** Ends all downloads and removes their files. */
  async close(): Promise<void> {
    this.#end.abort(new Error('the run has ended'));
    await Promise.allSettled(this.#started.values());
    await this.#deps.spool.remove();
  }

  /**
   * Sends, one after the other, the requests on which others depend. First the day that shows whether an export
   * includes its end. Then, in a first run, the newest days that are over, until one proves that the service exports
   * days. Then the newest day that is probably lost: all days before a lost one are lost, too.
   */
  async #sendFirst(): Promise<void> {
    const { plan, clock, findEndDayOn } = this.#deps;
    const now = clock.now();
    if (findEndDayOn !== undefined) await this.#resultAlone(findEndDayOn);
    await this.#proveExports(daysOver(plan, now).slice(-MAX_PROOFS));
    const oldest = oldestDay(now, plan.settings.historyDays);
    const lost = plan.days.findLast((day) => day < oldest);
    if (lost !== undefined) await this.#resultAlone(lost);
  }

  /** Throws a configuration failure if all of these days are answered with 404: the address knows no export. */
  async #proveExports(days: readonly Day[]): Promise<void> {
    const codes = new Set<string>();
    for (const day of days.toReversed()) {
      if (this.behaviour.exportsDays) return;
      const result = await this.#resultAlone(day);
      if (result.kind !== 'empty') return;
      codes.add(result.answer.code);
    }
    if (codes.size === 1 && codes.has(NOT_FOUND))
      throw configError(`The service knows no export under base_url (404) for ${nameDays(days)}: is base_url right?`);
  }

  /** The result of a day on which others depend. Throws if the service has given no answer at all. */
  async #resultAlone(day: Day): Promise<DayResult> {
    const result = await this.#download(day);
    if (result.kind === 'failed' && this.#deps.counts.exports === 0) throw result.error;
    return result;
  }

  /** The result of a day, whose download begins unless it has. */
  #download(day: Day): Promise<DayResult> {
    const started = this.#started.get(day);
    if (started !== undefined) return started;
    const result = downloadDay(day, this.#deps);
    this.#started.set(day, result);
    // A failure is thrown when it is the turn of its day.
    result.catch(() => {});
    return result;
  }
}
