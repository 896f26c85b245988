/** One run that opened a target. `ended` is null while it is running, or if it was killed. */
export interface RunRecord {
  /** Instants: ISO, UTC. */
  readonly began: string;
  readonly ended: string | null;
  readonly exitCode: number | null;
  readonly cause: string | null;
  readonly version: string;
  readonly rows: number;
  readonly windows: number;
  readonly exports: number;
  readonly bytes: number;
}

/** Number of runs that a target keeps, the latest ones. */
export const MAX_RUNS = 1_000;

/**
 * The run history of a target. `begin` is called once, before the first request. `end` is called on every way out, and
 * once more if something fails after it. A run that is killed has no end. Both throw UserError.
 */
export interface RunHistory {
  /** True if other runs may be at work at the same time. */
  readonly isShared?: boolean;
  /**
   * Stores the record of a run that begins. Returns when those runs began that come directly before it and never ended,
   * oldest first.
   */
  begin(run: RunRecord): Promise<string[]>;
  end(run: RunRecord): Promise<void>;
}

export const begunRun = (began: string, version: string): RunRecord => ({
  began,
  ended: null,
  exitCode: null,
  cause: null,
  version,
  rows: 0,
  windows: 0,
  exports: 0,
  bytes: 0,
});

/** When the runs began that come after the last one with an end; `records` are ordered oldest first. */
export function unended(records: readonly Pick<RunRecord, 'began' | 'ended'>[]): string[] {
  const last = records.findLastIndex(({ ended }) => ended !== null);
  return records.slice(last + 1).map(({ began }) => began);
}
