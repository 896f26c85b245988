import { join } from 'node:path';
import { EXIT, type ExitCode } from '../../base/errors.ts';
import type { Secret } from '../../base/secrets.ts';
import {
  type Chained,
  hasVerdict,
  isOfService,
  LEDGER_FILE,
  type LineOf,
  openLedger,
  type ServiceAddress,
  type Verdict,
  verifyLedger,
} from './chain.ts';

export interface ProofQuery {
  /** The folder of the ledger. */
  readonly folder: string;
  readonly key: Secret | undefined;
  readonly service: ServiceAddress;
  /** The code of a line that must be there. */
  readonly head?: string | undefined;
}

interface Answer {
  readonly at: string;
  readonly outcome: Verdict;
  readonly code: string;
  readonly line: number;
}

interface Removal {
  /** When the rows were found, right before their removal. */
  readonly at: string;
  readonly place: string;
  readonly rows: number;
  /** By when the removal was done; null if no line says so. */
  readonly removed_at: string | null;
  readonly line: number;
}

interface Access {
  readonly at: string;
  readonly rows: number;
  readonly ways: readonly string[];
  readonly places: readonly string[];
}

/** What the lines say of an id in one word; `not_asked`: its rows were purged without a request. */
type ProofState = 'confirmed' | 'rejected' | 'open' | 'not_asked' | 'shown' | 'unknown';

/** What the lines of a ledger say of one id. */
interface ProvedId {
  /** HMAC of the id, as in the lines. */
  readonly id: string;
  /** The row of the id in the list that was given. */
  readonly row: number;
  readonly state: ProofState;
  /** Of an open id: when the service was asked last; null if it was never asked. */
  readonly asked_at: string | null;
  readonly answers: readonly Answer[];
  readonly removals: readonly Removal[];
  /** When somebody was shown what places held of the person. */
  readonly shown: readonly Access[];
}

/** An id while the ledger is read. */
interface TracedId extends Pick<ProvedId, 'id' | 'row'> {
  readonly answers: Answer[];
  /** `run`: the run that counted the rows. */
  readonly removals: (Removal & { readonly run: string })[];
  readonly shown: Access[];
  readonly runs: Set<string>;
  /** When the last request without a clear answer was sent. */
  openSince?: string | undefined;
  /** The same before the newest request, which perhaps was not sent. */
  previousOpenSince?: string | undefined;
  /** True if it was purged in a run that sends requests, or a request was begun. */
  isToBeAsked: boolean;
}

/**
 * What the ledger says of these external ids at one service (schemas/proof.json). It says when the service confirmed or
 * rejected their deletion, and how many rows left which place. A broken ledger proves nothing. Memory: the lines of the
 * ids.
 */
export async function proveErasure(ids: readonly { readonly id: string; readonly row: number }[], query: ProofQuery) {
  const { folder, service, head } = query;
  const ledger = openLedger(join(folder, LEDGER_FILE), query.key);
  const trace = new LedgerTrace(service);
  for (const { id, row } of ids) trace.add(ledger.key.idHash(id), row);
  const see = (line: Chained, number: number) => trace.see(line, number);
  const { ok, problems, head: last } = await verifyLedger(ledger, { head, see });
  const { baseUrl: base_url, serviceId: service_id } = service;
  const proved = ok ? trace.ids() : [];
  const summary = { ...countStates(proved), ...(ok ? trace.runsSummary() : NO_RUNS) };
  return { v: 1, kind: 'proof', base_url, service_id, head: last, summary, ids: proved, problems } as const;
}

export type Proof = Awaited<ReturnType<typeof proveErasure>>;

const NO_RUNS = { since: null, until: null, requested_by: [], reasons: [], places: [] };

/** Follows some ids through the lines of a ledger. */
class LedgerTrace {
  readonly #service: ServiceAddress;
  readonly #ids = new Map<string, TracedId>();
  readonly #runs = new Map<string, LineOf<'open'>>();
  readonly #removals = new RemovalTrace();

  constructor(service: ServiceAddress) {
    this.#service = service;
  }

