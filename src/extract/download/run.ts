import type { Day } from '../../base/days.ts';
import type { CheckedFile } from '../day-download.ts';
import { toDateOf } from '../export-request.ts';
import type { ExtractDeps } from '../extract-deps.ts';
import type { DownloadPlan } from '../plan/which-days.ts';
import { RunFolder } from '../spool.ts';

/** What the downloads of one run share: its plan, its folder, and what answers have shown of the service. */
export class Run {
  readonly plan: DownloadPlan;
  readonly deps: ExtractDeps;
  readonly folder: RunFolder;
  /** The caller's signal combined with the end of the run. */
  readonly signal: AbortSignal;
  /** False if files end without a line end; undefined while it is not known. */
  finalNewline: boolean | undefined;
  /** The newest day that the service no longer exports: it exports none before it. */
  goneThrough: Day | undefined;
  /** Event names of all downloads. */
  readonly eventNames = new Set<string>();
  /** True once the service has exported a day as CSV, in this run or an earlier one. */
  exportsDays: boolean;
  readonly #end = new AbortController();

  private constructor(plan: DownloadPlan, deps: ExtractDeps, folder: RunFolder) {
    this.plan = plan;
    this.deps = deps;
    this.folder = folder;
    this.signal = AbortSignal.any([deps.signal, this.#end.signal]);
    this.finalNewline = plan.state?.final_newline;
    this.exportsDays = plan.receipts.size > 0;
  }

  static async open(plan: DownloadPlan, deps: ExtractDeps): Promise<Run> {
    return new Run(plan, deps, await RunFolder.open(deps.spoolDir, deps.clock, 'spool'));
  }

  /** Whether an export includes its `to_date`; undefined while it is not known. */
  get toDateInclusive(): boolean | undefined {
    return this.deps.counts.toDateInclusive ?? this.plan.toDateInclusive;
  }

  /** The `to_date` with which a day is requested. */
  toDateOf(day: Day): Day {
    return toDateOf(day, this.toDateInclusive);
  }

  /** Records what one day proves about the end of an export. */
  recordEndDay(isIncluded: boolean, day: Day): void {
    this.deps.counts.toDateInclusive = isIncluded;
    const message = `The export of ${day} proves that to_date is ${isIncluded ? 'included' : 'not included'}.`;
    this.deps.logger.info('end_day.proved', message, { day, to_date_inclusive: isIncluded });
  }

  /** Records that a day was exported as CSV. */
  recordExported({ scan }: CheckedFile): void {
    for (const name of scan.eventNames) this.eventNames.add(name);
    this.finalNewline = scan.finalNewline;
    this.exportsDays = true;
  }

  /** Ends all requests. */
  abort(): void {
    this.#end.abort(new Error('the run has ended'));
  }
}
