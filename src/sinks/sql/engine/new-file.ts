import { randomBytes } from 'node:crypto';
import { chmodSync, existsSync, linkSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { DuckDBConnection } from '@duckdb/node-api';
import { codeOf, messageOf } from '../../../base/errors.ts';
import { literal } from '../../../types/sql.ts';

/** Readers of DuckDB 1.2 and all later ones understand it. */
const STORAGE_VERSION = 'v1.2.0';
/**
 * Bytes. Appending to a table takes a block or more of every column: at DuckDB's usual 256 KiB, 5,000 columns do not fit
 * into 4 GB (measured); so a window of them fits into 1 GB, at the same speed and with files a fifth larger.
 */
const BLOCK_SIZE = 16_384;
/** How a file of ours is made. */
export const NEW_FILE = `STORAGE_VERSION ${literal(STORAGE_VERSION)}, BLOCK_SIZE ${BLOCK_SIZE}`;
const OWNER_ONLY = 0o600;
const MAKING = '.making-';
/** Making a file takes moments: an older half-made one has nobody who would finish it. */
const ABANDONED_MS = 3_600_000;

/**
 * Makes an empty database under another name and gives it its own when it is whole: DuckDB takes a file whose maker was
 * killed for no database at all. Where somebody else was quicker, theirs stays.
 */
export async function makeFile(connection: DuckDBConnection, file: string, now: number): Promise<void> {
  sweepAbandoned(file, now);
  const making = `${file}${MAKING}${randomBytes(6).toString('hex')}`;
  try {
    await connection.run(`ATTACH ${literal(making)} AS making (${NEW_FILE})`);
    await connection.run('DETACH making');
    chmodSync(making, OWNER_ONLY);
    giveName(making, file);
  } catch (error) {
    throw new Error(messageOf(error).replaceAll(making, file), { cause: error });
  } finally {
    for (const path of [making, `${making}.wal`]) if (existsSync(path)) rmSync(path, { force: true });
  }
}

function giveName(making: string, file: string): void {
  try {
    linkSync(making, file);
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return;
    // Some file systems know no second names.
    if (!existsSync(file)) renameSync(making, file);
  }
}

function sweepAbandoned(file: string, now: number): void {
  const prefix = `${basename(file)}${MAKING}`;
  for (const name of namesIn(dirname(file))) {
    if (!name.startsWith(prefix)) continue;
    const path = join(dirname(file), name);
    const found = statSync(path, { throwIfNoEntry: false });
    if (found !== undefined && now - found.mtimeMs > ABANDONED_MS) rmSync(path, { force: true });
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    // The attempt to make the file says what is wrong.
    return [];
  }
}
