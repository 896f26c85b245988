import { randomUUID } from 'node:crypto';
import pLimit from 'p-limit';
import schema from '../../../schemas/run.json' with { type: 'json' };
import { configError } from '../../base/errors.ts';
import { compileSchema } from '../../config/validate.ts';
import { begunRun, MAX_RUNS, type RunHistory, type RunOutcome, type RunRecord, unended } from '../../table/runs.ts';
import type { Storage } from '../storage/storage.ts';

const FOLDER = '_dfinery/runs';
const NAME = /^_dfinery\/runs\/(\d{4}-\d{2}-\d{2}T\d{2})-(\d{2})-(\d{2}\.\d{3}Z)-[0-9a-f]{8}(\.begun)?\.json$/;
/** Objects read at once. */
const CONCURRENCY = 16;

/** A run by the names of its objects. */
interface NamedRun {
  readonly began: string;
  /** Path of the object written when the run ended; null while it is running, or if it was killed. */
  readonly ended: string | null;
  /** Paths of all its objects. */
  readonly paths: readonly string[];
}

/** The runs whose objects have these paths, oldest first; other paths are ignored. */
function runsOf(paths: Iterable<string>): NamedRun[] {
  const runs = new Map<string, NamedRun>();
  for (const path of paths) {
    const match = NAME.exec(path);
    if (match === null) continue;
    const [, hours, minutes, seconds, begun] = match;
    const key = path.slice(0, -(begun ?? '').length - '.json'.length);
    const known = runs.get(key) ?? { began: `${hours}:${minutes}:${seconds}`, ended: null, paths: [] };
    runs.set(key, { ...known, paths: [...known.paths, path], ended: begun === undefined ? path : known.ended });
  }
  return [...runs.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, run]) => run);
}

async function listRuns(storage: Storage): Promise<NamedRun[]> {
  const paths: string[] = [];
  for await (const { path } of storage.list(FOLDER)) paths.push(path);
  return runsOf(paths);
}

/** Removes the objects of runs beyond the latest `MAX_RUNS`, and the begin objects of ended runs. */
export async function removeExpiredRuns(storage: Storage): Promise<void> {
  const runs = await listRuns(storage);
  const expired = [
    ...runs.slice(0, -MAX_RUNS).flatMap((run) => run.paths),
    ...runs.slice(-MAX_RUNS).flatMap((run) => run.paths.filter((path) => run.ended !== null && path !== run.ended)),
  ];
  if (expired.length > 0) await storage.remove(expired);
}

/** The latest `most` runs of a place, oldest first. Throws UserError. */
export async function readRuns(storage: Storage, most: number): Promise<RunRecord[]> {
  const limit = pLimit(CONCURRENCY);
  const read = async ({ ended, paths }: NamedRun) => {
    const path = ended ?? paths[0] ?? '';
    const bytes = await storage.read(path);
    // The run ended in the meantime, or another run removed the object.
    return bytes === undefined ? [] : [parseRun(bytes.toString('utf8'), `${storage.address}/${path}`)];
  };
  const latest = (await listRuns(storage)).slice(-most);
  return (await Promise.all(latest.map((run) => limit(() => read(run))))).flat();
}

const valid = compileSchema<{ readonly run: RunRecord }>(schema);

function parseRun(text: string, where: string): RunRecord {
  const found = jsonOf(text);
  if (valid(found)) return found.run;
  throw configError(`${where} is no record of a run of this program: restore it from a copy, or remove it.`, {
    where: { file: where },
  });
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const textOf = (run: RunRecord): string => JSON.stringify({ v: 1, run });

/**
 * The run history of a place, which may have several writers (S49). Each run writes objects under names of its own beside the
 * tables, so that runs do not overwrite each other; its end object replaces its begin object.
 */
export class RunObjects implements RunHistory {
  readonly isShared: boolean;
  readonly #storage: Storage;
  #begun: { readonly path: string; readonly run: RunRecord } | undefined;

  constructor(storage: Storage, isShared: boolean) {
    this.#storage = storage;
    this.isShared = isShared;
  }

  async begin(began: string, version: string): Promise<string[]> {
    const before = unended(await listRuns(this.#storage));
    const path = `${FOLDER}/${began.replaceAll(':', '-')}-${randomUUID().slice(0, 8)}`;
    const run = begunRun(began, version);
    await this.#storage.create(`${path}.begun.json`, textOf(run));
    this.#begun = { path, run };
    return before;
  }

  async end(ended: string, outcome: RunOutcome): Promise<void> {
    if (this.#begun === undefined) return;
    const { path, run } = this.#begun;
    // `write`, not `create`: a run that fails after this object was written replaces it.
    await this.#storage.write(`${path}.json`, textOf({ ...run, ended, ...outcome }));
    await this.#storage.remove([`${path}.begun.json`]);
  }
}
