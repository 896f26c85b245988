import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { literal, pathLiteral } from '../../base/sql.ts';
import { VERSION } from '../../base/version.ts';
import type { DuckDbType } from '../../cells/types/duckdb-types.ts';
import { duckDbTypeOf } from '../../engine/column-sql.ts';
import type { Engine } from '../../engine/session/engine.ts';
import type { StoredReceipt } from '../../table/receipts.ts';
import type { TableName } from '../../table/tables.ts';
import type { FileColumns } from './file-layout.ts';
import type { LocalFiles } from './local-files.ts';
import type { NewFile } from './place-version.ts';

// One Parquet file on this machine: how DuckDB reads it, and writes it.

const READ_BYTES = 1 << 20;
/** Number of rows of a row group, which a filter skips or a reader reads as a whole. */
const ROW_GROUP_ROWS = 61_440;
/** Number of rows of a row group if memory is short: it stays in memory until it is complete. */
const LOW_MEMORY_ROWS = 10_240;
/** Compression level: on exports smaller and faster than the default, 3 (measured). */
const ZSTD_LEVEL = 1;
/** Different values at which a large file gives up a dictionary, which takes time: ids never repeat. */
const MAX_DICTIONARY_VALUES = 4_096;

/** The keys of a file's metadata: the receipt of its day or snapshot as JSON, and the name of its table. */
export const METADATA_KEYS = { receipt: 'dfinery.receipt', table: 'dfinery.table' };

/** `read_parquet` of files: a column that some lack is NULL there. `pathColumn`: SQL name of one with their paths. */
export const readParquetSql = (paths: readonly string[], pathColumn = 'false'): string =>
  `read_parquet([${paths.map(pathLiteral).join(', ')}], union_by_name = ${paths.length > 1}, ` +
  `hive_partitioning = false, filename = ${pathColumn})`;

/** The columns of a Parquet file, as they are in it. */
export async function readFileColumns(engine: Engine, path: string): Promise<FileColumns> {
  const rows = await engine.rows(`DESCRIBE SELECT * FROM ${readParquetSql([path])}`);
  return new Map(
    rows.map(({ column_name: name, column_type: type }) => {
      return [String(name), (type === 'JSON' ? 'VARCHAR' : duckDbTypeOf(type)) as DuckDbType];
    }),
  );
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

/** Writes a query into a new local file, which the next commit may store. The receipt has the number of its rows. */
export async function writeTableFile(
  localFiles: LocalFiles,
  tableName: TableName,
  query: string,
  receipt: StoredReceipt,
): Promise<NewFile> {
  const { day } = receipt;
  const { engine, layout } = localFiles;
  const localPath = localFiles.newLocalPath();
  const metadata = {
    'dfinery.version': VERSION,
    [METADATA_KEYS.receipt]: JSON.stringify(receipt),
    [METADATA_KEYS.table]: tableName,
  };
  const entries = Object.entries(metadata).map(([key, value]) => `${literal(key)}: ${literal(value)}`);
  const options = [
    `FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL ${ZSTD_LEVEL}`,
    `ROW_GROUP_SIZE ${engine.isLowOnMemory ? LOW_MEMORY_ROWS : ROW_GROUP_ROWS}`,
    ...(receipt.rows_stored > ROW_GROUP_ROWS ? [`DICTIONARY_SIZE_LIMIT ${MAX_DICTIONARY_VALUES}`] : []),
    `KV_METADATA {${entries.join(', ')}}`,
    'USE_TMP_FILE false',
  ];
  const rows = await engine.run(`COPY (${query}) TO ${literal(localPath)} (${options.join(', ')})`);
  const columns = await readFileColumns(engine, localPath);
  const { size: bytes } = await stat(localPath);
  const sha256 = await hashFile(localPath);
  const path = layout.newStoragePath(day, tableName);
  return { tableName, day, path, localPath, rows, bytes, columns, sha256 };
}