  add(id: string, row: number): void {
    if (this.#ids.has(id)) return;
    this.#ids.set(id, { id, row, answers: [], removals: [], shown: [], runs: new Set(), isToBeAsked: false });
  }

  see(line: Chained, number: number): void {
    if (line.kind === 'open') {
      if (isOfService(line, this.#service)) this.#runs.set(line.run, line);
      return;
    }
    const run = this.#runs.get(line.run);
    if (run === undefined) return;
    if (line.kind === 'purged') {
      this.#removals.noteDone(line);
      return;
    }
    const traced = line.id === null ? undefined : this.#ids.get(line.id);
    if (traced === undefined) return;
    traced.runs.add(line.run);
    const { at } = line;
    switch (line.kind) {
      case 'access':
        traced.shown.push({ at, rows: line.rows, ways: line.ways, places: line.places });
        return;
      case 'purge':
        traced.isToBeAsked ||= run.requests;
        this.#removals.noteCounted(traced, line, number);
        return;
      case 'before':
        traced.previousOpenSince = traced.openSince;
        traced.openSince = at;
        traced.isToBeAsked = true;
        return;
      case 'after':
        if (line.outcome === 'not_sent') traced.openSince = traced.previousOpenSince;
        if (!hasVerdict(line)) return;
        traced.openSince = undefined;
        traced.answers.push({ at, outcome: line.outcome, code: line.code, line: number });
    }
  }

  ids(): ProvedId[] {
    return [...this.#ids.values()].map((traced) => ({
      id: traced.id,
      row: traced.row,
      state: stateOf(traced),
      asked_at: traced.openSince ?? null,
      answers: traced.answers,
      removals: traced.removals.map(({ run: _, ...removal }) => removal),
      shown: traced.shown,
    }));
  }

  /** Who asked for the deletions and why, since when, and the places that the people left. */
  runsSummary() {
    const traced = [...this.#ids.values()];
    const removals = traced.flatMap((id) => id.removals);
    const runs = [...this.#runs.values()].filter(({ run }) => traced.some((id) => id.runs.has(run)));
    const valuesOf = (key: 'requested_by' | 'reason') => [...new Set(runs.flatMap((run) => run[key] ?? []))];
    const times = [
      ...traced.flatMap(({ answers, shown }) => [...answers, ...shown].map(({ at }) => at)),
      ...removals.map(({ at, removed_at }) => removed_at ?? at),
    ];
    return {
      since: runs[0]?.at ?? null,
      until: times.reduce<string | null>((last, at) => (last === null || at > last ? at : last), null),
      requested_by: valuesOf('requested_by'),
      reasons: valuesOf('reason'),
      places: [...new Set(removals.map(({ place }) => place))].map((place) => ({
        place,
        rows: removals
          .filter((removal) => removal.place === place && removal.removed_at !== null)
          .reduce((sum, removal) => sum + removal.rows, 0),
        stays: this.#removals.lastDone(place)?.stays ?? [],
        unreached: this.#removals.lastDone(place)?.unreached ?? false,
      })),
    };
  }
}

/** Follows the removals of rows: a line `purge` counts the rows of an id, a line `purged` says that they are gone. */
class RemovalTrace {
  /** The ids whose rows a run counted in a place, until that purge is done; by run and place. */
  readonly #counted = new Map<string, Set<TracedId>>();
  /** The newest purge that was done, by place. */
  readonly #done = new Map<string, LineOf<'purged'>>();

  lastDone(place: string): LineOf<'purged'> | undefined {
    return this.#done.get(place);
  }

  noteCounted(traced: TracedId, { run, at, place, rows }: LineOf<'purge'>, line: number): void {
    const purge = purgeKey(run, place);
    this.#counted.set(purge, (this.#counted.get(purge) ?? new Set()).add(traced));
    const removal = { run, at, place, rows, removed_at: null, line };
    const { removals } = traced;
    const index = removals.findIndex((other) => other.place === place && other.removed_at === null);
    // Nothing is unfinished there: these are other rows.
    if (index === -1) {
      removals.push(removal);
      return;
    }
    const unfinished = removals[index];
    // Another run failed or was killed. What it counted includes these rows, and perhaps more that it removed.
    if (unfinished.run !== run && unfinished.rows > rows) return;
    // The same run counts anew, after it lost a race. Or another run counts all of those rows, and more.
    removals.splice(index, 1);
    removals.push(removal);
  }

  /** What an earlier run counted there is gone, too: that run may have been killed before it could say so. */
  noteDone(line: LineOf<'purged'>): void {
    const { run, at, place } = line;
    this.#done.set(place, line);
    const purge = purgeKey(run, place);
    for (const { removals } of this.#counted.get(purge) ?? []) {
      for (const [i, removal] of removals.entries()) {
        if (removal.place === place) removals[i] = { ...removal, removed_at: removal.removed_at ?? at };
      }
    }
    this.#counted.delete(purge);
  }
}

const purgeKey = (run: string, place: string): string => `${run} ${place}`;

function stateOf({ openSince, isToBeAsked, answers, removals, shown }: TracedId): ProofState {
  if (openSince !== undefined || (isToBeAsked && answers.length === 0)) return 'open';
  if (answers.some(({ outcome }) => outcome === 'done')) return 'confirmed';
  if (answers.length > 0) return 'rejected';
  if (removals.length > 0) return 'not_asked';
  return shown.length > 0 ? 'shown' : 'unknown';
}

function countStates(ids: readonly ProvedId[]) {
  const countOf = (state: ProofState) => ids.filter((id) => id.state === state).length;
  return {
    ids: ids.length,
    confirmed: countOf('confirmed'),
    rejected: countOf('rejected'),
    open: countOf('open'),
    not_asked: countOf('not_asked'),
    shown: countOf('shown'),
    unknown: countOf('unknown'),
  };
}

/** 1: the ledger is broken, or says nothing of an id. 3: an id is open, or part of a place was not reached. */
export function exitOfProof({ problems, summary }: Proof): ExitCode {
  if (problems.length > 0 || summary.unknown > 0) return EXIT.failed;
  const isUnfinished = summary.open > 0 || summary.places.some(({ unreached }) => unreached);
  return isUnfinished ? EXIT.later : EXIT.done;
}
