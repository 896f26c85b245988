import { chmodSync, rmSync } from 'node:fs';
import type { DuckDBConnection } from '@duckdb/node-api';
import { messageOf } from '../../../base/errors.ts';
import { moveFile, nameTemporary, removeTemporaries, temporaryPathOf } from '../../../fs/atomic-file.ts';
import { literal } from '../../../types/sql.ts';

/** Readers of DuckDB 1.2 and all later ones understand it. */
const STORAGE_VERSION = 'v1.2.0';
/** Bytes: DuckDB's own. Numbers and times compress only in blocks of some size, so smaller ones cost a third of the file. */
const BLOCK_SIZE = 262_144;
/**
 * Bytes, for tables of very many columns. Appending takes a block or more of every column: at 256 KiB, 5,000 columns do
 * not fit into 4 GB (measured); so a window of them fits into 1 GB.
 */
const WIDE_BLOCK_SIZE = 16_384;
const WIDE_COLUMNS = 500;

/** True for a table of so many columns that it is better off in small blocks. */
export const isWide = (columns: number): boolean => columns > WIDE_COLUMNS;

/** How a file of ours is made whose largest table has so many columns. */
export const newFile = (columns: number): string =>
  `STORAGE_VERSION ${literal(STORAGE_VERSION)}, BLOCK_SIZE ${isWide(columns) ? WIDE_BLOCK_SIZE : BLOCK_SIZE}`;
/** How a file of small tables is made, of which copies are to be small. */
export const SMALL_BLOCKS = newFile(WIDE_COLUMNS + 1);
const OWNER_ONLY = 0o600;
/** Making a file takes moments: an older half-made one has nobody who would finish it. */
const ABANDONED_MS = 3_600_000;

/**
 * Makes an empty database under another name and gives it its own when it is whole: DuckDB takes a file whose maker was
 * killed for no database at all. Where somebody else was quicker, theirs stays.
 */
export async function makeFile(connection: DuckDBConnection, file: string, how = newFile(0)): Promise<void> {
  await withTemporary(file, async (making) => {
    await connection.run(`ATTACH ${literal(making)} AS making (${how})`);
    await connection.run('DETACH making');
    chmodSync(making, OWNER_ONLY);
    await nameTemporary(making, file, true);
  });
}

/** Removes what killed runs left while they made the file: a second name of it would keep what a purge removes. */
export const sweepNewFiles = (file: string, now: number): Promise<void> => removeTemporaries(file, now, ABANDONED_MS);

/**
 * Recreates the attached database in small blocks, with all that it holds, and gives it the name of its file. What is
 * attached is then the former file, which keeps others from its lock but not from the new one's: detach it at once.
 */
export async function remakeForWideTables(connection: DuckDBConnection, file: string): Promise<void> {
  await withTemporary(file, async (making) => {
    await connection.run('CHECKPOINT target');
    await connection.run(`ATTACH ${literal(making)} AS making (${newFile(WIDE_COLUMNS + 1)})`);
    await connection.run('COPY FROM DATABASE target TO making');
    await connection.run('DETACH making');
    chmodSync(making, OWNER_ONLY);
    await moveFile(making, file);
  });
}

async function withTemporary(file: string, make: (making: string) => Promise<void>): Promise<void> {
  const making = temporaryPathOf(file);
  try {
    await make(making);
  } catch (error) {
    throw new Error(messageOf(error).replaceAll(making, file), { cause: error });
  } finally {
    for (const path of [making, `${making}.wal`]) rmSync(path, { force: true });
  }
}
