// This folder: DuckDB: opening files, running statements, errors, quoting.

import { existsSync, rmSync } from 'node:fs';
import { totalmem } from 'node:os';
import { type DuckDBConnection, DuckDBInstance, type DuckDBValue, StatementType } from '@duckdb/node-api';
import { textDecoder } from '@duckdb/node-api/lib/vectors/dataAccessors.js';
import type { Clock } from '../../../base/clock.ts';
import { configError, transientError } from '../../../base/errors.ts';
import { waitedFor } from '../../../base/retry.ts';
import { holdPrivateUmask } from '../../../fs/private-umask.ts';
import { literal } from '../../../types/sql.ts';
import {
  checkDatabasePath,
  checkIsFile,
  claimFile,
  fileAt,
  makeFile,
  REWRITING,
  realFile,
  remakeForWideTables,
  removeDatabase,
  SMALL_BLOCKS,
  spillFolder,
  sweepNewFiles,
  sweepSpilled,
} from './database-file.ts';
import { engineError, isLocked, isMisread, isOutOfMemory } from './faults.ts';

/** Maximum size of the spilled data of a query. */
const SPILL_LIMIT = '100GB';
/**
 * Size of the write-ahead log (bytes) from which a commit moves it into the file. At DuckDB's default of 16 MB the rows
 * of small days are written again and again, and leave free blocks behind (measured, ten days of 50,000 rows, 250 MB: a
 * file of 116 MB at 64 MB, of 72 MB at 128 MB, and a quarter of the processor time less; days of 100,000 narrow rows
 * take a tenth more). The log is also held in memory until then.
 */
const CHECKPOINT_BYTES = 128 * 1024 * 1024;
/** Maximum share of the memory limit that the write-ahead log may take. */
const WAL_SHARE = 1 / 8;
/**
 * Turns off the joining of row groups. A checkpoint joins four row groups if three would hold their rows: after a batch
 * that ends within a row group it then writes three of them a second time (measured, two batches of 250,000 rows: a
 * file of 70 MB instead of 41, and twice the processor time).
 */
const NO_JOINING = 0;
const FIRST_RETRY_MS = 50;
const LONGEST_RETRY_MS = 1_000;

/** The variable of the session that tells `read_csv` whether to read a file in parallel; NULL means that it does. */
export const READS_IN_PARALLEL = 'dfinery_reads_in_parallel';

export type Row = Readonly<Record<string, unknown>>;

/** A value for a column of any type; DuckDB casts a text and a whole number to it. */
export type Value = string | number | boolean | null;

export interface EngineOptions {
  readonly file: string;
  /** Memory limit as DuckDB writes it (`2GB`); undefined for half of what the machine or container allows. */
  readonly memoryLimit?: string | undefined;
  readonly readOnly?: boolean;
  /** True if a new file is to hold small tables. */
  readonly smallBlocks?: boolean;
  readonly lockWaitMs: number;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
  /**
   * The engine in whose instance of DuckDB the file is opened, with its settings; undefined: the file gets an instance
   * of its own, which takes 10 to 30 ms to make.
   */
  readonly shared?: Engine | undefined;
}

interface Opened {
  readonly instance: DuckDBInstance;
  readonly connection: DuckDBConnection;
  /** The name of the file among the databases of the instance. */
  readonly database: string;
  readonly isNew: boolean;
  /** Ends this process's claim to the file. */
  readonly release: () => void;
  readonly onClose: () => void;
}

