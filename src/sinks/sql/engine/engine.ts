import { existsSync, lstatSync, readdirSync, realpathSync, rmdirSync, rmSync } from 'node:fs';
import { totalmem } from 'node:os';
import { join, resolve } from 'node:path';
import {
  type DuckDBConnection,
  type DuckDBDataChunk,
  DuckDBInstance,
  type DuckDBValue,
  StatementType,
} from '@duckdb/node-api';
import type { Clock } from '../../../base/clock.ts';
import { configFailure } from '../../../base/errors.ts';
import { holdPrivateUmask } from '../../../fs/private-umask.ts';
import { literal } from '../../../types/sql.ts';
import { engineFailure, isLocked } from './faults.ts';
import { makeFile } from './new-file.ts';

// DuckDB as the engine of tables and files: what every target that goes through it shares. `engine/` opens files and runs
// statements, `columns/` decides names and types, `rows/` reads a window's CSV into typed rows with keys, `files/` writes
// and reads Parquet files, `profile/` describes a file at hand.

/** What the copy that is to replace a file adds to its name. */
export const REWRITING = '.rewriting';
/** Beyond this much spilled data a query gives up. */
const SPILL_LIMIT = '100GB';
/**
 * Rows. A group that is full is compressed and written by all threads while the window is still read, one that is not
 * waits for the commit and for one thread, and is written again with the next window; at DuckDB's usual 122,880 rows that
 * is every day of 100,000 (measured: ten such days in 5.3 s instead of 6.9, queries as fast, the file a tenth larger).
 * Not kept in the file: whoever opens it next chooses anew.
 */
const ROW_GROUP_SIZE = 24_576;
const FIRST_RETRY_MS = 50;
const LONGEST_RETRY_MS = 1_000;

export type Row = Readonly<Record<string, unknown>>;

export interface EngineOptions {
  readonly file: string;
  /** As DuckDB writes it (`2GB`); undefined: half of what the machine or container allows. */
  readonly memoryLimit?: string | undefined;
  readonly readOnly?: boolean;
  readonly lockWaitMs: number;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
}

/** One DuckDB file, attached and in use as the default database, by one connection. */
export class Engine {
  readonly file: string;
  readonly #instance: DuckDBInstance;
  readonly #onClose: () => void;
  readonly #connection: DuckDBConnection;
  /** Of the transaction under way. */
  #signal: AbortSignal | undefined;

  constructor(file: string, instance: DuckDBInstance, connection: DuckDBConnection, onClose: () => void) {
    this.#onClose = onClose;
    this.file = file;
    this.#instance = instance;
    this.#connection = connection;
  }

  /** Runs a statement; returns how many rows it changed. */
  async run(sql: string, values?: readonly DuckDBValue[]): Promise<number> {
    this.#signal?.throwIfAborted();
    const result = await this.#connection.run(sql, values && [...values]);
    return result.rowsChanged;
  }

  /** All rows of a small result: integers of 64 bits as bigint. */
  async rows(sql: string, values?: readonly DuckDBValue[]): Promise<Row[]> {
    this.#signal?.throwIfAborted();
    const reader = await this.#connection.runAndReadAll(sql, values && [...values]);
    return reader.getRowObjectsJS();
  }

  /**
   * The names and rows of the one SELECT that a text holds; undefined for anything else, of which nothing is run: every
   * statement is prepared and its kind looked at first.
   */
  async select(sql: string): Promise<{ readonly names: string[]; readonly rows: unknown[][] } | undefined> {
    this.#signal?.throwIfAborted();
    if (sql.trim() === '') return undefined;
    const statements = await this.#connection.extractStatements(sql);
    if (statements.count !== 1) return undefined;
    const prepared = await statements.prepare(0);
    try {
      if (prepared.statementType !== StatementType.SELECT) return undefined;
      const reader = await prepared.runAndReadAll();
      return { names: reader.columnNames(), rows: reader.getRowsJS() };
    } finally {
      prepared.destroySync();
    }
  }

  /** A large result as it comes, in DuckDB's own chunks of some 2,000 rows. */
  async *chunks(sql: string): AsyncGenerator<DuckDBDataChunk, void, undefined> {
    this.#signal?.throwIfAborted();
    const result = await this.#connection.stream(sql);
    for (;;) {
      const chunk = await result.fetchChunk();
      if (chunk === null || chunk.rowCount === 0) return;
      yield chunk;
    }
  }

  /** The only row of a result. */
  async row(sql: string, values?: readonly DuckDBValue[]): Promise<Row> {
    return (await this.rows(sql, values))[0] ?? {};
  }

  /** Stops the statement under way. */
  interrupt(): void {
    this.#connection.interrupt();
  }

