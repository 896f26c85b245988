import type pLimit from 'p-limit';
import type { Day } from '../../base/days.ts';
import { formatDuration } from '../../base/durations.ts';
import { CLOCK_TOLERANCE_MS, oldestDays } from '../plan/days.ts';
import type { Plan } from '../plan/plan.ts';
import type { ExtractDeps } from '../ports.ts';
import type { Spool } from '../spool/spool.ts';
import type { Files } from './download.ts';

/**
 * Facts about the service that are learnt during a run. They begin with those of the stored state, and are stored in
 * the state with each window.
 */
export interface ServiceCache {
  /**
   * True if an export of a single day, or of several, contains its `to_date` (S62); undefined while it is not known.
   */
  inclusive: boolean | undefined;
  rangesInclusive: boolean | undefined;
  /**
   * False if bodies of this service end without a line end, as two identical downloads have shown; true if some end
   * with one.
   */
  finalNewline: boolean | undefined;
  maxWindowDays: number | undefined;
  nameGroups: number | undefined;
  /** The latest `to_date` to send, after the service refused a later one. */
  latestToDate: Day | undefined;
  /** True once an export of this or an earlier run had data, which shows that the filters are valid. */
  answered: boolean;
  readonly names: Set<string>;
  /**
   * The service's clock minus this machine's (ms): the smallest value that a `Date` header has shown; undefined before
   * the first.
   */
  serviceAheadMs: number | undefined;
  clockWarned: boolean;
}

/** The objects that the parts of one extraction share. */
export interface Run {
  readonly plan: Plan;
  readonly deps: ExtractDeps;
  /** The caller's signal combined with the end of this extraction. */
  readonly signal: AbortSignal;
  readonly spool: Spool;
  readonly limit: ReturnType<typeof pLimit>;
  readonly cache: ServiceCache;
  /** Number of requests that the service object had sent before this extraction. */
  readonly sentBefore: number;
}

/** Records a `Date` header (ms since 1970). Warns once a run if the clocks differ too much (S3). */
export function compareClocks(run: Run, machine: number, service: number | undefined): void {
  if (service === undefined) return;
  run.cache.serviceAheadMs = Math.min(service - machine, run.cache.serviceAheadMs ?? Number.POSITIVE_INFINITY);
  if (run.cache.clockWarned || Math.abs(machine - service) <= CLOCK_TOLERANCE_MS) return;
  run.cache.clockWarned = true;
  const apart = formatDuration(Math.abs(machine - service));
  run.deps.logger.warn(
    'clock.apart',
    `This machine's clock and the service's are ${apart} apart: the earlier one decides which days are over.`,
    { machine: new Date(machine).toISOString(), service: new Date(service).toISOString() },
  );
}

/** The time by the earlier of the two clocks (S3), as far as the service's is known (ms since 1970). */
export const earlierClock = ({ deps, cache }: Run): number => deps.clock.now() + Math.min(0, cache.serviceAheadMs ?? 0);

/** True if the day can no longer be exported by the service's clock either, so that it need not be requested (S5). */
export const isSurelyGone = (run: Run, day: Day): boolean =>
  run.cache.serviceAheadMs !== undefined && day < oldestDays(earlierClock(run), run.plan.historyDays).surely;

/** Removes the files of a download, unless further targets need them. */
export async function discard({ deps, spool }: Run, { files }: Files): Promise<void> {
  if (deps.sharing?.keep !== true) for (const file of files) await spool.discard(file);
}