/** Texts that begin like a SELECT; DuckDB also calls `SHOW TABLES`, `DESCRIBE t` and some pragmas one. */
const BEGINS_SELECT = /^(?:[\s(;]|--[^\n]*\n|\/\*[\s\S]*?\*\/)*(?:SELECT|WITH|FROM|VALUES|TABLE)\b/i;

/** One DuckDB file, attached and in use as the default database, by one connection. */
export class Engine {
  readonly options: EngineOptions;
  readonly file: string;
  /** True if opening made the file; another process may have been the first to write to it. */
  readonly isNew: boolean;
  /** The instance of DuckDB; other engines may share it. */
  readonly instance: DuckDBInstance;
  readonly #database: string;
  #release: () => void;
  readonly #onClose: () => void;
  readonly #connection: DuckDBConnection;
  readonly #ownConnections = new Set<DuckDBConnection>();
  #readsInParallel = true;
  #isLowOnMemory = false;
  /** The signal of the current work. */
  #signal: AbortSignal | undefined;

  constructor(options: EngineOptions, { instance, connection, database, isNew, release, onClose }: Opened) {
    this.file = options.file;
    this.isNew = isNew;
    this.options = options;
    this.instance = instance;
    this.#database = database;
    this.#connection = connection;
    this.#release = release;
    this.#onClose = onClose;
  }

  /** Runs a statement; returns how many rows it changed. */
  async run(sql: string, values?: readonly DuckDBValue[]): Promise<number> {
    this.#signal?.throwIfAborted();
    const result = await this.#connection.run(sql, values && [...values]);
    return result.rowsChanged;
  }

  /**
   * Appends rows to a table, in a fifth of the time of an INSERT that spells them (measured, 190 rows of 10 columns).
   */
  async append(table: string, rows: readonly (readonly Value[])[]): Promise<void> {
    this.#signal?.throwIfAborted();
    const appender = await this.#connection.createAppender(table);
    for (const row of rows) {
      for (const value of row) {
        if (value === null) appender.appendNull();
        else if (typeof value === 'string') appender.appendVarchar(value);
        else if (typeof value === 'number') appender.appendBigInt(BigInt(value));
        else appender.appendBoolean(value);
      }
      appender.endRow();
    }
    appender.closeSync();
  }

  /** All rows of a small result, with integers of 64 bits as bigint. */
  async rows(sql: string, values?: readonly DuckDBValue[]): Promise<Row[]> {
    this.#signal?.throwIfAborted();
    const reader = await this.#connection.runAndReadAll(sql, values && [...values]);
    return reader.getRowObjectsJS();
  }

  /** Like `rows`, on a connection beside other statements, which sees no temporary table and no open transaction. */
  async rowsOnOwnConnection(sql: string): Promise<Row[]> {
    this.#signal?.throwIfAborted();
    const connection = await this.instance.connect();
    this.#ownConnections.add(connection);
    try {
      if (!this.#readsInParallel) await connection.run(`SET VARIABLE ${READS_IN_PARALLEL} = false`);
      return (await connection.runAndReadAll(sql)).getRowObjectsJS();
    } finally {
      this.#ownConnections.delete(connection);
      connection.closeSync();
    }
  }

  /** The rows of a result of any size, as they come. Throws UserError. */
  async *stream(sql: string): AsyncGenerator<Row> {
    const { signal } = this.options;
    try {
      signal?.throwIfAborted();
      const result = await this.#connection.stream(sql);
      for await (const rows of result.yieldRowObjectJs()) {
        signal?.throwIfAborted();
        yield* rows;
      }
    } catch (error) {
      signal?.throwIfAborted();
      throw engineError(error, this.file);
    }
  }

  /**
   * Columns (types by name, `JSON` too) and rows of a text that is one SELECT. Undefined for any other text, of which
   * nothing is executed: every statement is prepared first, and its kind is checked.
   */
  async select(sql: string): Promise<{ names: string[]; types: string[]; rows: unknown[][] } | undefined> {
    this.#signal?.throwIfAborted();
    if (sql.trim() === '') return undefined;
    const isSelect = BEGINS_SELECT.test(sql);
    const statements = await this.#connection.extractStatements(sql);
    if (statements.count !== 1) return undefined;
    const prepared = await statements.prepare(0);
    try {
      if (!isSelect || prepared.statementType !== StatementType.SELECT) return undefined;
      const reader = await prepared.runAndReadAll();
      const types = reader.columnTypes().map((type) => type.alias ?? type.toString());
      return { names: reader.columnNames(), types, rows: reader.getRowsJS() };
    } finally {
      prepared.destroySync();
    }
  }

  /** The only row of a result. */
  async row(sql: string, values?: readonly DuckDBValue[]): Promise<Row> {
    return (await this.rows(sql, values))[0] ?? {};
  }

  /** How many rows a relation has; it may end with a condition. */
  async count(from: string): Promise<number> {
    return Number((await this.row(`SELECT count(*) AS n FROM ${from}`)).n);
  }

  interrupt(): void {
    this.#connection.interrupt();
    for (const connection of this.#ownConnections) connection.interrupt();
  }

  /** Runs work under a signal, by default that of the engine. Throws UserError. */
  async guarded<T>(work: () => Promise<T>, signal = this.options.signal): Promise<T> {
    try {
      return await this.withSignal(signal, work);
    } catch (error) {
      signal?.throwIfAborted();
      throw engineError(error, this.file);
    }
  }

  /** Runs work under a signal: an abort interrupts the current statement, and no further one begins. */
  async withSignal<T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    signal?.throwIfAborted();
    const interrupt = () => this.interrupt();
    const outer = this.#signal;
    signal?.addEventListener('abort', interrupt);
    this.#signal = signal ?? outer;
    try {
      return await work();
    } finally {
      this.#signal = outer;
      signal?.removeEventListener('abort', interrupt);
    }
  }

  get isLowOnMemory(): boolean {
    return this.#isLowOnMemory;
  }

  /**
   * Runs work in one transaction; an abort interrupts it. Throws what the work throws. After two kinds of failure the
   * transaction is rolled back and run again: if memory does not suffice, with one thread from then on, since each
   * thread holds a block of every column; if the parallel reader refuses a CSV, with the reader that can read every
   * file (S63).
   */
  async transaction<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    try {
      return await this.#transaction(work, signal);
    } catch (error) {
      if (signal?.aborted === true) throw error;
      if (isOutOfMemory(error) && !this.#isLowOnMemory) {
        this.#isLowOnMemory = true;
        await this.run('SET threads = 1');
        return await this.transaction(work, signal);
      }
      if (!isMisread(error) || !this.#readsInParallel) throw error;
      await this.run(`SET VARIABLE ${READS_IN_PARALLEL} = false`);
      this.#readsInParallel = false;
      try {
        return await this.transaction(work, signal);
      } finally {
        this.#readsInParallel = true;
        await this.#connection.run(`RESET VARIABLE ${READS_IN_PARALLEL}`);
      }
    }
  }

  #transaction<T>(work: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    return this.withSignal(signal, async () => {
      await this.run('BEGIN TRANSACTION');
      try {
        const result = await work();
        signal?.throwIfAborted();
        await this.run('COMMIT');
        return result;
      } catch (error) {
        // A commit that failed has rolled back already.
        await this.#connection.run('ROLLBACK').catch(() => {});
        signal?.throwIfAborted();
        throw error;
      }
    });
  }

  /**
   * Moves the write-ahead log into the file. What then remains is the beginning of a transaction whose writer was
   * killed: DuckDB neither replays nor removes it, but would replay it into another file of this name. Called between
   * transactions, by the only process that has the file open.
   */
  async emptyWal(): Promise<void> {
    await this.run('CHECKPOINT target');
    rmSync(`${this.file}.wal`, { force: true });
  }

  /** Lets checkpoints from now on also join row groups that removed rows have left partly empty. */
  joinRowGroups(): Promise<number> {
    return this.run('RESET max_vacuum_tasks');
  }

  /**
   * Recreates the file for a table of very many columns, with its rows. Called between transactions. For a moment the
   * file is not locked: afterwards another process may have written to it.
   */
  async remakeForWideTables(): Promise<void> {
    await this.emptyWal();
    await remakeForWideTables(this.#connection, this.file);
    await this.run('USE memory');
    await this.run('DETACH target');
    this.#release();
    this.#release = await attach(this.#connection, 'target', this.options);
    await this.run('USE target');
  }

  /** Closes the file; may be called after any failure, and twice. */
  async close(): Promise<void> {
    try {
      await this.#connection.run('USE memory');
      await this.#connection.run(`DETACH ${this.#database}`);
    } catch {
      // The rows are safe in the write-ahead log, which the next process that opens the file reads.
    } finally {
      this.#connection.closeSync();
      if (this.options.shared === undefined) this.instance.closeSync();
      this.#release();
      this.#onClose();
    }
  }
}

