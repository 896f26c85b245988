import type { RunRecord } from './report.ts';

/** How a run ended, as its record keeps it. */
export type RunOutcome = Omit<RunRecord, 'began' | 'ended' | 'version'>;

/**
 * The runs that opened a place (S49). `begin` is called once, before the first request; `end` on every way out. A run
 * that was killed stays as begun and never ended. Both throw Failure where the record cannot be kept.
 */
export interface RunHistory {
  /** True where other runs may be at work at the same time. */
  readonly isShared?: boolean;
  /** Returns the instants (ISO, UTC) at which the runs just before this one began that never ended, oldest first. */
  begin(began: string, version: string): Promise<string[]>;
  end(ended: string, outcome: RunOutcome): Promise<void>;
}

/** Runs without an end after the last one that has one; `records`: oldest first. */
export function unended(records: readonly Pick<RunRecord, 'began' | 'ended'>[]): string[] {
  const last = records.findLastIndex(({ ended }) => ended !== null);
  return records.slice(last + 1).map(({ began }) => began);
}
