import { randomUUID } from 'node:crypto';
import pLimit from 'p-limit';
import { type ColumnChange, MAX_CHANGES } from '../../table/changes.ts';
import { begunRun, type RunHistory, type RunOutcome, type RunRecord, unended } from '../../table/runs.ts';
import { NO_HISTORY, parseHistory } from '../history.ts';
import type { Storage } from './storage/storage.ts';

const FOLDER = '_dfinery/runs';
const NAME = /^_dfinery\/runs\/(\d{4}-\d{2}-\d{2}T\d{2})-(\d{2})-(\d{2}\.\d{3}Z)-[0-9a-f]{8}(\.begun)?\.json$/;
/** Runs kept: the latest. One request lists as many objects. */
const MOST_RUNS = 1_000;
/** Objects read at once. */
const AT_ONCE = 16;

/** A run by the names of its objects. */
interface Named {
  readonly began: string;
  /** Path of the object written when the run ended; null while it is running, or if it was killed. */
  readonly ended: string | null;
  /** Paths of all its objects. */
  readonly paths: readonly string[];
}

/** The runs whose objects have these paths, oldest first; other paths are ignored. */
function runsOf(paths: Iterable<string>): Named[] {
  const runs = new Map<string, Named>();
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

async function listRuns(storage: Storage): Promise<Named[]> {
  const paths: string[] = [];
  for await (const { path } of storage.list(FOLDER)) paths.push(path);
  return runsOf(paths);
}

/** Paths of run objects to remove: those of runs beyond the latest `MOST_RUNS`, and the begin objects of ended runs. */
export function expiredRunFiles(paths: Iterable<string>): string[] {
  const runs = runsOf(paths);
  return [
    ...runs.slice(0, -MOST_RUNS).flatMap((run) => run.paths),
    ...runs.slice(-MOST_RUNS).flatMap((run) => run.paths.filter((path) => run.ended !== null && path !== run.ended)),
  ];
}

/** The latest `most` runs of a place, oldest first. Throws Failure. */
export async function readRuns(storage: Storage, most: number): Promise<RunRecord[]> {
  const limit = pLimit(AT_ONCE);
  const read = async ({ ended, paths }: Named) => {
    const path = ended ?? paths[0] ?? '';
    const bytes = await storage.read(path);
    // The run ended in the meantime, or another run removed the object.
    if (bytes === undefined) return [];
    return parseHistory(bytes.toString('utf8'), `${storage.address}/${path}`).runs;
  };
  const latest = (await listRuns(storage)).slice(-most);
  return (await Promise.all(latest.map((run) => limit(() => read(run))))).flat();
}

/**
 * The run history of a place with several writers (S49). Each run writes objects under names of its own beside the tables,
 * so that runs do not overwrite each other; its end object replaces its begin object.
 */
export class RunObjects implements RunHistory {
  readonly isShared = true;
  readonly #storage: Storage;
  #begun: { readonly path: string; readonly run: RunRecord } | undefined;
  #changes: readonly ColumnChange[] = [];

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  async begin(began: string, version: string): Promise<string[]> {
    const before = unended(await listRuns(this.#storage));
    const path = `${FOLDER}/${began.replaceAll(':', '-')}-${randomUUID().slice(0, 8)}`;
    const run = begunRun(began, version);
    await this.#storage.create(`${path}.begun.json`, JSON.stringify({ ...NO_HISTORY, runs: [run] }));
    this.#begun = { path, run };
    return before;
  }

  async end(ended: string, outcome: RunOutcome): Promise<void> {
    if (this.#begun === undefined) return;
    const { path, run } = this.#begun;
    const history = { ...NO_HISTORY, runs: [{ ...run, ended, ...outcome }], changes: this.#changes };
    // `write`, not `create`: a run that fails after this object was written replaces it.
    await this.#storage.write(`${path}.json`, JSON.stringify(history));
    await this.#storage.remove([`${path}.begun.json`]);
  }

  /** Notes the changes of a window that is committed; the log has them too. */
  add(changes: readonly ColumnChange[]): void {
    this.#changes = [...this.#changes, ...changes].slice(-MAX_CHANGES);
  }
}
