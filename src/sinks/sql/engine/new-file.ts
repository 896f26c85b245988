import { chmodSync, rmSync } from 'node:fs';
import type { DuckDBConnection } from '@duckdb/node-api';
import { messageOf } from '../../../base/errors.ts';
import { draftOf, nameDraft, removeDrafts } from '../../../fs/atomic-file.ts';
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
/** Making a file takes moments: an older half-made one has nobody who would finish it. */
const ABANDONED_MS = 3_600_000;

/**
 * Makes an empty database under another name and gives it its own when it is whole: DuckDB takes a file whose maker was
 * killed for no database at all. Where somebody else was quicker, theirs stays.
 */
export async function makeFile(connection: DuckDBConnection, file: string, now: number): Promise<void> {
  await removeDrafts(file, now, ABANDONED_MS);
  const making = draftOf(file);
  try {
    await connection.run(`ATTACH ${literal(making)} AS making (${NEW_FILE})`);
    await connection.run('DETACH making');
    chmodSync(making, OWNER_ONLY);
    nameDraft(making, file);
  } catch (error) {
    throw new Error(messageOf(error).replaceAll(making, file), { cause: error });
  } finally {
    for (const path of [making, `${making}.wal`]) rmSync(path, { force: true });
  }
}
