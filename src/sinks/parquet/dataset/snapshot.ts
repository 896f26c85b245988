import { join } from 'node:path';
import { transientFailure } from '../../../base/errors.ts';
import { RunFolder } from '../../../extract/spool/run-folder.ts';
import { type Engine, openEngine } from '../../sql/engine/engine.ts';
import { type DatasetOptions, notOurDataset, readingEngine } from './dataset.ts';
import { type Places, placesIn } from './layout.ts';
import { type Manifest, parseManifest, readIfThere } from './manifest.ts';

/** A folder of datasets as it is at one moment. */
export interface Snapshot {
  readonly places: Places;
  readonly engine: Engine;
  readonly manifest: Manifest;
  /** The path of a live file. */
  pathOf(path: string): string;
}

/** What looking at a folder needs. */
export interface ReadOptions extends DatasetOptions {
  /** Where the engine keeps what memory cannot hold. */
  readonly spoolDir: string;
}

const POLL_MS = 100;
const MOST_TRIES = 5;

/**
 * Runs `look` on a folder without writing to it; repeats it if the folder changed meanwhile. A change that a dead run left
 * incomplete is finished by the next run: until then a transient failure is thrown. Throws what `look` throws, or Failure.
 */
export async function readDataset<T>(
  options: ReadOptions,
  look: (snapshot: Snapshot) => Promise<T>,
  isDoubtful: (found: T) => boolean,
): Promise<T> {
  const places = placesIn(options.dir);
  const work = await RunFolder.open(options.spoolDir, options.clock, 'verify');
  let engine: Engine | undefined;
  try {
    const own = await openEngine({ ...options, file: join(work.path, 'work'), lockWaitMs: 0 });
    engine = own;
    await readingEngine(own);
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const text = await settledManifest(places, options);
      const manifest = parseManifest(text, places.manifest);
      const pathOf = (path: string) => join(places.root, path);
      const found = await trying(() => look({ places, engine: own, manifest, pathOf }));
      if ('value' in found && !isDoubtful(found.value)) return found.value;
      options.signal?.throwIfAborted();
      if (await isChanged(places, text)) continue;
      if ('value' in found) return found.value;
      throw found.error;
    }
  } finally {
    await engine?.close();
    await work.remove();
  }
  throw transientFailure(`${places.root} is written all the while: try again once its writer is done.`);
}

/** The text of a manifest that is true: that of a change under way is not yet. */
async function settledManifest(places: Places, options: DatasetOptions): Promise<string> {
  const until = options.clock.now() + options.lockWaitMs;
  while ((await readIfThere(places.journal)) !== undefined) {
    const left = until - options.clock.now();
    if (left <= 0) {
      throw transientFailure(
        `${places.root} has a change that is not finished: wait for its writer, or let one run that may write finish it.`,
      );
    }
    await options.clock.sleep(Math.min(POLL_MS, left), options.signal);
  }
  const text = await readIfThere(places.manifest);
  if (text === undefined) throw notOurDataset(places);
  return text;
}

async function isChanged(places: Places, text: string): Promise<boolean> {
  return (await readIfThere(places.journal)) !== undefined || (await readIfThere(places.manifest)) !== text;
}

async function trying<T>(work: () => Promise<T>): Promise<{ readonly value: T } | { readonly error: unknown }> {
  try {
    return { value: await work() };
  } catch (error) {
    return { error };
  }
}
