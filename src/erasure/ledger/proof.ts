import { EXIT, type ExitCode } from '../../base/errors.ts';
import { count, grouped } from '../../base/quantities.ts';
import type { Secret } from '../../base/secrets.ts';
import type { ServiceName } from './ledger.ts';
import type { Chained, Line } from './line.ts';
import { openLedger, verifyLedger } from './read.ts';

export interface ProofQuery {
  /** The ledger's file or folder. */
  readonly path: string;
  readonly key: Secret | undefined;
  readonly service: ServiceName;
  /** The code of a line that must be there. */
  readonly head?: string | undefined;
}

interface Answer {
  readonly at: string;
  readonly outcome: 'done' | 'rejected';
  readonly code: string;
  readonly line: number;
}

interface Removal {
  /** When the rows were found, right before their removal. */
  readonly at: string;
  readonly place: string;
  readonly rows: number;
  /** By when the removal was done; null if no line says so. */
  removed_at: string | null;
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
  state: ProofState;
  /** Of an open id: when the service was asked last; null if it was never asked. */
  asked_at: string | null;
  readonly answers: Answer[];
  readonly removals: Removal[];
  /** When somebody was shown what places held of the person. */
  readonly shown: Access[];
}

/** An id while the ledger is read. */
interface Traced {
  readonly proved: ProvedId;
  /** When the last request without a clear answer was sent. */
  askedAt: string | undefined;
  /** True if it was purged in a run that sends requests, or a request was begun. */
  isToBeAsked: boolean;
  readonly runs: Set<string>;
}

/**
 * What the ledger says of these ids at one service: when the service confirmed or rejected their deletion, and how many
 * rows left which place when (schemas/proof.json). A ledger that is broken proves nothing. Memory: the lines of the ids.
 */
export async function proveErasure(ids: readonly { readonly id: string; readonly row: number }[], query: ProofQuery) {
  const { path, service, head } = query;
  const { key } = openLedger(path, query.key);
  const trace = new LedgerTrace(service);
  for (const { id, row } of ids) trace.add(key.idHash(id), row);
  const see = (line: Chained, number: number) => trace.see(line, number);
  const { ok, problems, head: last } = await verifyLedger(path, query.key, { head, see });
  const { baseUrl: base_url, serviceId: service_id } = service;
  const proved = ok ? trace.ids() : [];
  const summary = { ...countStates(proved), ...(ok ? trace.context() : NO_CONTEXT) };
  return { v: 1, kind: 'proof', base_url, service_id, head: last, summary, ids: proved, problems } as const;
}

export type Proof = Awaited<ReturnType<typeof proveErasure>>;

const NO_CONTEXT = { since: null, until: null, requested_by: [], reasons: [], places: [] };

/** Follows some ids through the lines of a ledger. */
class LedgerTrace {
  readonly #service: ServiceName;
  readonly #ids = new Map<string, Traced>();
  readonly #runs = new Map<string, Line<'open'>>();
  /** What a run counted of the ids that it removes from a place, by run and place, until a line says that it is done. */
  readonly #removing = new Map<string, Map<Traced, Removal>>();
  /** What others made in a place, and stays, by place. */
  readonly #stays = new Map<string, readonly string[]>();

  constructor(service: ServiceName) {
    this.#service = service;
  }

