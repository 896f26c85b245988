// The lines of the ledger: keys as in schemas/ledger-line.json; ids are keyed hashes, instants ISO 8601 in UTC.

import { internalError } from '../../base/errors.ts';
import type { LedgerKey } from './key.ts';

/** What the first line of a ledger follows. */
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
  /** Distinguishes a wrong key from an edited line. */
  readonly key_check: string;
  /** Keyed hash of the list: only a run of the same list is resumed. */
  readonly list: string;
  readonly resumes?: string | undefined;
  readonly requested_by?: string | undefined;
  readonly reason?: string | undefined;
  /** Ids about to be requested. */
  readonly ids: number;
}

interface BeforeLine extends Common {
  readonly kind: 'before';
  readonly id: string;
  readonly attempt: number;
}

export interface AfterLine extends Common {
  readonly kind: 'after';
  readonly id: string;
  readonly attempt: number;
  readonly outcome: 'done' | 'rejected' | 'retry' | 'wait' | 'stop' | 'undecided' | 'not_sent';
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
  /** `open`: the people are still there, or in something that belongs to the place. */
  readonly outcome: 'done' | 'open';
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

/** Appends to the chain: every line carries the code of the line before and its own, which covers both. */
export class Chain {
  readonly #key: LedgerKey;
  #head: string;

  constructor(key: LedgerKey, head: string = GENESIS) {
    this.#key = key;
    this.#head = head;
  }

  /** Code of the last line. */
  get head(): string {
    return this.#head;
  }

  /** The text of one line, without its end. */
  sign(line: LedgerLine): string {
    const text = JSON.stringify({ ...line, prev: this.#head });
    this.#head = this.#key.mac(text.slice(0, -1));
    return `${text.slice(0, -1)},"mac":"${this.#head}"}`;
  }
}

const SIGNED = /^(\{.*),"mac":"([0-9a-f]{64})"\}$/s;
const KINDS = new Set<unknown>(['open', 'before', 'after', 'purge_only', 'purging', 'purge', 'access', 'close']);

/** The line, by its own code but not its place in the chain; or the reason why it is not what was written. */
export function verifyLine(text: string, key: LedgerKey): { readonly line: Chained } | { readonly problem: string } {
  const [, covered, mac] = SIGNED.exec(text) ?? [];
  if (covered === undefined || mac === undefined) return { problem: 'is not a line of a ledger' };
  if (key.mac(covered) !== mac) return { problem: 'was changed, or was written under another key' };
  const line: unknown = JSON.parse(text);
  return isLine(line) ? { line } : { problem: 'was written by a later version' };
}

function isLine(value: unknown): value is Chained {
  if (typeof value !== 'object' || value === null) throw internalError('A signed line of the ledger holds no object.');
  return 'v' in value && value.v === 1 && 'kind' in value && KINDS.has(value.kind);
}
