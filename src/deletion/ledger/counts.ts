import type { Secret } from '../../base/secrets.ts';
import { ledgerFiles } from './files.ts';
import type { OpenLine } from './line.ts';
import { readLedgerFile } from './read.ts';
import { keyOfLedger, verifyLedger } from './verify.ts';

/** The counts of one file of a ledger, which is one run: ids by their last outcome. Contains no ids. */
export interface LedgerCounts {
  readonly run: string;
  readonly began: string;
  readonly done: number;
  readonly rejected: number;
  readonly undecided: number;
  /** Whether the run wrote its closing line. */
  readonly isClosed: boolean;
}

/**
 * The runs of a ledger, oldest first, and its problems: the counts of a ledger with a problem prove nothing. Throws
 * a configuration failure for a folder without a ledger. Memory: a hash an id of the largest run.
 */
export async function countLedger(
  folder: string,
  given: Secret | undefined,
): Promise<{ readonly runs: readonly LedgerCounts[]; readonly problems: readonly string[] }> {
  const { problems } = await verifyLedger(folder, given);
  const key = keyOfLedger(folder, given);
  const runs: LedgerCounts[] = [];
  for (const { path } of ledgerFiles(folder)) {
    let open: OpenLine | undefined;
    const outcomes = new Map<string, string>();
    const { isClosed } = await readLedgerFile(path, key, (line) => {
      if (line.kind === 'open') open = line;
      if (line.kind === 'after') outcomes.set(line.id, line.outcome);
    });
    const of = (wanted: string) => [...outcomes.values()].filter((outcome) => outcome === wanted).length;
    if (open === undefined) continue;
    const [done, rejected] = [of('done'), of('rejected')];
    const undecided = outcomes.size - done - rejected;
    runs.push({ run: open.run, began: open.at, done, rejected, undecided, isClosed });
  }
  return { runs, problems };
}
