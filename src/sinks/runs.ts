import type { RunRecord } from './report.ts';

/** The outcome of a run, as stored in its record. */
export type RunOutcome = Omit<RunRecord, 'began' | 'ended' | 'version'>;

/**
 * The run history of a target (S49). `begin` is called once, before the first request; `end` whether the run succeeds or
 * fails. The record of a killed run has no end. Both throw a Failure if the record cannot be written.
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