  /** Does the work in one transaction, or nothing. An abort interrupts it. Throws what the work threw. */
  async transaction<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    const interrupt = () => this.interrupt();
    await this.run('BEGIN TRANSACTION');
    signal?.addEventListener('abort', interrupt);
    this.#signal = signal;
    try {
      const result = await work();
      signal?.throwIfAborted();
      await this.run('COMMIT');
      return result;
    } catch (error) {
      this.#signal = undefined;
      await this.#rollback();
      signal?.throwIfAborted();
      throw error;
    } finally {
      this.#signal = undefined;
      signal?.removeEventListener('abort', interrupt);
    }
  }

  /** Lets go of the file; safe after any failure, and twice. */
  async close(): Promise<void> {
    try {
      await this.run('USE memory');
      await this.run('DETACH target');
    } catch {
      // The rows are safe in the write-ahead log: whoever opens the file next reads it.
    } finally {
      this.#connection.closeSync();
      this.#instance.closeSync();
      this.#onClose();
    }
  }

  /** A commit that failed has already rolled back. */
  async #rollback(): Promise<void> {
    try {
      await this.run('ROLLBACK');
    } catch {}
  }
}

/**
 * Opens or makes a file; waits for its lock for a bounded time. Throws Failure. Until the engine is closed, whatever the
 * process makes is its owner's alone: a write-ahead log and spilled blocks hold rows too.
 */
export async function openEngine(options: EngineOptions): Promise<Engine> {
  const giveUmaskBack = holdPrivateUmask();
  try {
    return await openedEngine(options, giveUmaskBack);
  } catch (error) {
    giveUmaskBack();
    throw error;
  }
}

async function openedEngine(options: EngineOptions, onClose: () => void): Promise<Engine> {
  const file = realFile(options.file);
  const existed = existsSync(file);
  const instance = await DuckDBInstance.create(':memory:', {
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
    memory_limit: options.memoryLimit ?? `${Math.floor(availableMemory() / 2 ** 21)}MiB`,
    temp_directory: `${file}.tmp`,
    max_temp_directory_size: SPILL_LIMIT,
    preserve_insertion_order: 'false',
  }).catch(() => {
    throw configFailure(`memory_limit is ${JSON.stringify(options.memoryLimit)}, wanted a size such as 2GB.`);
  });
  const connection = await instance.connect();
  try {
    if (!existed && options.readOnly !== true) await makeFile(connection, file, options.clock.now());
    await attach(connection, file, options);
    await connection.run('USE target');
    if (options.readOnly !== true) {
      sweep(`${file}${REWRITING}`);
      sweepSpilled(`${file}.tmp`);
    }
    return new Engine(file, instance, connection, onClose);
  } catch (error) {
    connection.closeSync();
    instance.closeSync();
    options.signal?.throwIfAborted();
    throw engineFailure(error, file);
  }
}

async function attach(connection: DuckDBConnection, file: string, o: EngineOptions): Promise<void> {
  const how = o.readOnly ? 'READ_ONLY' : `ROW_GROUP_SIZE ${ROW_GROUP_SIZE}`;
  const until = o.clock.now() + o.lockWaitMs;
  for (let wait = FIRST_RETRY_MS; ; wait = Math.min(wait * 2, LONGEST_RETRY_MS)) {
    try {
      await connection.run(`ATTACH ${literal(file)} AS target (${how})`);
      return;
    } catch (error) {
      const left = until - o.clock.now();
      if (!isLocked(error) || left <= 0) throw error;
      await o.clock.sleep(Math.min(wait, left), o.signal);
    }
  }
}

/**
 * The file that a path leads to: through a link, what is written beside a file (its log) and what replaces it would else
 * belong to the link.
 */
function realFile(path: string): string {
  const file = resolve(path);
  if (!existsSync(file)) return file;
  return lstatSync(file).isSymbolicLink() ? realpathSync(file) : file;
}

export const fileExists = (file: string): boolean => existsSync(resolve(file));

/** Removes what a run that died left of a database. Whoever holds the lock of the file it belongs to may. */
export function sweep(path: string): void {
  for (const name of [path, `${path}.wal`]) rmSync(name, { force: true });
}

/** Removes what a run that died had spilled into its temporary folder. */
function sweepSpilled(folder: string): void {
  if (!existsSync(folder)) return;
  const names = readdirSync(folder);
  const spilled = names.filter((name) => name.startsWith('duckdb_temp_'));
  for (const name of spilled) rmSync(join(folder, name), { force: true });
  if (spilled.length === names.length) rmdirSync(folder);
}

/** Bytes that this machine or container allows. */
function availableMemory(): number {
  const limit = process.constrainedMemory?.() ?? 0;
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}
