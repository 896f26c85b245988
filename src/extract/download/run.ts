import { join } from 'node:path';
import type { Plan } from '../plan/which-days.ts';
import type { ExtractDeps } from '../session.ts';
import { RunFolder } from '../spool.ts';
import { ServiceFacts } from './service-facts.ts';

/** What the downloads of one run share. */
export interface Run {
  readonly plan: Plan;
  readonly deps: ExtractDeps;
  /** The caller's signal combined with the end of the run. */
  readonly signal: AbortSignal;
  /** The private folder of the run. `newPath` gives a new path in it. */
  readonly folder: string;
  readonly newPath: () => string;
  readonly facts: ServiceFacts;
  /** Number of requests that the service object had sent before this run. */
  readonly sentBefore: number;
  /** Ends all requests. */
  abort(): void;
  /** Removes the folder, once all requests have ended. */
  close(): Promise<void>;
}

export async function openRun(plan: Plan, deps: ExtractDeps): Promise<Run> {
  const controller = new AbortController();
  const folder = await RunFolder.open(deps.spoolDir, deps.clock, 'spool');
  let files = 0;
  return {
    plan,
    deps,
    signal: AbortSignal.any([deps.signal, controller.signal]),
    folder: folder.path,
    newPath: () => join(folder.path, `${++files}.csv`),
    facts: new ServiceFacts(plan, deps),
    sentBefore: deps.service.sent,
    abort: () => controller.abort(new Error('the run has ended')),
    close: () => folder.remove(),
  };
}
