// This folder: the target `delta`: Delta Lake tables on a disk or in a bucket. `log/` is the protocol's log, `files/`
// data files, `storage/` where both are, `commit/` how a window becomes a commit.

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import pLimit from 'p-limit';
import type { Clock } from '../../base/clock.ts';
import type { Env } from '../../base/env.ts';
import { configFailure } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import { RunFolder } from '../../extract/spool/run-folder.ts';
import { TABLES, type TableName } from '../../table/columns.ts';
import { type Engine, openEngine } from '../sql/engine/engine.ts';
import { isOutOfMemory } from '../sql/engine/faults.ts';
import type { DataFile, NewFile } from './files/data-file.ts';
import { openStorage } from './storage/open.ts';
import { copyColumns } from './storage/partial-copy.ts';
import { checkConditionalWrites } from './storage/probe.ts';
import type { Storage } from './storage/storage.ts';
import { Table } from './table.ts';

export interface LakeOptions {
  /** A folder, or `s3://BUCKET/PREFIX`. */
  readonly url: string;
  readonly env: Env;
  /** Where copies and new files of an object store lie while a run needs them. */
  readonly spoolDir: string;
  /** What stands for the address; by default what `openStorage` gives. */
  readonly storage?: Storage;
  /** As DuckDB writes it (`2GB`); undefined: half of what the machine or container allows. */
  readonly memoryLimit?: string | undefined;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly signal?: AbortSignal | undefined;
}

/** Files copied or uploaded at the same time. */
const UPLOADS = 4;

/** An open Delta target: its tables, their storage, a DuckDB engine and a temporary folder of this run. */
export class Lake {
  readonly storage: Storage;
  readonly engine: Engine;
  /** All tables by name, including those that do not exist yet. */
  readonly tables: ReadonlyMap<TableName, Table>;
  /** True after the engine ran out of memory once: files are then written in smaller pieces, by one thread. */
  isLowOnMemory = false;
  readonly #run: RunFolder;
  /** Local files with the content of stored ones, by their paths. */
  readonly #copies = new Map<string, string>();
  #count = 0;

  private constructor(storage: Storage, engine: Engine, run: RunFolder, tables: ReadonlyMap<TableName, Table>) {
    this.storage = storage;
    this.engine = engine;
    this.tables = tables;
    this.#run = run;
  }

  /** Opens a target for reading or writing; for writing, checks that the storage refuses to overwrite a commit. */
  static async open(options: LakeOptions, how: 'read' | 'write'): Promise<Lake> {
    const { clock, logger, signal } = options;
    const storage = options.storage ?? (await openStorage(options.url, options.env, signal));
    let run: RunFolder | undefined;
    let engine: Engine | undefined;
    try {
      if (how === 'write') await checkConditionalWrites(storage);
      const root = how === 'write' ? (storage.workFolder ?? options.spoolDir) : options.spoolDir;
      run = await RunFolder.open(root, clock, 'delta');
      engine = await openEngine({ ...options, file: join(run.path, 'engine'), lockWaitMs: 0 });
      await engine.run('SET enable_external_file_cache = false');
      const tables = new Map<TableName, Table>();
      for (const name of TABLES) {
        const place = { storage, folder: name, engine, work: run.path };
        tables.set(name, await Table.open(name, place, logger));
      }
      return new Lake(storage, engine, run, tables);
    } catch (error) {
      await engine?.close();
      await run?.remove();
      storage.close();
      throw error;
    }
  }

  get address(): string {
    return this.storage.address;
  }

  table(name: TableName): Table {
    const table = this.tables.get(name);
    if (table === undefined) throw new RangeError(`no table ${name}`);
    return table;
  }

  get events(): Table {
    return this.table('events');
  }

  /** Throws a configuration failure where there is no table of ours. */
  mustExist(): this {
    if (this.events.exists) return this;
    throw configFailure(
      `${this.address} holds no Delta table of this program (no events/_delta_log): give another place.`,
    );
  }

  /** A new path in the run's temporary folder. */
  newPath(what: string): string {
    return join(this.#run.path, `${what}-${this.#count++}`);
  }

  /** Local files to read the content of stored ones from, by their paths; copied at most once in a run. */
  async fetch(table: TableName, files: readonly Pick<DataFile, 'path'>[]): Promise<Map<string, string>> {
    const limit = pLimit(UPLOADS);
    const found = await Promise.all(
      files.map(({ path }) => limit(async () => [path, await this.#fetchFile(`${table}/${path}`)] as const)),
    );
    return new Map(found);
  }

  /** The same where only some columns are read: of a large object no more than those are copied. */
  async fetchColumns(
    table: TableName,
    files: readonly Pick<DataFile, 'path' | 'bytes'>[],
    columns: ReadonlySet<string>,
  ): Promise<Map<string, string>> {
    if (this.storage.workFolder !== undefined) return this.fetch(table, files);
    const limit = pLimit(UPLOADS);
    // Stryker disable next-line MethodExpression: the same columns in another order would only be copied twice
    const names = JSON.stringify([...columns].sort());
    const one = async ({ path, bytes }: Pick<DataFile, 'path' | 'bytes'>) => {
      const key = `${table}/${path}`;
      const wanted = { path: key, bytes, columns };
      return [
        path,
        await this.#copyOnce(`${key}\0${names}`, (copy) => copyColumns(this.storage, wanted, copy)),
      ] as const;
    };
    return new Map(await Promise.all(files.map((file) => limit(() => one(file)))));
  }

  /** Stores new files; none of them is part of a table before a commit says so. */
  async store(table: TableName, files: readonly NewFile[]): Promise<void> {
    const limit = pLimit(UPLOADS);
    const put = ({ local, path }: NewFile) => this.storage.putFile(local, `${table}/${path}`);
    try {
      await Promise.all(files.map((file) => limit(() => put(file))));
    } catch (error) {
      limit.clearQueue();
      throw error;
    }
  }

  /** Removes the local copies of files that left a table. */
  async dropCopies(table: TableName, paths: readonly string[]): Promise<void> {
    const gone = new Set(paths.map((path) => `${table}/${path}`));
    for (const [key, copy] of [...this.#copies]) {
      if (!gone.has(key.split('\0')[0])) continue;
      this.#copies.delete(key);
      if (this.storage.workFolder === undefined) await rm(copy, { force: true });
    }
  }

  /**
   * Runs `work` in a transaction of the engine. If memory does not suffice, runs it once more with one thread and smaller
   * pieces. Throws what `work` throws.
   */
  async prepare<T>(work: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    try {
      return await this.engine.transaction(work, signal);
    } catch (error) {
      if (this.isLowOnMemory || !isOutOfMemory(error)) throw error;
    }
    this.isLowOnMemory = true;
    await this.engine.run('SET threads = 1');
    return await this.engine.transaction(work, signal);
  }

  /** Releases everything; may be called after any failure. */
  async close(): Promise<void> {
    try {
      await this.engine.close();
    } finally {
      this.storage.close();
      await this.#run.remove();
    }
  }

  #fetchFile(key: string): Promise<string> {
    return this.#copyOnce(key, (copy) => this.storage.localFile(key, copy));
  }

  async #copyOnce(key: string, make: (copy: string) => Promise<string>): Promise<string> {
    const known = this.#copies.get(key);
    if (known !== undefined) return known;
    const local = await make(this.newPath('copy'));
    this.#copies.set(key, local);
    return local;
  }
}
