// This folder: sessions of DuckDB. This file opens a database file, which `database-file.ts` makes and claims.
// `engine.ts` runs statements and transactions, and `engine-errors.ts` says what DuckDB's errors mean.

import { existsSync } from 'node:fs';
import { totalmem } from 'node:os';
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { textDecoder } from '@duckdb/node-api/lib/vectors/dataAccessors.js';
import { transientError, UserError } from '../../base/errors.ts';
import { doublingPauses } from '../../base/retry.ts';
import { literal } from '../../base/sql.ts';
import { realOrGivenPath } from '../../fs/local-path.ts';
import { holdPrivateUmask } from '../../fs/permissions.ts';
import { claimFile, fileIdentity, makeDatabase, newSpillFolder, removeLeftovers } from './database-file.ts';
import { type Access, Engine, type EngineOptions, MAIN_DATABASE } from './engine.ts';
import { engineError, isEngineFailure } from './engine-errors.ts';

// DuckDB's client drops a U+FEFF at the beginning of every text that it reads (1.5.6): names and ids would be others.
const wholeTextDecoder = new TextDecoder('utf-8', { ignoreBOM: true });
textDecoder.decode = wholeTextDecoder.decode.bind(wholeTextDecoder);

const MIB = 2 ** 20;
/** Maximum size of the spilled data of a query. */
const SPILL_LIMIT = '100GB';

/** Opens a file, works on it and closes it; an abort ends the statement at work. Throws UserError. */
export async function withEngine<T>(
  file: string,
  access: Access,
  options: EngineOptions,
  work: (engine: Engine) => Promise<T>,
): Promise<T> {
  const engine = await openEngine(file, access, options);
  try {
    return await work(engine);
  } catch (error) {
    options.signal?.throwIfAborted();
    throw engineError(error, engine.file);
  } finally {
    await engine.close();
  }
}

/**
 * Opens or makes a file; waits for its lock for a bounded time. Throws UserError. Until the engine is closed, only the
 * owner may read files that this process makes. A write-ahead log and spilled blocks hold rows too.
 */
export async function openEngine(path: string, access: Access, options: EngineOptions): Promise<Engine> {
  // The log beside the file, and the file that replaces it, must not belong to a link.
  const file = realOrGivenPath(path);
  // What is open is closed in reverse order.
  const closeSteps = [holdPrivateUmask()];
  const closeAll = () => {
    for (const close of closeSteps.splice(0).reverse()) close();
  };
  try {
    const instance = await createInstance(file, options.memoryLimit);
    closeSteps.push(() => instance.closeSync());
    const connection = await instance.connect();
    closeSteps.push(() => connection.closeSync());
    if (access === 'write' && !existsSync(file)) await makeDatabase(connection, file);
    closeSteps.push(await attach(connection, file, access, options));
    await connection.run(`USE ${MAIN_DATABASE}`);
    // Views and macros that others left in a file that is read must not reach other files.
    if (access === 'read') await connection.run('SET enable_external_access = false');
    if (access === 'write') {
      // Checkpoints join four row groups if three would hold their rows. If a batch ends in one, three are written twice.
      // Two batches of 250,000 rows then took 70 MB instead of 41, and twice the processor time.
      await connection.run('SET max_vacuum_tasks = 0');
      await removeLeftovers(file, options.clock.now());
    }
    return new Engine(file, options, connection, closeAll);
  } catch (error) {
    closeAll();
    options.signal?.throwIfAborted();
    throw engineError(error, file);
  }
}

function createInstance(file: string, memoryLimit: string | undefined): Promise<DuckDBInstance> {
  const allowedBytes = Math.min(process.constrainedMemory?.() || totalmem(), totalmem());
  return DuckDBInstance.create(':memory:', {
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
    memory_limit: memoryLimit ?? `${Math.floor(allowedBytes / 2 / MIB)}MiB`,
    temp_directory: newSpillFolder(file),
    max_temp_directory_size: SPILL_LIMIT,
    preserve_insertion_order: 'false',
  });
}

const LOCK_PAUSES = { firstPauseMs: 50, maxPauseMs: 1_000 };

/** Attaches a file; waits for its lock for a bounded time. Returns a function that ends this process's claim to it. */
async function attach(
  connection: DuckDBConnection,
  file: string,
  access: Access,
  { lockWaitMs, clock, signal }: EngineOptions,
): Promise<() => void> {
  const pauses = doublingPauses(lockWaitMs, LOCK_PAUSES);
  for (;;) {
    try {
      return await attachOnce(connection, file, access);
    } catch (error) {
      const isTransient = error instanceof UserError && error.kind === 'transient';
      const pause = pauses.next();
      if (!(isTransient || isEngineFailure(error, 'fileInUse')) || pause.done) throw error;
      await clock.sleep(pause.value, signal);
    }
  }
}

async function attachOnce(connection: DuckDBConnection, file: string, access: Access): Promise<() => void> {
  const identityBefore = fileIdentity(file);
  const releaseClaim = claimFile(file);
  try {
    // Without the type DuckDB opens a CSV or JSON file as a view in memory, and loaded rows are lost.
    const attachOptions = access === 'write' ? 'TYPE duckdb' : 'TYPE duckdb, READ_ONLY';
    await connection.run(`ATTACH ${literal(file)} AS ${MAIN_DATABASE} (${attachOptions})`);
    if (access !== 'write' || fileIdentity(file) === identityBefore) return releaseClaim;
    // A purge or `compact` has replaced the file: what DuckDB opened, and now has locked, is the former one.
    await connection.run(`DETACH ${MAIN_DATABASE}`);
    throw transientError(`${file} was replaced while it was opened: run again.`);
  } catch (error) {
    releaseClaim();
    throw error;
  }
}
