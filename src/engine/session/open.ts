import { existsSync } from 'node:fs';
import { totalmem } from 'node:os';
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { configError } from '../../base/errors.ts';
import { holdPrivateUmask } from '../../fs/permissions.ts';
import { attach } from './attach.ts';
import {
  checkDatabasePath,
  checkIsFile,
  makeFile,
  REWRITING,
  realFile,
  removeDatabase,
  spillFolder,
  sweepNewFiles,
  sweepSpilled,
} from './database-file.ts';
import { Engine, type EngineOptions } from './engine.ts';
import { engineError } from './faults.ts';

/** The name of the file among the databases of its instance. */
const DATABASE = 'main_file';
/** Maximum size of the spilled data of a query. */
const SPILL_LIMIT = '100GB';
/**
 * Turns off the joining of row groups. A checkpoint joins four row groups if three would hold their rows. After a batch
 * that ends within a row group it writes three of them a second time. Two batches of 250,000 rows then took 70 MB
 * instead of 41, and twice the processor time.
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
 * Opens or makes a file; waits for its lock for a bounded time. Throws UserError. Until the engine is closed, only the
 * owner may read files that this process makes. A write-ahead log and spilled blocks hold rows too.
 */
export async function openEngine(options: EngineOptions): Promise<Engine> {
  const file = realFile(options.file);
  const onClose = holdPrivateUmask();
  let [instance, connection, release]: [DuckDBInstance?, DuckDBConnection?, (() => void)?] = [];
  try {
    checkIsFile(file);
    instance = await createInstance({ ...options, file });
    connection = await instance.connect();
    const mayWrite = options.readOnly !== true;
    if (mayWrite && !existsSync(file)) await makeFile(connection, file, options.columns ?? 0);
    release = await attach(connection, DATABASE, { ...options, file });
    await connection.run(`USE ${DATABASE}`);
    // Views and macros that others left in a file that is read must not reach other files.
    if (!mayWrite && options.mayAttach !== true) await connection.run('SET enable_external_access = false');
    if (mayWrite) {
      await connection.run(`SET max_vacuum_tasks = ${NO_JOINING}`);
      removeDatabase(`${file}${REWRITING}`);
      await sweepNewFiles(file, options.clock.now());
      sweepSpilled(file);
    }
    return new Engine({ ...options, file }, { instance, connection, database: DATABASE, release, onClose });
  } catch (error) {
    connection?.closeSync();
    instance?.closeSync();
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

function availableMemory(): number {
  const limit = process.constrainedMemory?.() ?? 0;
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}
