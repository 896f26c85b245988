import { isUtf8 } from 'node:buffer';
import { createReadStream, existsSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { configError } from '../../base/errors.ts';
import { linesOf } from '../../base/lines.ts';
import type { Secret } from '../../base/secrets.ts';
import { type LedgerKey, requireLedgerKey } from './key.ts';

// The lines of the ledger: keys as in schemas/ledger-line.json. Ids are keyed hashes, instants ISO 8601 in UTC.

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
      outcome: Verdict | 'retry' | 'wait' | 'stop' | 'undecided' | 'not_sent';
      code: string;
      status: number | null;
      /** When the deletion was asked for, as the list says. */
      requested_at?: string | undefined;
    }
  /**
   * What a place holds of a person, right before its removal. `id` is null for the others on the suppression list.
   */
  | { kind: 'purge'; id: string | null; place: string; rows: number }
  /**
   * The purge of a place is done; `rows` of all people together. `listed`: people on the suppression list. `stays`:
   * tables and files that others made in the place. `unreached`: something of the place could not be read or removed.
   */
  | { kind: 'purged'; place: string; rows: number; listed: number; stays?: readonly string[]; unreached?: true }
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
export type LineOf<K extends LedgerContent['kind']> = Extract<LedgerLine, { kind: K }>;
/** Each line has the code of the line before it (`prev`), and its own (`mac`), which covers both. */
export type Chained = LedgerLine & { readonly prev: string; readonly mac: string };

/** The service whose profiles are deleted: at another one the same id may be another person. */
export interface ServiceAddress {
  readonly baseUrl: string;
  readonly serviceId: string;
}

/** True for the first line of a run on this service. */
export const isOfService = (line: LineOf<'open'>, { baseUrl, serviceId }: ServiceAddress): boolean =>
  line.base_url === baseUrl && line.service_id === serviceId;

/** A clear answer of the service. */
export type Verdict = 'done' | 'rejected';

export const hasVerdict = (line: LineOf<'after'>): line is LineOf<'after'> & { readonly outcome: Verdict } =>
  line.outcome === 'done' || line.outcome === 'rejected';

/** The text of lines that follow the line with the code `head`; and the code of the last of them. */
export function signLines(
  lines: readonly LedgerLine[],
  head: string,
  key: LedgerKey,
): { readonly text: string; readonly head: string } {
  let text = '';
  let last = head;
  for (const line of lines) {
    const covered = JSON.stringify({ ...line, prev: last }).slice(0, -1);
    last = key.mac(covered);
    text += `${covered},"mac":"${last}"}\n`;
  }
  return { text, head: last };
}

const SIGNED = /^(\{.*),"mac":"([0-9a-f]{64})"\}$/s;

/** The line, checked by its own code alone; or why it is not what was written. */
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

/** The one file of a ledger in its folder. */
export const LEDGER_FILE = 'ledger.jsonl';

/** A ledger that was read to its end, or to its first problem. */
interface ReadChain {
  readonly lines: number;
  /** Code of the last whole line. */
  readonly head: string;
  /** Bytes after the last line end, as a crash during a write leaves them. They are no line, whatever they hold. */
  readonly tornBytes: number;
  /** The first problem, as a sentence. */
  readonly problem?: string;
}

/**
 * Reads a ledger, checks every line and its place in the chain, and shows each good line to `see`. A file that is not
 * there is an empty ledger. Memory: one line.
 */
export async function readLedger(
  path: string,
  key: LedgerKey,
  see: (line: Chained, number: number) => void,
): Promise<ReadChain> {
  let chain: ReadChain = { lines: 0, head: GENESIS, tornBytes: 0 };
  if (!existsSync(path)) return chain;
  const file = createReadStream(path);
  let end = 0;
  const brokenBy = (problem: string): ReadChain => ({
    ...chain,
    problem: `${basename(path)}, line ${chain.lines + 1} ${problem}.`,
  });
  for await (const lines of linesOf(file)) {
    for (const bytes of lines) {
      end += bytes.length + 1;
      // A crash has cut this line: the file ends before its line end.
      if (end > file.bytesRead) return { ...chain, tornBytes: bytes.length };
      const read = isUtf8(bytes) ? verifyLine(bytes.toString(), key) : { problem: 'is not valid UTF-8' };
      if ('problem' in read) return brokenBy(read.problem);
      if (read.line.prev !== chain.head) return brokenBy('does not follow the line before it');
      chain = { ...chain, lines: chain.lines + 1, head: read.line.mac };
      see(read.line, chain.lines);
    }
  }
  return chain;
}

interface OpenedLedger {
  readonly file: string;
  readonly key: LedgerKey;
}

/** The file of a ledger and its key. `path` is the file or its folder. Throws UserError if there is neither. */
export function openLedger(path: string, key: Secret | undefined): OpenedLedger {
  if (!existsSync(path)) throw configError(`There is no ledger at ${path}.`);
  const file = statSync(path).isDirectory() ? join(path, LEDGER_FILE) : path;
  return { file, key: requireLedgerKey(dirname(file), key) };
}

/**
 * Verifies a ledger; with `head`, the code that a run printed, it also finds a tail that was cut off. The result is
 * schemas/ledger-verdict.json.
 */
export async function verifyLedger(
  { file, key }: OpenedLedger,
  {
    head,
    see = () => {},
  }: { readonly head?: string | undefined; readonly see?: (line: Chained, number: number) => void } = {},
) {
  const expected = head?.trim().toLowerCase();
  let isFound = expected === undefined || expected === GENESIS;
  const chain = await readLedger(file, key, (line, number) => {
    if (line.mac === expected) isFound = true;
    see(line, number);
  });
  const problems = chain.problem === undefined ? [] : [chain.problem];
  if (problems.length === 0 && !isFound) {
    problems.push('The head given is the code of no line: lines were cut off at the end, or it is of another ledger.');
  }
  const ok = problems.length === 0;
  const { lines, tornBytes: torn_bytes } = chain;
  return { v: 1, kind: 'ledger_verdict', ok, file, lines, torn_bytes, problems, head: chain.head } as const;
}
