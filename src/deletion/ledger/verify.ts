import { existsSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { configError, type UserError } from '../../base/errors.ts';
import type { Secret } from '../../base/secrets.ts';
import { fileOf, isOpenToOthers, type LedgerFile, ledgerFiles, readLedgerFile } from './file.ts';
import { LedgerKey, storedKey } from './key.ts';
import { type AfterLine, type Chained, GENESIS, type OpenLine, type PurgeLine } from './line.ts';
import type { ServiceName } from './store.ts';

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
function keyOfLedger(folder: string, given: Secret | undefined): LedgerKey {
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

/** Where a line of the ledger stands. */
interface LinePlace {
  readonly file: string;
  /** From 1. */
  readonly line: number;
}

/** One answer that the service gave for an id. */
interface ProvedAnswer extends LinePlace, Pick<AfterLine, 'at' | 'outcome' | 'code' | 'status' | 'run'> {
  readonly base_url: string;
  readonly service_id: string;
  readonly requested_by: string | null;
  readonly reason: string | null;
}

/** What a purge that covered the id removed from one place, of all its people, and what it did not reach. */
interface ProvedPurge
  extends LinePlace,
    Required<Pick<PurgeLine, 'at' | 'target' | 'outcome' | 'counts' | 'unreached' | 'run'>> {}

export interface Proof {
  readonly v: 1;
  readonly kind: 'proof';
  /** Hex of the id's hash as it stands in the ledger; the id itself is not repeated. */
  readonly id: string;
  /** The service of the proof: at another one the same id may be another person. Null: the ledger has no line. */
  readonly base_url: string | null;
  readonly service_id: string | null;
  readonly erased: boolean;
  /** Every answer, oldest first. */
  readonly answers: readonly ProvedAnswer[];
  /** Every purge of a run that the id was deleted in, or only purged in (S56), oldest first. */
  readonly purges: readonly ProvedPurge[];
  /** Problems of the ledger: with any, its answers prove nothing. */
  readonly problems: readonly string[];
}

export interface ProofQuery {
  readonly folder: string;
  /** Absent: the key in the folder. */
  readonly key: Secret | undefined;
  /** Absent: the only service in the ledger; a ledger of several services is refused. */
  readonly service: ServiceName | undefined;
  /** The code of a line that must be there: with it a tail that was cut off shows. */
  readonly head?: string | undefined;
}

/**
 * When, and with what answers, an id was asked to be erased at one service, from every file of a ledger, once its whole
 * chain was verified. Memory: the answers found.
 */
export async function proveErasure(id: string, query: ProofQuery): Promise<Proof> {
  const { folder } = query;
  if (!existsSync(folder)) throw configError(`There is no ledger at ${folder}.`);
  if (!statSync(folder).isDirectory()) throw configError(`${folder} is no folder: wanted the ledger's folder.`);
  const key = keyOfLedger(folder, query.key);
  const hash = key.idHash(id);
  const found: ProvedAnswer[] = [];
  const purges: ProvedPurge[] = [];
  const runs = new Set<string>();
  let open: OpenLine | undefined;
  let service = query.service;
  const { problems } = await verifyLedger(folder, query.key, {
    head: query.head,
    see: (line, file, number) => {
      const place = { file, line: number };
      if (line.kind === 'open') {
        open = line;
        service ??= { baseUrl: line.base_url, serviceId: line.service_id };
        if (query.service === undefined && !isOf(service, line)) throw severalServices(folder);
      }
      if (!open || !service || !isOf(service, open)) return;
      // A run that goes on with another one purges those whom that one has deleted.
      if (line.kind === 'open' && line.resumes !== undefined && runs.has(line.resumes)) runs.add(line.run);
      if (line.kind === 'purge' && runs.has(line.run)) purges.push(purgeOf(line, place));
      if (line.kind === 'purge_only' && line.id === hash) runs.add(line.run);
      if (line.kind !== 'after' || line.id !== hash) return;
      found.push(answerOf(line, open, place));
      if (line.outcome === 'done') runs.add(line.run);
    },
  });
  // A broken chain proves nothing, even if single lines are valid.
  const [answers, proved] = problems.length === 0 ? [found, purges] : [[], []];
  const erased = answers.some(({ outcome }) => outcome === 'done');
  const { baseUrl: base_url = null, serviceId: service_id = null } = service ?? {};
  return { v: 1, kind: 'proof', id: hash, base_url, service_id, erased, answers, purges: proved, problems };
}

const severalServices = (folder: string): UserError =>
  configError(`The ledger in ${folder} is of several services: say with --config which one is meant.`);

const isOf = ({ baseUrl, serviceId }: ServiceName, open: OpenLine): boolean =>
  open.base_url === baseUrl && open.service_id === serviceId;

function purgeOf(purge: PurgeLine, place: LinePlace): ProvedPurge {
  const { at, target, outcome, counts, unreached = [], run } = purge;
  return { at, target, outcome, counts, unreached, run, ...place };
}

function answerOf({ at, outcome, code, status, run }: AfterLine, open: OpenLine, place: LinePlace): ProvedAnswer {
  const { base_url, service_id, requested_by = null, reason = null } = open;
  return { at, outcome, code, status, run, ...place, base_url, service_id, requested_by, reason };
}
