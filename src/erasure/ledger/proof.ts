import { count } from '../../base/quantities.ts';
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
  readonly requested_by: string | null;
  readonly reason: string | null;
  readonly line: number;
}

interface Removal {
  /** When the rows were found, right before their removal. */
  readonly at: string;
  readonly place: string;
  readonly rows: number;
  /** When the removal was done; null if no line says so. */
  removed_at: string | null;
  readonly line: number;
}

/** What the lines of a ledger say of one id. */
interface ProvedId {
  /** HMAC of the id, as in the lines. */
  readonly id: string;
  /** The row of the id in the list that was given. */
  readonly row: number;
  readonly answers: Answer[];
  readonly removals: Removal[];
  /** When somebody was shown what places held of the person. */
  readonly shown: string[];
}

/**
 * What the ledger says of these ids at one service: when the service confirmed or rejected their deletion, and how many
 * rows left which place when (schemas/proof.json). A ledger that is broken proves nothing. Memory: the lines of the ids.
 */
export async function proveErasure(ids: readonly { readonly id: string; readonly row: number }[], query: ProofQuery) {
  const { path, service, head } = query;
  const { key } = openLedger(path, query.key);
  const proved = new Map<string, ProvedId>();
  for (const { id, row } of ids) {
    const hash = key.idHash(id);
    if (!proved.has(hash)) proved.set(hash, { id: hash, row, answers: [], removals: [], shown: [] });
  }
  const runs = new Map<string, Line<'open'>>();
  /** Removals that no line has called done yet, by run and place. */
  const open = new Map<string, Removal[]>();
  const see = (line: Chained, number: number) => {
    if (line.kind === 'open') {
      if (line.base_url === service.baseUrl && line.service_id === service.serviceId) runs.set(line.run, line);
      return;
    }
    const run = runs.get(line.run);
    if (run === undefined) return;
    if (line.kind === 'purged') {
      for (const removal of open.get(`${line.run} ${line.place}`) ?? []) removal.removed_at = line.at;
      return;
    }
    const one = line.id === null ? undefined : proved.get(line.id);
    if (one === undefined) return;
    const { at } = line;
    if (line.kind === 'access') one.shown.push(at);
    else if (line.kind === 'purge') {
      const removal = { at, place: line.place, rows: line.rows, removed_at: null, line: number };
      const name = `${line.run} ${line.place}`;
      // A purge that lost a race begins again: the last count is the one that was removed.
      one.removals.splice(0, one.removals.length, ...one.removals.filter((known) => !open.get(name)?.includes(known)));
      open.set(name, [...(open.get(name) ?? []), removal]);
      one.removals.push(removal);
    } else if (line.kind === 'after' && (line.outcome === 'done' || line.outcome === 'rejected')) {
      const { requested_by = null, reason = null } = run;
      one.answers.push({ at, outcome: line.outcome, code: line.code, requested_by, reason, line: number });
    }
  };
  const { ok, problems, head: last } = await verifyLedger(path, query.key, { head, see });
  const { baseUrl: base_url, serviceId: service_id } = service;
  const found = ok ? [...proved.values()] : [];
  return { v: 1, kind: 'proof', base_url, service_id, head: last, ids: found, problems } as const;
}

export type Proof = Awaited<ReturnType<typeof proveErasure>>;

/** True if the ledger says something of each id: an answer of the service, or a removal. */
export const isProved = ({ ids, problems }: Proof): boolean =>
  problems.length === 0 && ids.every(({ answers, removals }) => answers.length + removals.length > 0);

/** The proof as lines for people: facts alone, each with its time. `isList`: the ids have rows of a list. */
export function proofLines({ ids, problems, base_url, service_id, head }: Proof, isList: boolean): string[] {
  if (problems.length > 0) return [...problems, 'The ledger is broken and proves nothing.'];
  return [
    `Service ${service_id} at ${base_url}. The chain of the ledger is whole; its head is ${head}.`,
    ...ids.flatMap(({ row, id, answers, removals, shown }) => [
      isList ? `Row ${row} of the list (${id.slice(0, 16)}):` : `The ID (${id.slice(0, 16)}):`,
      ...answers.map(({ at, outcome, code }) =>
        outcome === 'done'
          ? `  ${at}  the service confirmed the deletion`
          : `  ${at}  the service rejected the ID (${code})`,
      ),
      ...removals.map(({ at, place, rows, removed_at }) => {
        if (removed_at === null)
          return `  ${at}  ${place}: ${count(rows, 'row')} found; no line says that they were removed`;
        const what = rows === 0 ? 'held no row of this ID' : `${count(rows, 'row')} removed`;
        return `  ${removed_at}  ${place}: ${what}`;
      }),
      ...shown.map((at) => `  ${at}  the rows of the person were shown (person)`),
      ...(answers.length + removals.length === 0 ? ['  The ledger has no answer and no removal for it.'] : []),
    ]),
  ];
}
