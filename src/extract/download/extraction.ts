import type pLimit from 'p-limit';
import type { Day } from '../../base/days.ts';
import { newWaitBudget, type WaitBudget } from '../../service/export/retry.ts';
import type { ExtractDeps } from '../deps.ts';
import type { Plan } from '../plan/plan.ts';
import type { Spool } from '../spool/spool.ts';
import type { MakeRoom } from '../spool/spool-writer.ts';
import type { Window } from '../window.ts';
import type { MayHaveFiles } from './download.ts';
import type { ServiceFacts } from './service-facts.ts';

/** The objects that the parts of one extraction share. */
export interface Extraction {
  readonly plan: Plan;
  readonly deps: ExtractDeps;
  /** The caller's signal combined with the end of this extraction, or of one download that has to give way. */
  readonly signal: AbortSignal;
  readonly spool: Spool;
  readonly limit: ReturnType<typeof pLimit>;
  readonly facts: ServiceFacts;
  /** Number of requests that the service object had sent before this extraction. */
  readonly sentBefore: number;
  readonly makeRoom: MakeRoom;
  /** Paths of the files that were obtained; some may have been removed since. */
  readonly paths: (string | undefined)[];
}

/** How long the export of days from `first` on may still be kept waiting, for all targets of the command together. */
export function waitBudgetOf({ deps }: Extraction, first: Day): WaitBudget {
  const budget = deps.sharing?.waitBudgets.get(first) ?? newWaitBudget();
  deps.sharing?.waitBudgets.set(first, budget);
  return budget;
}

/** Removes the files of an answer or a window, unless further targets need them. */
export async function discard({ deps, spool }: Extraction, { files = [] }: MayHaveFiles | Window): Promise<void> {
  if (deps.sharing?.keep !== true) for (const file of files) await spool.discard(file);
}
