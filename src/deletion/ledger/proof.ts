import { existsSync, statSync } from 'node:fs';
import { configError } from '../../base/errors.ts';
import type { Secret } from '../../base/secrets.ts';
import { givenOrStoredKey } from './key.ts';
import type { Chained, Line } from './line.ts';
import { isOfService, type ServiceName } from './unfinished.ts';
import { verifyLedger } from './verify.ts';

/** Where a line of the ledger stands. */
interface LinePlace {
  readonly file: string;
  /** Number of the line, from 1. */
  readonly line: number;
}

/** One answer that the service gave for an id. */
interface ProvedAnswer extends LinePlace, Pick<Line<'after'>, 'at' | 'outcome' | 'code' | 'status' | 'run'> {
  readonly base_url: string;
  readonly service_id: string;
  readonly requested_by: string | null;
  readonly reason: string | null;
}

/**
 * The result of a purge that covered the id, in one place and for all its people: what was removed, and what was not
 * reached.
 */
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
