import { existsSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { configError } from '../../base/errors.ts';
import type { Secret } from '../../base/secrets.ts';
import { fileOf, isOpenToOthers, type LedgerFile, ledgerFiles, readLedgerFile } from './file.ts';
import { givenOrStoredKey } from './key.ts';
import { type Chained, GENESIS } from './line.ts';

/** One file's part in a verification. */
interface VerifiedFile {
  readonly file: string;
  readonly run: string;
  readonly lines: number;
  /** False if the run is incomplete; a later one may have resumed it. */
  readonly closed: boolean;
  /** Bytes of a line that a crash cut off; such a line was never relied on. */
  readonly torn_bytes: number;
}

/** The result of a verification; `ok` is false if there is any problem. */
export interface LedgerVerdict {
  readonly v: 1;
  readonly kind: 'ledger_verdict';
  readonly ok: boolean;
  readonly files: readonly VerifiedFile[];
  /** Sentences that name the file, the line and the problem. */
  readonly problems: readonly string[];
  /** Sentences about what could not be verified. */
  readonly notes: readonly string[];
  /** Code of the last line; compare it with one that was kept elsewhere. */
  readonly head: string | null;
}

export interface VerifyOptions {
  /** The code of a line that must be there. */
  readonly head?: string | undefined;
  /** Called for each valid line with its file's name and line number, before the verdict is known. */
  readonly see?: (line: Chained, file: string, number: number) => void;
}

/**
 * Verifies a ledger: a folder whole, or one file and all files before it in the chain. Finds every edit; with `head`, the
 * code that a run printed, also a tail that was cut off.
 */
export async function verifyLedger(
  path: string,
  key: Secret | undefined,
  { head, see = () => {} }: VerifyOptions = {},
): Promise<LedgerVerdict> {
  const { folder, files } = filesToVerify(path);
  const ledgerKey = givenOrStoredKey(folder, key);
  const wanted = head?.trim().toLowerCase();
  const verified: VerifiedFile[] = [];
  const problems: string[] = files.length === 0 ? ['There is no file of a ledger here.'] : [];
  const notes: string[] = [];
  let before: Before = { number: undefined, head: undefined };
  let isFound = false;
  for (const { path, name, number, run } of files) {
    const facts = await readLedgerFile(path, ledgerKey, (line, at) => {
      if (line.mac === wanted) isFound = true;
      if (run !== '' && line.run !== run) problems.push(`${name}, line ${at}: is of the run ${line.run}.`);
      see(line, name, at);
    });
    const { lines, isClosed: closed, tornBytes: torn_bytes, broken } = facts;
    verified.push({ file: name, run, lines, closed, torn_bytes });
    if (broken) problems.push(`${name}, line ${broken.line}: ${broken.problem}.`);
    problems.push(...placeProblems(name, number, facts.first, before));
    if (lines === 0 && !broken) notes.push(`${name} holds no whole line: its run ended before its first one.`);
    before = { number, head: facts.head ?? before.head };
  }
  if (wanted !== undefined && !isFound) {
    problems.push('The head given is the code of no line: lines were cut off at the end, or it is of another ledger.');
  }
  if (isFound && before.head !== wanted) {
    notes.push('Lines were added after the head given; up to it nothing is missing.');
  }
  if (isOpenToOthers(statSync(folder).mode)) {
    notes.push(
      `Other users may write to ${folder} and may have taken its last files away: only a head that was kept elsewhere shows that.`,
    );
  }
  const ok = problems.length === 0;
  return { v: 1, kind: 'ledger_verdict', ok, files: verified, problems, notes, head: before.head ?? null };
}

/** Number of the last of the files before a file, and the code of their last line. */
interface Before {
  readonly number: number | undefined;
  readonly head: string | undefined;
}

/** The problems of the place of a file in the chain. */
function placeProblems(name: string, number: number, first: string | undefined, before: Before): string[] {
  if (before.number === number) return [`${name}: another file has the number ${number}, too.`];
  if (before.number !== undefined && number !== before.number + 1) {
    return [`${name}: the files between number ${before.number} and ${number} are missing.`];
  }
  if (first === undefined) return [];
  if (before.number === undefined && number > 1) {
    return [`${name} is not the first of its ledger: the files before it are missing.`];
  }
  return first === (before.head ?? GENESIS)
    ? []
    : [`${name}, line 1: does not follow the last line of the file before it.`];
}

function filesToVerify(path: string): { folder: string; files: readonly LedgerFile[] } {
  if (!existsSync(path)) throw configError(`There is no ledger at ${path}.`);
  if (statSync(path).isDirectory()) return { folder: path, files: ledgerFiles(path) };
  const folder = dirname(path);
  const wanted = fileOf(folder, basename(path));
  if (wanted === undefined) return { folder, files: [{ path, name: basename(path), number: 1, run: '' }] };
  return { folder, files: ledgerFiles(folder).filter((file) => file.number <= wanted.number) };
}
