import { isUtf8 } from 'node:buffer';
import { createReadStream, existsSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { configError } from '../../base/errors.ts';
import { linesOf } from '../../base/lines.ts';
import type { Secret } from '../../base/secrets.ts';
import { givenOrStoredKey, type LedgerKey } from './key.ts';
import { type Chained, GENESIS, verifyLine } from './line.ts';

/** The one file of a ledger in its folder. */
export const LEDGER_FILE = 'ledger.jsonl';

/** What is known of a ledger that was read to its end, or to its first problem. */
export interface LedgerFacts {
  readonly lines: number;
  /** Code of the last whole line. */
  readonly head: string;
  /** Bytes after the last complete line, as a crash during a write leaves them. */
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
  see: (line: Chained, number: number) => void = () => {},
): Promise<LedgerFacts> {
  let facts: LedgerFacts = { lines: 0, head: GENESIS, tornBytes: 0 };
  if (!existsSync(path)) return facts;
  let hasLineEnd = true;
  const watched = async function* () {
    for await (const chunk of createReadStream(path)) {
      hasLineEnd = chunk[chunk.length - 1] === 0x0a;
      yield chunk;
    }
  };
  let bad: { readonly bytes: number; readonly problem: string } | undefined;
  const brokenBy = (problem: string): LedgerFacts => ({
    ...facts,
    problem: `${basename(path)}, line ${facts.lines + 1} ${problem}.`,
  });
  for await (const chunk of linesOf(watched())) {
    for (const bytes of chunk) {
      // Only the last line may be torn; that a line is not the last is known when the next one is read.
      if (bad !== undefined) return brokenBy(bad.problem);
      const found = isUtf8(bytes) ? verifyLine(bytes.toString(), key) : { problem: 'is not valid UTF-8' };
      if ('problem' in found) bad = { bytes: bytes.length, problem: found.problem };
      else if (found.line.prev !== facts.head) return brokenBy('does not follow the line before it');
      else {
        facts = { ...facts, lines: facts.lines + 1, head: found.line.mac };
        see(found.line, facts.lines);
      }
    }
  }
  if (bad === undefined) return facts;
  // A line with a line end was written completely: if it is invalid, it was edited.
  return hasLineEnd ? brokenBy(bad.problem) : { ...facts, tornBytes: bad.bytes };
}

/** The file of a ledger and its key. `path` is the file or its folder. Throws UserError if there is neither. */
export function openLedger(path: string, key: Secret | undefined): { readonly file: string; readonly key: LedgerKey } {
  if (!existsSync(path)) throw configError(`There is no ledger at ${path}.`);
  const file = statSync(path).isDirectory() ? join(path, LEDGER_FILE) : path;
  return { file, key: givenOrStoredKey(dirname(file), key) };
}

/**
 * Verifies a ledger; with `head`, the code that a run printed, it also finds a tail that was cut off. The result is
 * schemas/ledger-verdict.json.
 */
export async function verifyLedger(
  path: string,
  secret: Secret | undefined,
  {
    head,
    see = () => {},
  }: { readonly head?: string | undefined; readonly see?: (line: Chained, number: number) => void } = {},
) {
  const { file, key } = openLedger(path, secret);
  const wanted = head?.trim().toLowerCase();
  let isFound = wanted === undefined || wanted === GENESIS;
  const facts = await readLedger(file, key, (line, number) => {
    if (line.mac === wanted) isFound = true;
    see(line, number);
  });
  const problems = facts.problem === undefined ? [] : [facts.problem];
  if (problems.length === 0 && !isFound) {
    problems.push('The head given is the code of no line: lines were cut off at the end, or it is of another ledger.');
  }
  const ok = problems.length === 0;
  const { lines, tornBytes: torn_bytes } = facts;
  return { v: 1, kind: 'ledger_verdict', ok, file, lines, torn_bytes, problems, head: facts.head } as const;
}
