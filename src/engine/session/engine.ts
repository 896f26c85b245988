import { rmSync } from 'node:fs';
import { type DuckDBConnection, type DuckDBValue, listValue } from '@duckdb/node-api';
import type { Clock } from '../../base/clock.ts';
import { isCsvMisread, isEngineFailure } from './engine-errors.ts';

/** The variable of the session that tells `read_csv` whether to read a file in parallel; each transaction sets it. */
export const PARALLEL_VARIABLE = 'dfinery_reads_in_parallel';

/** The name under which the file is attached. Statements that name no database are about it. */
export const MAIN_DATABASE = 'main_file';

export type ResultRow = Readonly<Record<string, unknown>>;

/** Values of the parameters of a statement, by name: `$name`. A list of texts is a VARCHAR[], and not empty. */
export type SqlParameters = Readonly<Record<string, string | number | null | readonly string[]>>;

/** What may be done with a file. With `read_to_copy` statements may reach other files, too. */
export type Access = 'write' | 'read' | 'read_to_copy';

export interface EngineOptions {
  /** Maximum wait for the lock of another process (ms); then a transient failure (exit 3). */
  readonly lockWaitMs: number;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
  /** Memory limit as DuckDB writes it (`2GB`); undefined for half of what the machine or container allows. */
  readonly memoryLimit?: string | undefined;
}

/**
 * One DuckDB file, attached and in use as the default database, by one connection. An abort interrupts the statement at
 * work, and no further one begins.
 */
export class Engine {
  readonly file: string;
  readonly clock: Clock;
  /** True once memory did not suffice for a transaction. Who writes Parquet then writes smaller row groups. */
  isLowOnMemory = false;
  readonly #closeAll: () => void;
  readonly #connection: DuckDBConnection;
  readonly #interrupt = () => this.#connection.interrupt();
  #signal: AbortSignal | undefined;

  /** `closeAll` closes the connection, and ends the claim of this process to the file. */
  constructor(file: string, { clock, signal }: EngineOptions, connection: DuckDBConnection, closeAll: () => void) {
    this.file = file;
    this.clock = clock;
    this.#connection = connection;
    this.#closeAll = closeAll;
    this.#signal = signal;
    signal?.addEventListener('abort', this.#interrupt);
  }

  /** Throws the reason of an abort that this engine does not ignore. */
  throwIfAborted(): void {
    this.#signal?.throwIfAborted();
  }

  /** Runs a statement; returns how many rows it changed. */
  async run(sql: string, values?: SqlParameters): Promise<number> {
    this.throwIfAborted();
    const result = await this.#connection.run(sql, values && duckDbValues(values));
    return result.rowsChanged;
  }

  /** All rows of a small result, with integers of 64 bits as bigint. */
  async rows(sql: string, values?: SqlParameters): Promise<ResultRow[]> {
    this.throwIfAborted();
    const reader = await this.#connection.runAndReadAll(sql, values && duckDbValues(values));
    return reader.getRowObjectsJS();
  }

  /** The rows of a result of any size, as they come. */
  async *stream(sql: string): AsyncGenerator<ResultRow> {
    this.throwIfAborted();
    const result = await this.#connection.stream(sql);
    for await (const rows of result.yieldRowObjectJs()) {
      this.throwIfAborted();
      yield* rows;
    }
  }

  /** The first row of a result; without one an object without members. */
  async row(sql: string): Promise<ResultRow> {
    return (await this.rows(sql))[0] ?? {};
  }

  /** How many rows a relation has; it may end with a condition. */
  async count(from: string): Promise<number> {
    return Number((await this.row(`SELECT count(*) AS n FROM ${from}`)).n);
  }

  /**
   * Runs work in one transaction. Throws what the work throws. After two kinds of failure the transaction is rolled
   * back and run again. If memory does not suffice, one thread works from then on: each holds a block of every column.
   * If the parallel reader refuses a CSV, the other one reads it, which can read every file.
   */
  async transaction<T>(work: () => Promise<T>): Promise<T> {
    let readsInParallel = true;
    for (;;) {
      try {
        // Settings last longer than a transaction: each begins with its own.
        await this.run(`SET VARIABLE ${PARALLEL_VARIABLE} = ${readsInParallel}`);
        await this.run('SET preserve_insertion_order = false');
        await this.run('BEGIN TRANSACTION');
        const result = await work();
        await this.run('COMMIT');
        return result;
      } catch (error) {
        // A commit that failed has rolled back already.
        await this.#connection.run('ROLLBACK').catch(() => {});
        this.throwIfAborted();
        if (isEngineFailure(error, 'outOfMemory') && !this.isLowOnMemory) {
          this.isLowOnMemory = true;
          await this.run('SET threads = 1');
        } else if (isCsvMisread(error) && readsInParallel) {
          readsInParallel = false;
        } else {
          throw error;
        }
      }
    }
  }

  /** Makes statements up to the next transaction keep the order of rows, which takes more memory. */
  keepOrder(): Promise<number> {
    return this.run('SET preserve_insertion_order = true');
  }

  /**
   * Moves the write-ahead log into the file, and removes the log. A checkpoint leaves in the log what a killed writer
   * began. DuckDB ignores this remainder for this file, but would read it into a file that replaces this one. Called
   * between transactions, by the only process that has the file open.
   */
  async emptyWal(): Promise<void> {
    await this.run(`CHECKPOINT ${MAIN_DATABASE}`);
    rmSync(`${this.file}.wal`, { force: true });
  }

  /**
   * Has checkpoints from now on also join row groups that removed rows have left partly empty. Called before the commit,
   * which may make one.
   */
  joinRowGroupsAtCheckpoint(): Promise<number> {
    return this.run('RESET max_vacuum_tasks');
  }

  /** Lets all statements from now on run to their end: what a run does last is done after an abort, too. */
  ignoreAborts(): void {
    this.#signal?.removeEventListener('abort', this.#interrupt);
    this.#signal = undefined;
  }

  /** Closes the file; may be called after any failure, and twice. */
  async close(): Promise<void> {
    this.ignoreAborts();
    try {
      await this.#connection.run('USE memory');
      await this.#connection.run(`DETACH ${MAIN_DATABASE}`);
    } catch {
      // The rows are safe in the write-ahead log, which the next process that opens the file reads.
    } finally {
      this.#closeAll();
    }
  }
}

const duckDbValues = (values: SqlParameters): Record<string, DuckDBValue> =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name,
      typeof value === 'object' && value !== null ? listValue(value) : value,
    ]),
  );
