import { randomBytes } from 'node:crypto';
import { readdirSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { DuckDBConnection } from '@duckdb/node-api';
import { HOUR_MS } from '../../base/clock.ts';
import { transientError } from '../../base/errors.ts';
import { literal } from '../../base/sql.ts';
import { createFile, removeTemporaries, temporaryPathOf } from '../../fs/atomic-file.ts';
import { giveToFolderOwner, PRIVATE_FILE_MODE, setMode } from '../../fs/permissions.ts';

// A database file: whether this process has it open, what lies beside it, and how a new one is made.

/** The path of the copy that replaces a file once it is complete. */
export const copyPathOf = (file: string): string => `${file}.rewriting`;

/** Which file of the machine is at a path, by whatever link; undefined if there is none. */
export function fileIdentity(path: string): string | undefined {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat && `${stat.dev}-${stat.ino}`;
}

/** The database files that this process has open. */
const openFiles = new Set<string>();

/**
 * Notes that this process opens a database file. Returns a function that ends this, and is called once. Throws if the
 * process has it open already. DuckDB's lock excludes only other processes. Under POSIX a process that closes any
 * descriptor of a file loses all its locks on it. So whoever opened the file first would go on without a lock.
 */
export function claimFile(file: string): () => void {
  const key = fileIdentity(file) ?? file;
  if (openFiles.has(key)) {
    throw transientError(`${file} is in use: this process has it open. Close it there, or wait, and run again.`);
  }
  openFiles.add(key);
  return () => void openFiles.delete(key);
}

/** Removes a database with its write-ahead log; the caller holds the lock of the file that they belong to. */
export function removeDatabase(path: string): void {
  for (const name of [path, `${path}.wal`]) rmSync(name, { force: true });
}

const SPILL_SUFFIX = '.tmp-';

/** The folder where a new engine spills what memory cannot hold. Each has its own, since all name their files alike. */
export const newSpillFolder = (file: string): string => `${file}${SPILL_SUFFIX}${randomBytes(6).toString('hex')}`;

/** Removes what killed runs left beside a file that this process has open for writing: it has no readers. */
export async function removeLeftovers(file: string, now: number): Promise<void> {
  // A rewrite holds the lock of the file, so that none is under way.
  removeDatabase(copyPathOf(file));
  // To make a file takes moments: an older temporary one is that of a killed run. This user may not remove all.
  await removeTemporaries(file, now - HOUR_MS).catch(() => undefined);
  // Spilled blocks hold rows, perhaps of people who are purged: each must go.
  const prefix = `${basename(file)}${SPILL_SUFFIX}`;
  for (const name of readdirSync(dirname(file))) {
    if (!name.startsWith(prefix) || !/^[0-9a-f]{12}$/.test(name.slice(prefix.length))) continue;
    rmSync(join(dirname(file), name), { recursive: true, force: true });
  }
}

/** Options of ATTACH that make a file which DuckDB 1.2 and all later versions read. */
export const NEW_FILE_OPTIONS = `STORAGE_VERSION 'v1.2.0'`;

/**
 * Makes an empty database under a temporary name, and renames it when it is complete. DuckDB does not accept a file
 * whose maker was killed. If another process is quicker, its file stays.
 */
export async function makeDatabase(connection: DuckDBConnection, file: string): Promise<void> {
  const temporaryPath = temporaryPathOf(file);
  try {
    await connection.run(`ATTACH ${literal(temporaryPath)} AS new_file (${NEW_FILE_OPTIONS})`);
    await connection.run('DETACH new_file');
    setMode(temporaryPath, PRIVATE_FILE_MODE);
    giveToFolderOwner(temporaryPath);
    await createFile(file, { finishedPath: temporaryPath }, { mayRename: true });
  } finally {
    removeDatabase(temporaryPath);
  }
}