  add(hash: string, row: number): void {
    if (this.#ids.has(hash)) return;
    const proved = { id: hash, row, state: 'unknown', asked_at: null, answers: [], removals: [], shown: [] } as const;
    const lists = { answers: [], removals: [], shown: [] };
    this.#ids.set(hash, { proved: { ...proved, ...lists }, askedAt: undefined, isToBeAsked: false, runs: new Set() });
  }

  see(line: Chained, number: number): void {
    const { baseUrl, serviceId } = this.#service;
    if (line.kind === 'open') {
      if (line.base_url === baseUrl && line.service_id === serviceId) this.#runs.set(line.run, line);
      return;
    }
    const run = this.#runs.get(line.run);
    if (run === undefined) return;
    if (line.kind === 'purged') {
      this.#purged(line);
      return;
    }
    const traced = line.id === null ? undefined : this.#ids.get(line.id);
    if (traced === undefined) return;
    traced.runs.add(line.run);
    const { proved } = traced;
    const { at } = line;
    switch (line.kind) {
      case 'access':
        proved.shown.push({ at, rows: line.rows, ways: line.ways, places: line.places });
        return;
      case 'purge':
        traced.isToBeAsked ||= run.requests;
        this.#removes(traced, line, number);
        return;
      case 'before':
        traced.askedAt = at;
        traced.isToBeAsked = true;
        return;
      case 'after':
        if (line.outcome === 'not_sent') traced.askedAt = undefined;
        if (line.outcome !== 'done' && line.outcome !== 'rejected') return;
        traced.askedAt = undefined;
        proved.answers.push({ at, outcome: line.outcome, code: line.code, line: number });
    }
  }

  /** Of two counts of the same rows the later counts in one run, where a purge lost a race; else the larger. */
  #removes(traced: Traced, { run, at, place, rows }: Line<'purge'>, number: number): void {
    const name = `${run} ${place}`;
    const counted = this.#removing.get(name) ?? new Map<Traced, Removal>();
    this.#removing.set(name, counted);
    const { removals } = traced.proved;
    const drop = (one: Removal) => {
      if (removals.includes(one)) removals.splice(removals.indexOf(one), 1);
    };
    const before = counted.get(traced);
    if (before !== undefined) drop(before);
    // What a run counted that failed or was killed is among these rows, as far as it was still there.
    const unfinished = removals.find((one) => one.place === place && one.removed_at === null);
    const removal = { at, place, rows, removed_at: null, line: number };
    counted.set(traced, removal);
    if (unfinished !== undefined && unfinished.rows > rows) return;
    if (unfinished !== undefined) drop(unfinished);
    removals.push(removal);
  }

