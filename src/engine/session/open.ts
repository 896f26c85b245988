import { existsSync } from 'node:fs';
import { totalmem } from 'node:os';
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { configError } from '../../base/errors.ts';
import { holdPrivateUmask } from '../../fs/private-folder.ts';
import { attach } from './attach.ts';
import {
  checkDatabasePath,
  checkIsFile,
  makeFile,
  REWRITING,
  realFile,
  removeDatabase,
  SMALL_BLOCKS,
  spillFolder,
  sweepNewFiles,
  sweepSpilled,
} from './database-file.ts';
import { Engine, type EngineOptions } from './engine.ts';
import { engineError } from './faults.ts';

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

/**
 * Opens or makes a file; waits for its lock for a bounded time. Throws UserError. Until the engine is closed, only
 * their owner may read the files that this process makes, since a write-ahead log and spilled blocks hold rows too.
 */
export async function openEngine(options: EngineOptions): Promise<Engine> {
  const file = realFile(options.file);
  let isNew = false;
  const onClose = holdPrivateUmask();
  const isAlone = options.shared === undefined;
  // In an instance that it shares, the engine that made it has the first name.
  const database = isAlone ? 'main_file' : 'second_file';
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
