import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { literal, pathLiteral } from '../../base/sql.ts';
import type { DuckDbType } from '../../cells/types/duckdb-types.ts';
import { duckDbTypeOf } from '../../engine/column-sql.ts';
import type { Engine } from '../../engine/session/engine.ts';
import type { FileColumns } from './file-layout.ts';

const READ_BYTES = 1 << 20;

/** The keys of a file's metadata. */
export const METADATA_KEYS = {
  /** The receipt of the file, as JSON. */
  receipt: 'dfinery.receipt',
  /** The instant at which it was written (ISO, UTC). */
  writtenAt: 'dfinery.written_at',
  /** Of profiles: the state of their table, as JSON. */
  table: 'dfinery.table',
};

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
export async function columnRanges(engine: Engine, path: string, columns: readonly string[]) {
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
