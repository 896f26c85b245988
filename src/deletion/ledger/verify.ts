import { existsSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { configError } from '../../base/errors.ts';
import type { Secret } from '../../base/secrets.ts';
import { fileOf, isOpenToOthers, type LedgerFile, ledgerFiles, readLedgerFile } from './file.ts';
import { LedgerKey, storedKey } from './key.ts';
import { type AfterLine, type Chained, GENESIS, type OpenLine } from './line.ts';

/** One file's part in a verification. */
interface VerifiedFile {
  readonly file: string;
  readonly run: string;
  readonly lines: number;
  /** False: the run is incomplete; a later one may have resumed it. */
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
  /** What could not be verified. */
  readonly notes: readonly string[];
  /** Code of the last line; compare it with one that was kept elsewhere. */
  readonly head: string | null;
}

/** The key of a ledger: the one given, else the one that lies beside it. Throws a config failure when there is neither. */
export function keyOfLedger(folder: string, given: Secret | undefined): LedgerKey {
  const secret = given ?? storedKey(folder);
  if (secret) return new LedgerKey(secret);
  throw configError(
    `The ledger in ${folder} has no key beside it: give it as ledger_key or in DFINERY_LEDGER_KEY (or the file that DFINERY_LEDGER_KEY_FILE names).`,
  );
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
  { head, see }: VerifyOptions = {},
): Promise<LedgerVerdict> {
  const { folder, files } = filesToVerify(path);
  const verification = new Verification(keyOfLedger(folder, key), head?.trim().toLowerCase(), see);
  for (const file of files) await verification.add(file);
  const verdict = verification.verdict();
  if (!isOpenToOthers(statSync(folder).mode)) return verdict;
  const note = `Other users may write to ${folder} and may have taken its last files away: only a head that was kept elsewhere shows that.`;
  return { ...verdict, notes: [...verdict.notes, note] };
}

function filesToVerify(path: string): { folder: string; files: readonly LedgerFile[] } {
  if (!existsSync(path)) throw configError(`There is no ledger at ${path}.`);
  if (statSync(path).isDirectory()) return { folder: path, files: ledgerFiles(path) };
  const folder = dirname(path);
  const wanted = fileOf(folder, basename(path));
  if (wanted === undefined) return { folder, files: [{ path, name: basename(path), number: 1, run: '' }] };
  return { folder, files: ledgerFiles(folder).filter((file) => file.number <= wanted.number) };
}

/** The counts of one file of a ledger, which is one run: ids by their last outcome. Contains no ids. */
export interface LedgerCounts {
  readonly run: string;
  readonly began: string;
  readonly done: number;
  readonly rejected: number;
  readonly undecided: number;
  /** Whether the run wrote its closing line. */
  readonly isClosed: boolean;
}

/**
 * The runs of a ledger, oldest first, and its problems: the counts of a ledger with a problem prove nothing. Throws
 * a configuration failure for a folder without a ledger. Memory: a hash an id of the largest run.
 */
export async function countLedger(
  folder: string,
  key: Secret | undefined,
): Promise<{ readonly runs: readonly LedgerCounts[]; readonly problems: readonly string[] }> {
  const runs: LedgerCounts[] = [];
  let run: { open: OpenLine; outcomes: Map<string, AfterLine['outcome']>; isClosed: boolean } | undefined;
  const countRun = () => {
    if (run === undefined) return;
    const outcomes = [...run.outcomes.values()];
    const done = outcomes.filter((outcome) => outcome === 'done').length;
    const rejected = outcomes.filter((outcome) => outcome === 'rejected').length;
    const undecided = outcomes.length - done - rejected;
    runs.push({ run: run.open.run, began: run.open.at, done, rejected, undecided, isClosed: run.isClosed });
  };
  const see = (line: Chained) => {
    if (line.kind === 'open') {
      countRun();
      run = { open: line, outcomes: new Map(), isClosed: false };
    } else if (line.kind === 'after') run?.outcomes.set(line.id, line.outcome);
    else if (line.kind === 'close' && run) run.isClosed = true;
  };
  const { problems } = await verifyLedger(folder, key, { see });
  countRun();
  return { runs, problems };
}

class Verification {
  readonly #key: LedgerKey;
  readonly #see: NonNullable<VerifyOptions['see']>;
  readonly #wanted: string | undefined;
  readonly #files: VerifiedFile[] = [];
  readonly #problems: string[] = [];
  readonly #notes: string[] = [];
  #head: string | undefined;
  #number: number | undefined;
  #isFound = false;

  constructor(key: LedgerKey, head: string | undefined, see: VerifyOptions['see'] = () => {}) {
    this.#key = key;
    this.#see = see;
    this.#wanted = head;
  }

  async add({ path, name, number, run }: LedgerFile): Promise<void> {
    const facts = await readLedgerFile(path, this.#key, (line, lineNumber) => {
      if (line.mac === this.#wanted) this.#isFound = true;
      if (run !== '' && line.run !== run)
        this.#problems.push(`${name}, line ${lineNumber}: is of the run ${line.run}.`);
      this.#see(line, name, lineNumber);
    });
    const { lines, isClosed: closed, tornBytes, broken, first, head } = facts;
    this.#files.push({ file: name, run, lines, closed, torn_bytes: tornBytes });
    if (broken) this.#problems.push(`${name}, line ${broken.line}: ${broken.problem}.`);
    this.#checkPlace(name, number, first);
    if (lines === 0 && !broken) this.#notes.push(`${name} holds no whole line: its run ended before its first one.`);
    this.#head = head ?? this.#head;
    this.#number = number;
  }

  verdict(): LedgerVerdict {
    if (this.#files.length === 0) this.#problems.push('There is no file of a ledger here.');
    if (this.#wanted !== undefined && !this.#isFound) {
      this.#problems.push(
        'The head given is the code of no line: lines were cut off at the end, or it is of another ledger.',
      );
    }
    if (this.#isFound && this.#head !== this.#wanted) {
      this.#notes.push('Lines were added after the head given; up to it nothing is missing.');
    }
    return {
      v: 1,
      kind: 'ledger_verdict',
      ok: this.#problems.length === 0,
      files: this.#files,
      problems: this.#problems,
      notes: this.#notes,
      head: this.#head ?? null,
    };
  }

  #checkPlace(name: string, number: number, first: string | undefined): void {
    if (this.#number === number) {
      this.#problems.push(`${name}: another file has the number ${number}, too.`);
    } else if (this.#number !== undefined && number !== this.#number + 1) {
      this.#problems.push(`${name}: the files between number ${this.#number} and ${number} are missing.`);
    } else if (first === undefined) {
      return;
    } else if (this.#head === undefined && this.#number === undefined && number > 1) {
      this.#problems.push(`${name} is not the first of its ledger: the files before it are missing.`);
    } else if (first !== (this.#head ?? GENESIS)) {
      this.#problems.push(`${name}, line 1: does not follow the last line of the file before it.`);
    }
  }
}
