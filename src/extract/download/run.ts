import type pLimit from 'p-limit';
import type { ExtractDeps } from '../deps.ts';
import type { Plan } from '../plan/plan.ts';
import type { ServiceFacts } from './service-facts.ts';

/** The objects that the parts of one run share. */
export interface Run {
  readonly plan: Plan;
  readonly deps: ExtractDeps;
  /** The caller's signal combined with the end of the run. */
  readonly signal: AbortSignal;
  /** The private folder of the run, and a new path in it. */
  readonly folder: string;
  readonly newPath: () => string;
  readonly limit: ReturnType<typeof pLimit>;
  readonly facts: ServiceFacts;
  /** Number of requests that the service object had sent before this run. */
  readonly sentBefore: number;
}
