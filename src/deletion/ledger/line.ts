/** The lines of the ledger. Keys as in schemas/ledger-line.json; ids are keyed hashes, instants ISO 8601 in UTC. */

export const GENESIS = '0'.repeat(64);

interface Common {
  readonly v: 1;
  readonly run: string;
  readonly at: string;
}

/** First of a file: what the run is, and which unfinished run it goes on with. */
export interface OpenLine extends Common {
  readonly kind: 'open';
  readonly base_url: string;
  readonly service_id: string;
  /** Version of the key derivation; absent in an older format, which is not accepted. */
  readonly key_version: number;
  /** Distinguishes a wrong key from an edited line. */
  readonly key_check: string;
  /** Keyed hash of the list: only a run of the same list is resumed. */
  readonly list: string;
  readonly resumes?: string;
  readonly requested_by?: string;
  readonly reason?: string;
  /** Ids about to be requested. */
  readonly ids: number;
}

interface BeforeLine extends Common {
  readonly kind: 'before';
  readonly id: string;
  readonly attempt: number;
}

const OUTCOMES = ['done', 'rejected', 'retry', 'wait', 'stop', 'undecided', 'not_sent'] as const;
export type Outcome = (typeof OUTCOMES)[number];

export interface AfterLine extends Common {
  readonly kind: 'after';
  readonly id: string;
  readonly attempt: number;
  readonly outcome: Outcome;
  readonly code: string;
  readonly status: number | null;
}

/** An id that a purge covers although this run does not ask the service for it (S56). */
interface PurgeOnlyLine extends Common {
  readonly kind: 'purge_only';
  readonly id: string;
}

/** What was found in a place and is about to be removed, under its lock: a kill right after the removal loses no count. */
interface PurgingLine extends Common {
  readonly kind: 'purging';
  readonly target: string;
  readonly counts: Readonly<Record<string, number>>;
}

/** What was removed from a place, and what could not be reached there. */
export interface PurgeLine extends Common {
  readonly kind: 'purge';
  readonly target: string;
  /** `open`: the people are still there, or in something that belongs to the place. Lines of older versions do not say. */
  readonly outcome?: 'done' | 'open';
  readonly counts: Readonly<Record<string, number>>;
  /** Sentences, which name no person. */
  readonly unreached?: readonly string[];
}

/** Somebody was shown all that places hold about a person (S58). */
interface AccessLine extends Common {
  readonly kind: 'access';
  readonly id: string;
  readonly places: readonly string[];
}

/** Last line of a complete run; a run without it, or with undecided ids, is resumed. */
interface CloseLine extends Common {
  readonly kind: 'close';
  readonly counts: Readonly<Record<string, number>>;
}

export type LedgerLine =
  | OpenLine
  | BeforeLine
  | AfterLine
  | PurgeOnlyLine
  | PurgingLine
  | PurgeLine
  | AccessLine
  | CloseLine;
export type Chained<L extends LedgerLine = LedgerLine> = L & { readonly prev: string; readonly mac: string };
