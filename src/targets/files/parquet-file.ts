import { createHash, randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { identifier, literal, pathLiteral } from '../../base/sql.ts';
import { VERSION } from '../../base/version.ts';
import { type DuckDbType, scalarOf } from '../../cells/types/duckdb-types.ts';
import { duckDbTypeOf } from '../../engine/column-sql.ts';
import type { Engine, ResultRow } from '../../engine/session/engine.ts';
import type { StoredReceipt } from '../../table/receipts.ts';
import type { TableName } from '../../table/tables.ts';
import type { FileColumns } from './file-layout.ts';
import type { OpenPlace } from './format.ts';
import type { ColumnStatistics, NewFile } from './place-version.ts';

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

/** `read_parquet` of files; a column that some of them lack is NULL there. */
export const readParquetSql = (paths: readonly string[], options = 'hive_partitioning = false'): string =>
  `read_parquet([${paths.map(pathLiteral).join(', ')}], union_by_name = ${paths.length > 1}, ${options})`;

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

/** The bytes of each row group from the first of these columns to the last one. */
export async function byteRangesOfColumns(engine: Engine, path: string, columns: readonly string[]) {
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

/** Writes a query into a new local file, which the next commit may store. The receipt has the number of its rows. */
export async function writeTableFile(
  { format, engine, runFolder }: OpenPlace,
  table: TableName,
  query: string,
  receipt: StoredReceipt,
): Promise<NewFile> {
  const { day } = receipt;
  const localPath = join(runFolder.path, randomUUID());
  const metadata = {
    'dfinery.version': VERSION,
    [METADATA_KEYS.receipt]: JSON.stringify(receipt),
    [METADATA_KEYS.table]: table,
  };
  const entries = Object.entries(metadata).map(([key, value]) => `${literal(key)}: ${literal(value)}`);
  const options = [
    `FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL ${ZSTD_LEVEL}`,
    `ROW_GROUP_SIZE ${engine.isLowOnMemory ? LOW_MEMORY_ROWS : ROW_GROUP_ROWS}`,
    ...(receipt.rows_stored > ROW_GROUP_ROWS ? [`DICTIONARY_SIZE_LIMIT ${MAX_DICTIONARY_VALUES}`] : []),
    `KV_METADATA {${entries.join(', ')}}`,
    'RETURN_STATS, USE_TMP_FILE false',
  ];
  const [row] = await engine.rows(`COPY (${query}) TO ${literal(localPath)} (${options.join(', ')})`);
  const columns = await readFileColumns(engine, localPath);
  const listColumns = [...columns].flatMap(([name, type]) => (scalarOf(type).isList ? name : []));
  const statistics = new Map([...statisticsOf(row), ...(await statisticsOfLists(engine, localPath, listColumns))]);
  const [rows, bytes] = [row.count, row.file_size_bytes].map(Number);
  const sha256 = await hashFile(localPath);
  const path = format.layout.newPath(day, table);
  return { table, day, path, localPath, rows, bytes, statistics, columns, sha256 };
}

/** The key of a column in DuckDB's statistics. The elements of a list have a longer key. */
const QUOTED_NAME = /^"((?:[^"]|"")*)"$/;

type Entries<V> = readonly { readonly key: string; readonly value: V }[];
type Statistics = [column: string, ColumnStatistics][];

/** The statistics of columns without lists: of a list, DuckDB has those of its elements. */
function statisticsOf(row: ResultRow): Statistics {
  return (row.column_statistics as Entries<Entries<string>>).flatMap(({ key, value: entries }): Statistics => {
    const quotedName = QUOTED_NAME.exec(key)?.[1];
    if (quotedName === undefined) return [];
    const { null_count, min = null, max = null } = Object.fromEntries(entries.map(({ key, value }) => [key, value]));
    return [[quotedName.replaceAll('""', '"'), { nullCount: Number(null_count), min, max }]];
  });
}

async function statisticsOfLists(engine: Engine, path: string, names: readonly string[]): Promise<Statistics> {
  if (names.length === 0) return [];
  const counts = names.map((name, i) => `count(*) - count(${identifier(name)}) AS n${i}`);
  const row = await engine.row(`SELECT ${counts.join(', ')} FROM ${readParquetSql([path])}`);
  return names.map((name, i) => [name, { nullCount: Number(row[`n${i}`]), min: null, max: null }]);
}
