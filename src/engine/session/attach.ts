import type { DuckDBConnection } from '@duckdb/node-api';
import type { Clock } from '../../base/clock.ts';
import { transientError } from '../../base/errors.ts';
import { doubling, retry } from '../../base/retry.ts';
import { literal } from '../../cells/types/sql.ts';
import { claimFile, fileAt } from './database-file.ts';
import { isLocked } from './faults.ts';

const FIRST_RETRY_MS = 50;
const LONGEST_RETRY_MS = 1_000;

export interface AttachOptions {
  readonly file: string;
  readonly readOnly?: boolean;
  readonly lockWaitMs: number;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Attaches a file once this process has it for itself, and its lock; returns a function that ends this process's claim
 * to it.
 */
export async function attach(connection: DuckDBConnection, database: string, o: AttachOptions): Promise<() => void> {
  // Without the type DuckDB would open a CSV or JSON file as a view in memory, and loaded rows would be lost.
  const how = o.readOnly ? 'TYPE duckdb, READ_ONLY' : 'TYPE duckdb';
  const pauses = doubling({ waitMs: o.lockWaitMs, pauseMs: FIRST_RETRY_MS, maxPauseMs: LONGEST_RETRY_MS });
  let locked: unknown;
  const attached = await retry({ ...o, pauses }, async () => {
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
