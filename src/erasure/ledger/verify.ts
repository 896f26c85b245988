import { existsSync, statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { configError } from '../../base/errors.ts';
import type { Secret } from '../../base/secrets.ts';
import { fileOf, isOpenToOthers, type LedgerFile, ledgerFiles, readLedgerFile } from './file.ts';
import { givenOrStoredKey } from './key.ts';
import { type Chained, GENESIS, type Line } from './line.ts';
import { isOfService, type ServiceName } from './unfinished.ts';

export interface VerifyOptions {
  /** The code of a line that must be there. */
  readonly head?: string | undefined;
  /** Called for each valid line with its file's name and line number, before the verdict is known. */
  readonly see?: (line: Chained, file: string, number: number) => void;
}

/**
 * Verifies a ledger: a folder whole, or one file and all files before it in the chain. Finds every edit; with `head`,
 * the code that a run printed, also a tail that was cut off. The result is schemas/ledger-verdict.json.
 */
export async function verifyLedger(
  path: string,
  key: Secret | undefined,
  { head, see = () => {} }: VerifyOptions = {},
) {
  const { folder, files } = filesToVerify(path);
  const ledgerKey = givenOrStoredKey(folder, key);
  const wanted = head?.trim().toLowerCase();
  const verified: { file: string; run: string; lines: number; closed: boolean; torn_bytes: number }[] = [];
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
  return { v: 1, kind: 'ledger_verdict', ok, files: verified, problems, notes, head: before.head ?? null } as const;
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
 * The deletions of a ledger, oldest first, and its problems: the counts of a ledger with a problem prove nothing. A run
 * that only showed people (`access`) is none of them. Throws a configuration failure for a folder without a ledger.
 * Memory: a hash an id of the largest run.
 */
export async function countLedger(
  folder: string,
  key: Secret | undefined,
): Promise<{ readonly runs: readonly LedgerCounts[]; readonly problems: readonly string[] }> {
  const runs: LedgerCounts[] = [];
  const accesses = new Set<string>();
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
    } else if (line.kind === 'access') accesses.add(line.run);
    else if (line.kind === 'close') run.isClosed = true;
  };
  const { problems } = await verifyLedger(folder, key, { see });
  return { runs: runs.filter(({ run }) => !accesses.has(run)), problems };
}

/** Where a line stands; lines count from 1. */
interface LinePlace {
  readonly file: string;
  readonly line: number;
}

function provedAnswer({ at, outcome, code, status, run }: Line<'after'>, place: LinePlace, open: Line<'open'>) {
  const { base_url, service_id, requested_by = null, reason = null } = open;
  return { at, outcome, code, status, run, ...place, base_url, service_id, requested_by, reason };
}

/** The result, in one place and for all its people, of a purge that covered the id. */
function provedPurge({ at, target, outcome, counts, unreached = [], run }: Line<'purge'>, place: LinePlace) {
  return { at, target, outcome, counts, unreached, run, ...place };
}

/**
 * The purge of a place that the run's line `open` or `purging` announced, until its result is known. The ledger does
 * not tell whether the run has ended. Before the purge began the run removed nobody there; since then it is not known
 * who was removed.
 */
function announcedPurge({ kind, at, run }: Line<'open' | 'purging'>, target: string, place: LinePlace) {
  const [counts, missed] = kind === 'open' ? [{ people: 0, rows: 0 }, NOT_BEGUN] : [{}, NOT_ENDED];
  return { at, target, outcome: 'open', counts, unreached: [missed], run, ...place } as const;
}

// The other line may be of a run before: one that goes on with another purges all of its places again.
const UNLESS_REMOVED = 'unless another line says that they were removed';
const NOT_BEGUN = `The run has not begun its purge of this place: the people are still there ${UNLESS_REMOVED}.`;
const NOT_ENDED = `The run has not ended its purge of this place: the people may still be there ${UNLESS_REMOVED}.`;

/** When, and with what answers, an id was erased: schemas/proof.json. */
export type Proof = Awaited<ReturnType<typeof proveErasure>>;

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
 * Proves when, and with what answers, the deletion of an id was requested at one service: at another one the same id
 * may be another person. Gives every answer, and every purge of a run that the id was deleted in, or only purged in
 *, the oldest run first; at the end of each run the places that it was to purge and did not. Memory: the answers
 * found.
 */
export async function proveErasure(id: string, query: ProofQuery) {
  const { folder } = query;
  if (!existsSync(folder)) throw configError(`There is no ledger at ${folder}.`);
  if (!statSync(folder).isDirectory()) throw configError(`${folder} is no folder: wanted the ledger's folder.`);
  const hash = givenOrStoredKey(folder, query.key).idHash(id);
  const found: ReturnType<typeof provedAnswer>[] = [];
  const purges: (ReturnType<typeof provedPurge> | ReturnType<typeof announcedPurge>)[] = [];
  const runs = new Set<string>();
  let open: Line<'open'> | undefined;
  /** Of the run that `open` began, by place. */
  const announced = new Map<string, ReturnType<typeof announcedPurge>>();
  const endRun = () => {
    if (open !== undefined && runs.has(open.run)) purges.push(...announced.values());
    announced.clear();
  };
  let { service } = query;
  const see = (line: Chained, file: string, number: number) => {
    const place = { file, line: number };
    if (line.kind === 'open') {
      endRun();
      open = line;
      service ??= { baseUrl: line.base_url, serviceId: line.service_id };
      if (query.service === undefined && !isOfService(line, service)) {
        throw configError(`The ledger in ${folder} is of several services: say with --config which one is meant.`);
      }
    }
    if (!open || !service || !isOfService(open, service)) return;
    if (line.kind === 'open') {
      // A run that goes on with another one purges those whom that one has deleted.
      if (line.resumes !== undefined && runs.has(line.resumes)) runs.add(line.run);
      for (const target of line.places ?? []) announced.set(target, announcedPurge(line, target, place));
    } else if (line.kind === 'purging') announced.set(line.target, announcedPurge(line, line.target, place));
    else if (line.kind === 'purge') {
      announced.delete(line.target);
      if (runs.has(line.run)) purges.push(provedPurge(line, place));
    } else if (line.kind === 'purge_only' && line.id === hash) runs.add(line.run);
    else if (line.kind === 'after' && line.id === hash) {
      found.push(provedAnswer(line, place, open));
      if (line.outcome === 'done') runs.add(line.run);
      // It goes on with a run that deleted the id and was too old for that to count: its purge is not of this id.
      else runs.delete(line.run);
    }
  };
  const { problems } = await verifyLedger(folder, query.key, { head: query.head, see });
  endRun();
  // A broken chain proves nothing, even if single lines are valid.
  const [answers, proved] = problems.length === 0 ? [found, purges] : [[], []];
  const erased = answers.some(({ outcome }) => outcome === 'done');
  const { baseUrl: base_url = null, serviceId: service_id = null } = service ?? {};
  return { v: 1, kind: 'proof', id: hash, base_url, service_id, erased, answers, purges: proved, problems } as const;
}
