import type { LedgerKey } from './key.ts';
import type { Ledger } from './ledger.ts';
import type { OpenLine } from './line.ts';

/** The service whose profiles a run deletes: only its own unfinished run is ever resumed. */
export interface ServiceName {
  readonly baseUrl: string;
  readonly serviceId: string;
}

/** What a run adds to the first line of its ledger; the store knows the rest. */
export type OpenContent = Omit<
  OpenLine,
  'v' | 'kind' | 'run' | 'at' | 'key_version' | 'key_check' | 'base_url' | 'service_id'
>;

/** What the runs of a service that wrote no closing line mean for a run with one list. */
export interface UnfinishedRuns {
  /** The run to resume: of the same list, begun less than 24 hours ago. */
  readonly resumes: string | undefined;
  /** Passes on the hash of every id that this run, and those which it resumed, are proved to have done. */
  eachDone(listener: (idHash: Buffer) => void): Promise<void>;
  /** A sentence that names the runs that are not resumed, with their dates. */
  readonly notice: string | undefined;
}

export const NO_UNFINISHED_RUNS: UnfinishedRuns = { resumes: undefined, async eachDone() {}, notice: undefined };

/** Where the ledger of a run is kept: a folder, the log, or nowhere for a run that deletes nothing. */
export interface LedgerStore {
  readonly key: LedgerKey;
  /** `list`: the keyed hash of the list, as it stands in the first line of a ledger. */
  findUnfinished(list: string): Promise<UnfinishedRuns>;
  start(content: OpenContent): Promise<Ledger>;
  close(): void;
}
