import type { Secret } from '../../base/secrets.ts';
import type { Chained } from './line.ts';
import { verifyLedger } from './verify.ts';

/** The counts of one file of a ledger, which is one run: ids by their last outcome. Contains no ids. */
export interface LedgerCounts {
  readonly run: string;
  readonly began: string;
  done: number;
  rejected: number;
  undecided: number;
  /** Whether the run wrote its closing line. */
  isClosed: boolean;
}

/**
 * The runs of a ledger, oldest first, and its problems: the counts of a ledger with a problem prove nothing. Throws
 * a configuration failure for a folder without a ledger. Memory: a hash an id of the largest run.
 */
export async function countLedger(
  folder: string,
  key: Secret | undefined,
): Promise<{ readonly runs: readonly LedgerCounts[]; readonly problems: readonly string[] }> {
  const runs: LedgerCounts[] = [];
  const outcomes = new Map<string, 'done' | 'rejected' | 'undecided'>();
  const see = (line: Chained) => {
    const run = runs[runs.length - 1];
    if (line.kind === 'open') {
      runs.push({ run: line.run, began: line.at, done: 0, rejected: 0, undecided: 0, isClosed: false });
      outcomes.clear();
    } else if (line.kind === 'after') {
      const before = outcomes.get(line.id);
      const outcome = line.outcome === 'done' || line.outcome === 'rejected' ? line.outcome : 'undecided';
      if (before !== undefined) run[before]--;
      run[outcome]++;
      outcomes.set(line.id, outcome);
    } else if (line.kind === 'close') run.isClosed = true;
  };
  const { problems } = await verifyLedger(folder, key, { see });
  return { runs, problems };
}
