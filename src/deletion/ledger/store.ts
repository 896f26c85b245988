import type { LedgerKey } from './key.ts';
import type { Ledger } from './ledger.ts';
import type { OpenLine } from './line.ts';

/** The service whose profiles a run deletes: only its own unfinished run is ever resumed. */
export interface ServiceName {
  readonly baseUrl: string;
  readonly serviceId: string;
}

/** What a run adds to the first line of its ledger; the store adds the rest. */
export type OpenContent = Omit<
  OpenLine,
  'v' | 'kind' | 'run' | 'at' | 'key_version' | 'key_check' | 'base_url' | 'service_id'
>;

/** The unfinished runs of a service, for a run with a given list. */
export interface UnfinishedRuns {
  /** The run to resume: of the same list, begun less than 24 hours ago. */
  readonly resumes: string | undefined;
  /** Calls back with the hash of every id that this run, and the runs it resumed, have verifiably deleted. */
  eachDone(listener: (idHash: Buffer) => void): Promise<void>;
  /** A sentence that names the runs that are not resumed, with their dates. */
  readonly notice: string | undefined;
}

export const NO_UNFINISHED_RUNS: UnfinishedRuns = { resumes: undefined, async eachDone() {}, notice: undefined };

/** The storage of a run's ledger: a folder, the log, or none for a run that deletes nothing. */
export interface LedgerStore {
  readonly key: LedgerKey;
  /** `list`: the keyed hash of the list, as it stands in the first line of a ledger. */
  findUnfinished(list: string): Promise<UnfinishedRuns>;
  start(content: OpenContent): Promise<Ledger>;
  close(): void;
}
