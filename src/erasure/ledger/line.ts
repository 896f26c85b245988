// The lines of the ledger: keys as in schemas/ledger-line.json; ids are keyed hashes, instants ISO 8601 in UTC.

import type { LedgerKey } from './key.ts';

/** `prev` of the first line of a ledger. */
export const GENESIS = '0'.repeat(64);

export type Counts = Readonly<Record<string, number>>;

/** The content of a line, without the fields that all lines of a run have. */
export type LedgerContent = Readonly<
  | {
      /** First line of a file: it describes the run, and names the unfinished run that it resumes. */
      kind: 'open';
      base_url: string;
      service_id: string;
      /** Distinguishes a wrong key from an edited line. */
      key_check: string;
      /** Keyed hash of the list: only a run of the same list is resumed. */
      list: string;
      /** Keyed hash of what was confirmed, where the list is read from a place that is purged. */
      consent?: string | undefined;
      resumes?: string | undefined;
      requested_by?: string | undefined;
      reason?: string | undefined;
      /** Ids about to be requested. */
      ids: number;
      /** The places that it is to purge; absent for none. */
      places?: readonly string[] | undefined;
    }
  | { kind: 'before'; id: string; attempt: number }
  | {
      kind: 'after';
      id: string;
      attempt: number;
      outcome: 'done' | 'rejected' | 'retry' | 'wait' | 'stop' | 'undecided' | 'not_sent';
      code: string;
      status: number | null;
    }
  /** An id that a purge covers although this run does not ask the service for it. */
  | { kind: 'purge_only'; id: string }
  /** Counts about to be removed from a place, written under its lock: a kill right after the removal loses no count. */
  | { kind: 'purging'; target: string; counts: Counts }
  | {
      /** Counts of what was removed from a place, and what could not be reached there. */
      kind: 'purge';
      target: string;
      /** `open`: the people are still there, or in something that belongs to the place. */
      outcome: 'done' | 'open';
      counts: Counts;
      /** Sentences, which name no person. */
      unreached?: readonly string[];
    }
  /** Somebody was shown all that places hold about a person. */
  | { kind: 'access'; id: string; places: readonly string[] }
  /** Last line of a complete run; a run without it, or with undecided ids, is resumed. */
  | { kind: 'close'; counts: Counts }
>;
type Kind = LedgerContent['kind'];

export type LedgerLine = LedgerContent & { readonly v: 1; readonly run: string; readonly at: string };
export type Line<K extends Kind> = Extract<LedgerLine, { kind: K }>;
/** Each line has the code of the line before it (`prev`), and its own (`mac`), which covers both. */
export type Chained = LedgerLine & { readonly prev: string; readonly mac: string };

/** Writes signed lines. `write` resolves when they are as durable as this output can make them. */
export interface LedgerOutput {
  write(lines: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

/** The text of one line, without its end, and its code. */
export function signLine(
  line: LedgerLine,
  prev: string,
  key: LedgerKey,
): { readonly text: string; readonly mac: string } {
  const covered = JSON.stringify({ ...line, prev }).slice(0, -1);
  const mac = key.mac(covered);
  return { text: `${covered},"mac":"${mac}"}`, mac };
}

const SIGNED = /^(\{.*),"mac":"([0-9a-f]{64})"\}$/s;
const KINDS: readonly unknown[] = [
  'open',
  'before',
  'after',
  'purge_only',
  'purging',
  'purge',
  'access',
  'close',
] satisfies Kind[];

/** The line, by its own code but not its place in the chain; or the reason why it is not what was written. */
export function verifyLine(text: string, key: LedgerKey): { readonly line: Chained } | { readonly problem: string } {
  const [, covered, mac] = SIGNED.exec(text) ?? [];
  if (covered === undefined || mac === undefined) return { problem: 'is not a line of a ledger' };
  if (key.mac(covered) !== mac) return { problem: 'was changed, or was written under another key' };
  const line: Partial<Chained> = JSON.parse(text);
  return line.v === 1 && KINDS.includes(line.kind)
    ? { line: line as Chained }
    : { problem: 'was written by a later version' };
}
