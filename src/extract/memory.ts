import type { Day } from '../base/days.ts';

/** What a target remembers of earlier runs, as far as an extraction needs it. The sinks' `Memory` has this shape. */
export interface TargetMemory {
  /** As stored; parsed and checked here. */
  readonly state: unknown;
  /** Days that committed receipts cover; empty where only the state is kept. */
  readonly covered: ReadonlySet<Day>;
  readonly eventNames: readonly string[];
  /** Rows of the latest receipt that asked for exactly these days, if there is one. */
  readonly rowsOf?: ((from: Day, to: Day) => number | undefined) | undefined;
}

export const emptyMemory: TargetMemory = { state: undefined, covered: new Set(), eventNames: [] };