/** Opens a file, works on it and closes it; an abort ends the statement at work. Throws UserError. */
export async function withFile<T>(options: EngineOptions, work: (engine: Engine) => Promise<T>): Promise<T> {
  if (options.readOnly !== true) checkDatabasePath(options.file);
  const engine = await openEngine(options);
  try {
    return await engine.guarded(() => work(engine));
  } finally {
    await engine.close();
  }
}

const whole = new TextDecoder('utf-8', { ignoreBOM: true });

/**
 * Makes DuckDB's client keep a U+FEFF at the beginning of a text, which it leaves out (measured, 1.5.6): a column or an
 * id that begins with one would become another one. The client has one decoder for all that a process reads, and no
 * option: whoever else uses it there reads such texts whole, too. May be called again.
 */
function keepByteOrderMarks(): void {
  textDecoder.decode = (bytes: Uint8Array) => whole.decode(bytes);
}

/**
 * Opens or makes a file; waits for its lock for a bounded time. Throws UserError. Until the engine is closed, only
 * their owner may read the files that this process makes, since a write-ahead log and spilled blocks hold rows too.
 */
export async function openEngine(options: EngineOptions): Promise<Engine> {
  const file = realFile(options.file);
  let isNew = false;
  const onClose = holdPrivateUmask();
  keepByteOrderMarks();
  const isAlone = options.shared === undefined;
  // In an instance that it shares, the engine that made it has the first name.
  const database = isAlone ? 'target' : 'second_target';
  let [instance, connection, release]: [DuckDBInstance?, DuckDBConnection?, (() => void)?] = [];
  try {
    checkIsFile(file);
    instance = options.shared?.instance ?? (await createInstance({ ...options, file }));
    connection = await instance.connect();
    if (options.readOnly !== true && !existsSync(file))
      isNew = await makeFile(connection, file, options.smallBlocks === true ? SMALL_BLOCKS : undefined);
    release = await attach(connection, database, { ...options, file });
    await connection.run(`USE ${database}`);
    if (options.readOnly !== true) {
      if (isAlone) await limitWal(connection);
      await connection.run(`SET max_vacuum_tasks = ${NO_JOINING}`);
      removeDatabase(`${file}${REWRITING}`);
      await sweepNewFiles(file, options.clock.now());
      sweepSpilled(file);
    }
    return new Engine({ ...options, file }, { instance, connection, database, isNew, release, onClose });
  } catch (error) {
    // A file that was attached before a later step failed would else keep its lock.
    if (!isAlone) await connection?.run(`USE memory; DETACH DATABASE IF EXISTS ${database}`).catch(() => {});
    connection?.closeSync();
    if (isAlone) instance?.closeSync();
    release?.();
    onClose();
    options.signal?.throwIfAborted();
    throw engineError(error, file);
  }
}

