// The lines of the ledger: keys as in schemas/ledger-line.json. Ids are keyed hashes, instants ISO 8601 in UTC.

import type { LedgerKey } from './key.ts';

/** `prev` of the first line of a ledger. */
export const GENESIS = '0'.repeat(64);

/** The content of a line, without the fields that all lines have. */
export type LedgerContent = Readonly<
  | {
      /** The first line of a run. */
      kind: 'open';
      base_url: string;
      service_id: string;
      requested_by?: string | undefined;
      reason?: string | undefined;
      /** Ids about to be requested. */
      ids: number;
      places: readonly string[];
      /** False if the service is not asked: for a purge alone, and for `person`. */
      requests: boolean;
    }
  /** A request is about to be sent. */
  | { kind: 'before'; id: string }
  | {
      kind: 'after';
      id: string;
      outcome: 'done' | 'rejected' | 'retry' | 'wait' | 'stop' | 'undecided' | 'not_sent';
      code: string;
      status: number | null;
      /** When the deletion was asked for, as the list says. */
      requested_at?: string | undefined;
    }
  /** What a place holds of a person, right before it is removed; `id` is null for the others on the suppression list. */
  | { kind: 'purge'; id: string | null; place: string; rows: number }
  /**
   * The purge of a place is done; `rows` of all people together. `listed`: people on the suppression list. `stays`: tables
   * and files that others made in the place.
   */
  | { kind: 'purged'; place: string; rows: number; listed: number; stays?: readonly string[] }
  /** Somebody was shown all that places hold about a person, who was looked for in these ways. */
  | { kind: 'access'; id: string; places: readonly string[]; ways: readonly string[]; rows: number }
>;

export type LedgerLine = LedgerContent & {
  readonly v: 1;
  readonly run: string;
  readonly at: string;
  /** Tells a wrong key from an edited line. */
  readonly key_check: string;
};
export type Line<K extends LedgerContent['kind']> = Extract<LedgerLine, { kind: K }>;
/** Each line has the code of the line before it (`prev`), and its own (`mac`), which covers both. */
export type Chained = LedgerLine & { readonly prev: string; readonly mac: string };

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

/** The line, by its own code but not its place in the chain; or the reason why it is not what was written. */
export function verifyLine(text: string, key: LedgerKey): { readonly line: Chained } | { readonly problem: string } {
  const [, covered, mac] = SIGNED.exec(text) ?? [];
  if (covered === undefined || mac === undefined) return { problem: 'is not a line of a ledger' };
  if (key.mac(covered) !== mac) {
    const isOtherKey = covered.includes('"key_check":"') && !covered.includes(`"key_check":"${key.check}"`);
    return { problem: isOtherKey ? 'was written under another ledger_key' : 'was changed' };
  }
  const line: Chained = JSON.parse(text);
  return line.v === 1 ? { line } : { problem: 'was written by a later version' };
}
