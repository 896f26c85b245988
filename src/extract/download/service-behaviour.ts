import type { Day } from '../../base/days.ts';
import type { DownloadPlan } from '../which-days.ts';

/** How the service behaves, as far as its answers have shown. The first export of a run tells the others. */
export class ServiceBehaviour {
  /** Whether an export includes its `to_date`; undefined while it is not known. */
  includesEnd: boolean | undefined;
  /** False if files end without a line end; undefined while it is not known. */
  finalNewline: boolean | undefined;
  /** True once it has exported a day as CSV, in this run or an earlier one. */
  exportsDays: boolean;
  /** The newest day that it no longer exports: it exports none before it. */
  goneThrough: Day | undefined;
  /** Event names of all downloads. */
  readonly eventNames = new Set<string>();

  constructor({ state, receipts, includesEnd }: DownloadPlan) {
    this.includesEnd = includesEnd;
    this.finalNewline = state?.final_newline;
    this.exportsDays = receipts.size > 0;
  }
}
