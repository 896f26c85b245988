import { randomUUID } from 'node:crypto';
import pLimit from 'p-limit';
import valid from '../../../schemas/run.validator';
import { configError } from '../../base/errors.ts';
import { jsonOf } from '../../base/json.ts';
import type { Storage } from '../../storage/storage.ts';
import { MAX_RUNS, type RunHistory, type RunRecord } from '../../table/runs.ts';

const FOLDER = '_dfinery/runs';
const RUN_PATH = /^_dfinery\/runs\/\d{4}-\d{2}-\d{2}T\d{2}-\d{2}-\d{2}\.\d{3}Z-[0-9a-f]{8}\.json$/;
/** Number of objects that are read at the same time. */
const READ_CONCURRENCY = 16;

/** Paths of the runs of a place, oldest first. */
async function listRuns(storage: Storage): Promise<string[]> {
  const paths: string[] = [];
  for await (const { path } of storage.list(FOLDER)) if (RUN_PATH.test(path)) paths.push(path);
  return paths;
}

function recordIn(bytes: Buffer): RunRecord | undefined {
  const found = jsonOf(bytes.toString('utf8'));
  return valid<{ run: RunRecord }>(found) ? found.run : undefined;
}

export async function removeExpiredRuns(storage: Storage): Promise<void> {
  const expired = (await listRuns(storage)).slice(0, -MAX_RUNS);
  if (expired.length > 0) await storage.remove(expired);
}

/** Reads the latest runs of a place, oldest first. Throws UserError. */
export async function readRuns(storage: Storage): Promise<RunRecord[]> {
  const read = async (path: string) => {
    const bytes = await storage.read(path);
    // Another run removed it meanwhile.
    if (bytes === undefined) return [];
    const found = recordIn(bytes);
    if (found !== undefined) return [found];
    const file = `${storage.address}/${path}`;
    throw configError(`${file} is no record of a run of this program: restore it from a copy, or remove it.`, {
      where: { file },
    });
  };
  const latest = (await listRuns(storage)).slice(-MAX_RUNS);
  return (await pLimit(READ_CONCURRENCY).map(latest, read)).flat();
}

/** The run history of a place: each run has an object of its own, so that several writers overwrite nothing. */
export class RunObjects implements RunHistory {
  readonly isShared: boolean;
  readonly #storage: Storage;
  #path: string | undefined;

  constructor(storage: Storage, isShared: boolean) {
    this.#storage = storage;
    this.isShared = isShared;
  }

  async begin(run: RunRecord): Promise<string[]> {
    const before = await this.#unended();
    const path = `${FOLDER}/${run.began.replaceAll(':', '-')}-${randomUUID().slice(0, 8)}.json`;
    await this.#write(path, run);
    this.#path = path;
    return before;
  }

  async end(run: RunRecord): Promise<void> {
    if (this.#path !== undefined) await this.#write(this.#path, run);
  }

  #write(path: string, run: RunRecord): Promise<void> {
    return this.#storage.write(path, JSON.stringify({ v: 1, run }));
  }

  /** When the runs began that come after the last one with an end, oldest first. */
  async #unended(): Promise<string[]> {
    const began: string[] = [];
    for (const path of (await listRuns(this.#storage)).reverse()) {
      const bytes = await this.#storage.read(path);
      if (bytes === undefined) continue;
      const found = recordIn(bytes);
      if (found === undefined || found.ended !== null) break;
      began.unshift(found.began);
    }
    return began;
  }
}