  /** Also what an earlier run found there is gone by now, if that run was killed before it could say so. */
  #purged({ run, at, place, stays = [] }: Line<'purged'>): void {
    this.#stays.set(place, stays);
    for (const { proved } of this.#removing.get(`${run} ${place}`)?.keys() ?? []) {
      for (const removal of proved.removals) if (removal.place === place) removal.removed_at ??= at;
    }
    this.#removing.delete(`${run} ${place}`);
  }

  ids(): ProvedId[] {
    return [...this.#ids.values()].map(({ proved, askedAt, isToBeAsked }) => {
      const { answers, removals, shown } = proved;
      const isOpen = askedAt !== undefined || (isToBeAsked && answers.length === 0);
      const isConfirmed = answers.some(({ outcome }) => outcome === 'done');
      const without: ProofState = removals.length > 0 ? 'not_asked' : shown.length > 0 ? 'shown' : 'unknown';
      const answered: ProofState = isConfirmed ? 'confirmed' : answers.length > 0 ? 'rejected' : without;
      return { ...proved, state: isOpen ? 'open' : answered, asked_at: (isOpen && askedAt) || null };
    });
  }

  /** Who asked for the deletions and why, since when, and the places that the people left. */
  context() {
    const traced = [...this.#ids.values()];
    const runs = [...this.#runs.values()].filter(({ run }) => traced.some((one) => one.runs.has(run)));
    const names = new Set(traced.flatMap(({ proved }) => proved.removals.map(({ place }) => place)));
    const of = (key: 'requested_by' | 'reason') => [...new Set(runs.flatMap((run) => run[key] ?? []))];
    const times = traced.flatMap(({ proved }) => [
      ...proved.answers.map(({ at }) => at),
      ...proved.removals.map(({ at, removed_at }) => removed_at ?? at),
      ...proved.shown.map(({ at }) => at),
    ]);
    return {
      since: runs[0]?.at ?? null,
      until: times.reduce<string | null>((last, at) => (last === null || at > last ? at : last), null),
      requested_by: of('requested_by'),
      reasons: of('reason'),
      places: [...names].map((place) => ({
        place,
        rows: traced
          .flatMap(({ proved }) => proved.removals)
          .reduce((sum, one) => sum + (one.place === place && one.removed_at !== null ? one.rows : 0), 0),
        stays: this.#stays.get(place) ?? [],
      })),
    };
  }
}

function countStates(ids: readonly ProvedId[]) {
  const of = (state: ProofState) => ids.filter((one) => one.state === state).length;
  return {
    ids: ids.length,
    confirmed: of('confirmed'),
    rejected: of('rejected'),
    open: of('open'),
    not_asked: of('not_asked'),
    shown: of('shown'),
    unknown: of('unknown'),
  };
}

/** The exit code of a proof: a broken ledger, or an id of which it says nothing; an id that is still open; done. */
export function exitOf({ problems, summary }: Proof): ExitCode {
  if (problems.length > 0 || summary.unknown > 0) return EXIT.failed;
  return summary.open > 0 ? EXIT.later : EXIT.done;
}

/** The summary as sentences, for the terminal and for the page. */
export function summarySentences({ summary }: Pick<Proof, 'summary'>): string[] {
  const { ids, confirmed, rejected, open, not_asked, shown, unknown } = summary;
  const some = (n: number, text: string) => (n === 0 ? [] : [`${grouped(n)} ${text}`]);
  const states = [
    `${grouped(confirmed)} confirmed by the service`,
    `${grouped(rejected)} rejected by the service`,
    `${grouped(open)} open`,
    ...some(not_asked, 'purged without asking the service'),
    ...some(shown, 'shown alone'),
    ...some(unknown, 'without a line in the ledger'),
  ];
  const { since, until, requested_by, reasons, places } = summary;
  return [
    `${count(ids, 'ID')}: ${states.join(', ')}.`,
    ...places.map(({ place, rows, stays }) => {
      const stay = stays.length === 0 ? '' : ` Not made by dfinery-elt, stays there: ${stays.join(', ')}.`;
      return `${place}: ${count(rows, 'row')} removed.${stay}`;
    }),
    ...(requested_by.length === 0 ? [] : [`Asked for by: ${requested_by.join(', ')}.`]),
    ...(reasons.length === 0 ? [] : [`Reason: ${reasons.join('; ')}.`]),
    ...(since === null ? [] : [`From ${since} to ${until ?? since}.`]),
  ];
}

/** What the service said of an id last, as a sentence without its end. `timeOf` shows an instant. */
export function answerText({ state, answers, asked_at }: Proof['ids'][number], timeOf = (at: string) => at): string {
  const done = answers.findLast(({ outcome }) => outcome === 'done');
  const last = done ?? answers.at(-1);
  switch (state) {
    case 'open':
      return asked_at === null ? 'open: never asked' : `open: asked at ${timeOf(asked_at)}, no clear answer`;
    case 'not_asked':
      return 'the service was not asked';
    case 'confirmed':
    case 'rejected':
      return done === undefined ? `rejected (${last?.code}) ${timeOf(last?.at ?? '')}` : `confirmed ${timeOf(done.at)}`;
    default:
      return 'no request in the ledger';
  }
}

/** What became of the rows in one place. */
function removalText({ at, place, rows, removed_at }: Removal): string {
  if (removed_at === null) return `${at}  ${place}: ${count(rows, 'row')} found; no line says that they were removed`;
  return `${removed_at}  ${place}: ${rows === 0 ? 'held no row of this ID' : `${count(rows, 'row')} removed`}`;
}

function accessText({ at, rows, ways, places }: Access): string {
  if (rows > 0) return `${at}  ${count(rows, 'row')} of the person were shown (person)`;
  return `${at}  no row was found (person), looked for by ${ways.join(' and ')} in ${places.join(', ')}`;
}

/** The proof as lines for people: facts alone, each with its time. `isList`: the ids have rows of a list. */
export function proofLines(proof: Proof, isList: boolean): string[] {
  const { ids, problems, base_url, service_id, head } = proof;
  if (problems.length > 0) return [...problems, 'The ledger is broken and proves nothing.'];
  return [
    `Service ${service_id} at ${base_url}. The chain of the ledger is whole; its head is ${head}.`,
    ...summarySentences(proof),
    ...ids.flatMap((one) => [
      isList ? `Row ${one.row} of the list (${one.id.slice(0, 16)}):` : `The ID (${one.id.slice(0, 16)}):`,
      ...one.answers.map(({ at, outcome, code }) =>
        outcome === 'done'
          ? `  ${at}  the service confirmed the deletion`
          : `  ${at}  the service rejected the ID (${code})`,
      ),
      ...(one.state === 'open' || one.state === 'not_asked' ? [`  ${answerText(one)}`] : []),
      ...one.removals.map((removal) => `  ${removalText(removal)}`),
      ...one.shown.map((access) => `  ${accessText(access)}`),
      ...(one.state === 'unknown' ? ['  The ledger has no answer and no removal for it.'] : []),
    ]),
  ];
}
