// This folder: a folder of datasets: its lock, manifest, paths and temporary files.

import { readdir, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import manifestOfPackage from '../../../../package.json' with { type: 'json' };
import type { Clock } from '../../../base/clock.ts';
import { codeOf, configFailure, type Failure, transientFailure } from '../../../base/errors.ts';
import type { Logger } from '../../../base/log.ts';
import { removeDrafts } from '../../../fs/atomic-file.ts';
import { TABLES } from '../../../table/columns.ts';
import { type Engine, openEngine } from '../../sql/engine/engine.ts';
import { isOutOfMemory } from '../../sql/engine/faults.ts';
import { folderFailure } from '../../sql/files/folder-failure.ts';
import { makeFolder } from '../durable.ts';
import { historyPath } from '../history.ts';
import { carryOut, type Move, recover } from '../journal.ts';
import { type Places, placesIn } from './layout.ts';
import { type Manifest, readManifest } from './manifest.ts';

export interface DatasetOptions {
  readonly dir: string;
  /** As DuckDB writes it (`2GB`); undefined: half of what the machine or container allows. */
  readonly memoryLimit?: string | undefined;
  /** How long to wait for another writer. */
  readonly lockWaitMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly signal?: AbortSignal | undefined;
}

/** A change that is ready: files in the temporary folder, and what the folder is to be. */
export interface Change {
  readonly moves: readonly Move[];
  readonly removes?: readonly string[];
  readonly manifest: Manifest;
}

const LOCK_POLL_MS = 100;
/** DuckDB's own lock keeps other processes out; this keeps out the rest of this one. */
const held = new Set<string>();

/** A folder of datasets, locked by this writer. Live files change only by `change`. */
export class Dataset {
  readonly places: Places;
  readonly engine: Engine;
  /** True once memory proved short: files are then written in smaller pieces, by one thread, unsorted. */
  isLowOnMemory = false;
  readonly #key: string;
  #manifest: Manifest | undefined;
  /** True when a change has (or may have) a journal and is not complete. */
  // Stryker disable next-line BooleanLiteral: a first change would look for a journal, which opening has just done
  #isPending = false;

  constructor(places: Places, engine: Engine, key: string, manifest: Manifest | undefined) {
    this.places = places;
    this.engine = engine;
    this.#key = key;
    this.#manifest = manifest;
  }

  /** None before the first change. */
  get manifest(): Manifest | undefined {
    return this.#manifest;
  }

  /** The path of a live or temporary file. */
  pathOf(path: string): string {
    return join(this.places.root, path);
  }

  /** Empties the temporary folder and makes it. */
  async clear(): Promise<void> {
    await rm(this.places.temporary, { recursive: true, force: true });
    await makeFolder(this.places.temporary);
  }

  /**
   * Prepares a change in one transaction, in an empty temporary folder; where memory does not suffice, once more with
   * less of it. Throws what the work threw.
   */
  async prepare<T>(work: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    await this.#finishPending();
    await this.clear();
    try {
      return await this.engine.transaction(work, signal);
    } catch (error) {
      if (this.isLowOnMemory || !isOutOfMemory(error)) throw error;
    }
    this.isLowOnMemory = true;
    await this.engine.run('SET threads = 1');
    return this.prepare(work, signal);
  }

  /** Executes a change atomically, even if this process dies. Throws Failure. */
  async change({ moves, removes = [], manifest }: Change): Promise<void> {
    try {
      this.#isPending = true;
      await carryOut(this.places, { v: 1, moves, removes, manifest });
      this.#isPending = false;
      this.#manifest = manifest;
    } catch (error) {
      throw folderFailure(error, this.places.root);
    }
  }

  /** What a change left that the disk stopped half-way: as a dead run's, it is done or it never was. */
  async #finishPending(): Promise<void> {
    if (!this.#isPending) return;
    await recover(this.places);
    this.#manifest = await readManifest(this.places.manifest);
    this.#isPending = false;
  }

  /** Releases the folder; may be called after any failure, and twice. */
  async close(): Promise<void> {
    try {
      await this.engine.close();
      await rm(`${this.places.lock}.tmp`, LEFT_OVER);
      // A change that waits to be finished has its files there.
      if (!this.#isPending) await rm(this.places.temporary, LEFT_OVER);
    } finally {
      held.delete(this.#key);
    }
  }
}

const LEFT_OVER = { recursive: true, force: true } as const;

/** Opens the folder for writing; creates it if missing. Throws Failure. */
export async function openDataset(options: DatasetOptions): Promise<Dataset> {
  const places = placesIn(options.dir);
  try {
    await refuseForeign(places);
    await makeFolder(places.own);
    return await takeOver(places, await realpath(places.own), options);
  } catch (error) {
    throw folderFailure(error, places.root);
  }
}

/** Opens an existing folder of datasets for writing. Throws Failure. */
export async function openExisting(options: DatasetOptions): Promise<Dataset & { readonly manifest: Manifest }> {
  const places = placesIn(options.dir);
  const hasOwn = (await entriesOf(places.own)).some((name) => name === 'manifest.json' || name === 'journal.json');
  if (!hasOwn) throw notOurDataset(places);
  const dataset = await openDataset(options);
  if (hasManifest(dataset)) return dataset;
  await dataset.close();
  throw notOurDataset(places);
}

export const notOurDataset = ({ root }: Places): Failure =>
  configFailure(`${root} holds no dataset of this program (no _dfinery/manifest.json): give another folder.`);

function hasManifest(dataset: Dataset): dataset is Dataset & { readonly manifest: Manifest } {
  return dataset.manifest !== undefined;
}

export const WRITER: string = manifestOfPackage.version;

async function takeOver(places: Places, key: string, options: DatasetOptions): Promise<Dataset> {
  const until = options.clock.now() + options.lockWaitMs;
  await waitForOwnProcess(places, key, until, options);
  held.add(key);
  let engine: Engine | undefined;
  try {
    const left = Math.max(0, until - options.clock.now());
    engine = await readingEngine(await openEngine({ ...options, file: places.lock, lockWaitMs: left }));
    if (await recover(places)) {
      options.logger.warn('parquet.recovered', 'A run that died while it committed a window is finished now.');
    }
    await rm(places.temporary, LEFT_OVER);
    for (const path of [places.journal, places.manifest, historyPath(places.own)]) await removeDrafts(path, 0, 0);
    return new Dataset(places, engine, key, await readManifest(places.manifest));
  } catch (error) {
    await engine?.close();
    held.delete(key);
    throw error;
  }
}

/** An engine for files that are replaced under their names: what was read of one says nothing about the next. */
export async function readingEngine(engine: Engine): Promise<Engine> {
  await engine.run('SET enable_external_file_cache = false');
  return engine;
}

async function waitForOwnProcess(places: Places, key: string, until: number, options: DatasetOptions): Promise<void> {
  while (held.has(key)) {
    const left = until - options.clock.now();
    if (left <= 0) {
      throw transientFailure(`${places.root} is in use by another run of this process: wait for it and run again.`);
    }
    await options.clock.sleep(Math.min(LOCK_POLL_MS, left), options.signal);
  }
}

/** Files under our datasets' names in a folder without a manifest are somebody else's. */
async function refuseForeign(places: Places): Promise<void> {
  const own = await entriesOf(places.own);
  if (own.includes('manifest.json') || own.includes('journal.json')) return;
  for (const name of TABLES) {
    if ((await entriesOf(join(places.root, name))).length === 0) continue;
    throw configFailure(
      `${join(places.root, name)} holds files that this program did not write: give another folder, or move them away.`,
      { where: { file: places.root } },
    );
  }
}

async function entriesOf(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return [];
    throw folderFailure(error, folder);
  }
}
