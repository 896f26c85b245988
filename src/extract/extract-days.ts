// Will be src/extract/extract.ts.

import type { DayDownload, RunFacts } from './day.ts';
import type { ExtractDeps } from './deps.ts';
import type { Plan } from './plan/plan.ts';

/** Days that are committed together, in order; one day if it may share rows with its neighbours. */
export interface DayBatch {
  readonly days: readonly DayDownload[];
  readonly facts: RunFacts;
}

/**
 * Executes a plan; yields batches of verified days in the order of days. To request the next batch means that the last
 * one is committed: its files are removed then. Throws UserError after the days before it were delivered.
 */
export async function* extractDays(_plan: Plan, _deps: ExtractDeps): AsyncGenerator<DayBatch, void, undefined> {
  yield* [];
  throw new Error('not yet written');
}
