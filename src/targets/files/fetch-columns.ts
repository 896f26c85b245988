import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { literal, pathLiteral } from '../../base/sql.ts';
import type { Engine } from '../../engine/session/engine.ts';
import { makeFolders } from '../../fs/folders.ts';
import { OWNER_FILE_MODE } from '../../fs/permissions.ts';
import type { Storage } from '../../storage/storage.ts';

/** Bytes of the end of a file that are read first. They hold most footers, and a small file as a whole. */
const TAIL_BYTES = 64 * 1024;
/** The last bytes of a Parquet file: the length of its footer (32 bits), and a mark. */
const MARK_BYTES = 8;

/**
 * Gives a local Parquet file of which only `columns` may be read. On a disk it is the stored file itself. From a bucket
 * it is `copy`, of the same size. Only the footer and the bytes from the first of these columns to the last are
 * downloaded; the rest is empty.
 */
export async function fetchColumns(
  { storage, engine }: { readonly storage: Storage; readonly engine: Engine },
  { path, bytes }: { readonly path: string; readonly bytes: number },
  columns: readonly string[],
  copy: string,
): Promise<string> {
  if (storage.readRange === undefined) return storage.localFile(path, copy);
  const readRange = storage.readRange.bind(storage);
  await makeFolders(dirname(copy));
  const file = await open(copy, 'wx', OWNER_FILE_MODE);
  const read = async (from: number, to: number): Promise<Buffer> => {
    const part = await readRange(path, from, to);
    // A disk that is nearly full takes a part of a write and reports no error.
    for (let done = 0; done < part.length; ) {
      done += (await file.write(part, done, part.length - done, from + done)).bytesWritten;
    }
    return part;
  };
  try {
    await file.truncate(bytes);
    const tailFrom = Math.max(0, bytes - TAIL_BYTES);
    const tail = await read(tailFrom, bytes);
    // DuckDB refuses a damaged file, such as one whose footer would begin before the file.
    const footerBytes = tail.length < MARK_BYTES ? 0 : tail.readUInt32LE(tail.length - MARK_BYTES);
    const footerFrom = Math.max(0, bytes - MARK_BYTES - footerBytes);
    if (footerFrom < tailFrom) await read(footerFrom, tailFrom);
    for (const { from, until } of await rangesOf(engine, copy, columns)) {
      if (from < tailFrom) await read(from, Math.min(until, tailFrom));
    }
    return copy;
  } finally {
    await file.close();
  }
}

/** The bytes of each row group from the first of these columns to the last one. */
async function rangesOf(engine: Engine, path: string, columns: readonly string[]) {
  if (columns.length === 0) return [];
  const rows = await engine.rows(`
    SELECT
      min(coalesce(dictionary_page_offset, data_page_offset)) AS "from",
      max(coalesce(dictionary_page_offset, data_page_offset) + total_compressed_size) AS until
    FROM parquet_metadata(${pathLiteral(path)})
    WHERE path_in_schema IN (${columns.map(literal).join(', ')})
    GROUP BY row_group_id`);
  return rows.map((row) => ({ from: Number(row.from), until: Number(row.until) }));
}
