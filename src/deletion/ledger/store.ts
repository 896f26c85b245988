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
  /** The run to resume: of the same list, begun less than 24 hours ago, and without its end or with undecided ids. */
  readonly resumes: string | undefined;
  /** By hex of the keyed hash: what this run, and the runs it resumed, have verifiably decided and need not be asked again. */
  readonly decisions: ReadonlyMap<string, 'done' | 'rejected'>;
  /** By place: what they found there and were about to remove, without a line that says that they had. */
  readonly purging: ReadonlyMap<string, Readonly<Record<string, number>>>;
  /** A sentence that names the runs that are not resumed, with their dates. */
  readonly notice: string | undefined;
}

export const NO_UNFINISHED_RUNS: UnfinishedRuns = {
  resumes: undefined,
  decisions: new Map(),
  purging: new Map(),
  notice: undefined,
};

/** The storage of a run's ledger: a folder, the log, or none for a run that deletes nothing. */
export interface LedgerStore {
  readonly key: LedgerKey;
  /** `list`: the keyed hash of the list, as it stands in the first line of a ledger. */
  findUnfinished(list: string): Promise<UnfinishedRuns>;
  start(content: OpenContent): Promise<Ledger>;
  close(): void;
}
