import type { Day } from '../base/days.ts';

/** What a target has stored about earlier loads. */
export interface PriorLoads {
  /** As stored; parsed and checked by the plan. */
  readonly state: unknown;
  /** Days that committed receipts cover; empty where only the state is kept. */
  readonly covered: ReadonlySet<Day>;
  /** Event names seen so far, for a day that must be split. */
  readonly eventNames: readonly string[];
  /** Rows of the latest receipt for exactly these days, with which a re-read is compared (S8). */
  readonly rowsOf?: ((from: Day, to: Day) => number | undefined) | undefined;
}

/** Of a target before its first run, and of one that stores nothing. */
export const NO_PRIOR_LOADS: PriorLoads = { state: undefined, covered: new Set(), eventNames: [] };
