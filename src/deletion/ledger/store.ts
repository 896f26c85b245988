import type { LedgerKey } from './key.ts';
import type { Ledger } from './ledger.ts';
import type { OpenLine } from './line.ts';

/** What a run adds to the first line of its ledger; the store knows the rest. */
export type OpenContent = Omit<
  OpenLine,
  'v' | 'kind' | 'run' | 'at' | 'key_check' | 'resumes' | 'base_url' | 'service_id'
>;

/** Where the ledger of a run is kept: a folder, the log, or nowhere for a run that deletes nothing. */
export interface LedgerStore {
  readonly key: LedgerKey;
  /** Passes on the hash of every id that an unfinished run of this service is proved to have done. */
  eachDone(listener: (idHash: Buffer) => void): Promise<void>;
  start(content: OpenContent): Promise<Ledger>;
  close(): void;
}
