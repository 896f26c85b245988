import { existsSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { configError } from '../../base/errors.ts';
import type { Secret } from '../../base/secrets.ts';
import { fileOf, isOpenToOthers, type LedgerFile, ledgerFiles, readLedgerFile } from './file.ts';
import { givenOrStoredKey } from './key.ts';
import { type Chained, GENESIS, type Line } from './line.ts';
import { isOfService, type ServiceName } from './unfinished.ts';

interface VerifiedFile {
  readonly file: string;
  readonly run: string;
  readonly lines: number;
  /** False if the run is incomplete; a later one may have resumed it. */
  readonly closed: boolean;
  /** Bytes of a line that a crash cut off; such a line was never relied on. */
  readonly torn_bytes: number;
}

export interface LedgerVerdict {
  readonly v: 1;
  readonly kind: 'ledger_verdict';
  /** False if there is any problem. */
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
 * Verifies a ledger: a folder whole, or one file and all files before it in the chain. Finds every edit; with `head`,
 * the code that a run printed, also a tail that was cut off.
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
  let before: Before = {};
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
    problems.push(...chainProblems(name, number, facts.first, before));
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
  readonly number?: number;
  readonly head?: string | undefined;
}

function chainProblems(name: string, number: number, first: string | undefined, before: Before): string[] {
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

/** The counts of one run, which is one file: ids by their last outcome. */
export interface LedgerCounts {
  readonly run: string;
  readonly began: string;
  done: number;
  rejected: number;
  undecided: number;
  isClosed: boolean;
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
  const outcomes = new Map<string, 'done' | 'rejected' | 'undecided'>();
  const see = (line: Chained) => {
    const run = runs[runs.length - 1];
    if (line.kind === 'open') {
      runs.push({ run: line.run, began: line.at, done: 0, rejected: 0, undecided: 0, isClosed: false });
      outcomes.clear();
    } else if (line.kind === 'after') {
      const before = outcomes.get(line.id);
      const outcome = line.outcome === 'done' || line.outcome === 'rejected' ? line.outcome : 'undecided';
      if (before !== undefined) run[before]--;
      run[outcome]++;
      outcomes.set(line.id, outcome);
    } else if (line.kind === 'close') run.isClosed = true;
  };
  const { problems } = await verifyLedger(folder, key, { see });
  return { runs, problems };
}

interface LinePlace {
  readonly file: string;
  /** From 1. */
  readonly line: number;
}

interface ProvedAnswer extends LinePlace, Pick<Line<'after'>, 'at' | 'outcome' | 'code' | 'status' | 'run'> {
  readonly base_url: string;
  readonly service_id: string;
  readonly requested_by: string | null;
  readonly reason: string | null;
}

/** The result, in one place and for all its people, of a purge that covered the id. */
interface ProvedPurge
  extends LinePlace,
    Required<Pick<Line<'purge'>, 'at' | 'target' | 'outcome' | 'counts' | 'unreached' | 'run'>> {}

export interface Proof {
  readonly v: 1;
  readonly kind: 'proof';
  /** Keyed hash of the id (hex) as in the ledger; the id itself is not repeated. */
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
  /** The key of the ledger; absent: the key in its folder. */
  readonly key: Secret | undefined;
  /** The service of the proof; absent: the only service in the ledger. A ledger of several services is then refused. */
  readonly service: ServiceName | undefined;
  /** The code of a line that must be there: it reveals a tail that was cut off. */
  readonly head?: string | undefined;
}

/**
 * Proves when, and with what answers, the deletion of an id was requested at one service. It reads every file of a
 * ledger, after its whole chain was verified. Memory: the answers found.
 */
export async function proveErasure(id: string, query: ProofQuery): Promise<Proof> {
  const { folder } = query;
  if (!existsSync(folder)) throw configError(`There is no ledger at ${folder}.`);
  if (!statSync(folder).isDirectory()) throw configError(`${folder} is no folder: wanted the ledger's folder.`);
  const hash = givenOrStoredKey(folder, query.key).idHash(id);
  const found: ProvedAnswer[] = [];
  const purges: ProvedPurge[] = [];
  const runs = new Set<string>();
  let open: Line<'open'> | undefined;
  let { service } = query;
  const see = (line: Chained, file: string, number: number) => {
    const place = { file, line: number };
    if (line.kind === 'open') {
      open = line;
      service ??= { baseUrl: line.base_url, serviceId: line.service_id };
      if (query.service === undefined && !isOfService(line, service)) {
        throw configError(`The ledger in ${folder} is of several services: say with --config which one is meant.`);
      }
    }
    if (!open || !service || !isOfService(open, service)) return;
    // A run that goes on with another one purges those whom that one has deleted.
    if (line.kind === 'open' && line.resumes !== undefined && runs.has(line.resumes)) runs.add(line.run);
    if (line.kind === 'purge_only' && line.id === hash) runs.add(line.run);
    if (line.kind === 'purge' && runs.has(line.run)) {
      const { at, target, outcome, counts, unreached = [], run } = line;
      purges.push({ at, target, outcome, counts, unreached, run, ...place });
    }
    if (line.kind !== 'after' || line.id !== hash) return;
    const { at, outcome, code, status, run } = line;
    const { base_url, service_id, requested_by = null, reason = null } = open;
    found.push({ at, outcome, code, status, run, ...place, base_url, service_id, requested_by, reason });
    if (outcome === 'done') runs.add(run);
  };
  const { problems } = await verifyLedger(folder, query.key, { head: query.head, see });
  // A broken chain proves nothing, even if single lines are valid.
  const [answers, proved] = problems.length === 0 ? [found, purges] : [[], []];
  const erased = answers.some(({ outcome }) => outcome === 'done');
  const { baseUrl: base_url = null, serviceId: service_id = null } = service ?? {};
  return { v: 1, kind: 'proof', id: hash, base_url, service_id, erased, answers, purges: proved, problems };
}
