import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { literal, pathLiteral } from '../../base/sql.ts';
import type { DuckDbType } from '../../cells/types/codec.ts';
import { duckDbTypeOf } from '../../engine/column-sql.ts';
import type { Engine } from '../../engine/session/engine.ts';
import { makeFolders } from '../../fs/folders.ts';
import { PRIVATE_FILE_MODE } from '../../fs/permissions.ts';
import type { Storage } from '../../storage/storage.ts';
import type { ColumnTypes } from './file-layout.ts';

const READ_BYTES = 1 << 20;
/** Bytes of the end of a file that are read first. They hold most footers, and a small file as a whole. */
const TAIL_BYTES = 64 * 1024;
/** The last bytes of a Parquet file: the length of its footer (32 bits), and a mark. */
const MARK_BYTES = 8;

/** The keys of a file's metadata. */
export const METADATA_KEYS = {
  /** The receipt of the file, as JSON. */
  receipt: 'dfinery.receipt',
  /** The instant at which it was written (ISO, UTC). */
  writtenAt: 'dfinery.written_at',
  /** Of a snapshot: the state of its table, as JSON. */
  table: 'dfinery.table',
};

/** `read_parquet` of files; a column that some of them lack is NULL there. */
export const readParquetSql = (paths: readonly string[], options = 'hive_partitioning = false'): string =>
  `read_parquet([${paths.map(pathLiteral).join(', ')}], union_by_name = ${paths.length > 1}, ${options})`;

/** The columns of a Parquet file, as they are in it. */
export async function readColumnTypes(engine: Engine, path: string): Promise<ColumnTypes> {
  const rows = await engine.rows(`DESCRIBE SELECT * FROM ${readParquetSql([path])}`);
  return new Map(
    rows.map(({ column_name: name, column_type: type }) => {
      return [String(name), (type === 'JSON' ? 'VARCHAR' : duckDbTypeOf(type)) as DuckDbType];
    }),
  );
}

/** What a file says of itself, as texts; undefined what it lacks. Throws for what is no Parquet file. */
export async function readMetadata(engine: Engine, path: string) {
  const rows = await engine.rows(
    `SELECT decode(key) AS key, decode(value) AS text FROM parquet_kv_metadata(${pathLiteral(path)})`,
  );
  const texts = new Map(rows.map(({ key, text }) => [key, String(text)]));
  const { receipt, writtenAt, table } = METADATA_KEYS;
  return { receipt: texts.get(receipt), writtenAt: texts.get(writtenAt), table: texts.get(table) };
}

/** The rows of a Parquet file, by its footer. */
export async function countRowsOfFile(engine: Engine, path: string): Promise<number> {
  return Number((await engine.row(`SELECT num_rows AS n FROM parquet_file_metadata(${pathLiteral(path)})`)).n);
}

/** The SHA-256 of a file, in hex. Throws the system's error. */
export async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path, { highWaterMark: READ_BYTES })) hash.update(chunk);
  return hash.digest('hex');
}

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
  const file = await open(copy, 'wx', PRIVATE_FILE_MODE);
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