function createInstance({ file, memoryLimit, readOnly }: EngineOptions): Promise<DuckDBInstance> {
  return DuckDBInstance.create(':memory:', {
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
    memory_limit: memoryLimit ?? `${Math.floor(availableMemory() / 2 ** 21)}MiB`,
    temp_directory: spillFolder(file, { isShared: readOnly === true }),
    max_temp_directory_size: SPILL_LIMIT,
    preserve_insertion_order: 'false',
  }).catch(() => {
    throw configError(`memory_limit is ${JSON.stringify(memoryLimit)}, wanted a size such as 2GB.`);
  });
}

/**
 * Attaches a file once this process has it for itself, and its lock; returns a function that ends this process's claim
 * to it.
 */
async function attach(connection: DuckDBConnection, database: string, o: EngineOptions): Promise<() => void> {
  // The type is given because DuckDB would open a CSV or JSON file as a view of its rows, in memory, so that loaded
  // rows would be lost.
  const how = o.readOnly ? 'TYPE duckdb, READ_ONLY' : 'TYPE duckdb';
  const policy = { waitMs: o.lockWaitMs, pauseMs: FIRST_RETRY_MS, maxPauseMs: LONGEST_RETRY_MS };
  let locked: unknown;
  const attached = await waitedFor(policy, o, async () => {
    const before = fileAt(o.file);
    const release = claimFile(o.file);
    if (release === undefined) {
      locked = transientError(`${o.file} is in use: this process has it open. Close it there, or wait, and run again.`);
      return undefined;
    }
    let isAttached = false;
    try {
      await connection.run(`ATTACH ${literal(o.file)} AS ${database} (${how})`);
      isAttached = o.readOnly === true || fileAt(o.file) === before;
      if (isAttached) return release;
      // A purge or `compact` has replaced the file after DuckDB opened it and before it had the lock: that is one of
      // the former file.
      locked = transientError(`${o.file} was replaced while it was opened: run again.`);
      await connection.run(`DETACH ${database}`);
    } catch (error) {
      if (!isLocked(error)) throw error;
      locked = error;
    } finally {
      if (!isAttached) release();
    }
    return undefined;
  });
  if (attached === undefined) throw locked;
  return attached;
}

async function limitWal(connection: DuckDBConnection): Promise<void> {
  const limit = await connection.runAndReadAll(
    "SELECT CAST(parse_formatted_bytes(current_setting('memory_limit')) AS DOUBLE)",
  );
  const bytes = Math.min(CHECKPOINT_BYTES, Math.floor(Number(limit.getRows()[0]?.[0]) * WAL_SHARE));
  await connection.run(`SET checkpoint_threshold = '${bytes}B'`);
}

function availableMemory(): number {
  const limit = process.constrainedMemory?.() ?? 0;
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}
