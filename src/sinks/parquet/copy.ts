import { literal } from '../../types/sql.ts';
import type { Engine } from '../duckdb/engine.ts';
import { identifier, pathLiteral, textLiteral } from '../duckdb/sql.ts';
import { PART_ENDING } from './layout.ts';
import { ROW_GROUP_ROWS } from './order.ts';

/** Measured on exports: smaller and faster than the default, 3. */
const ZSTD_LEVEL = 1;
/** In large files a dictionary is given up at so many different values: ids never repeat. Else at a fifth of the rows. */
const DICTIONARY_WORDS = 4_096;
/** Rows of a row group where memory is short: each is held until it is whole. */
const FRUGAL_ROWS = 10_240;

/** What writes, and whether it has to do with little memory. */
export interface Writer {
  readonly engine: Engine;
  readonly isFrugal: boolean;
}

/** A query and about how many rows it gives a file. */
export interface Sized {
  readonly query: string;
  readonly rows: number;
}

export type Metadata = Readonly<Record<string, string>>;

/** Writes a query into one Parquet file that does not exist yet. */
export async function writeFile(into: Writer, { query, rows }: Sized, path: string, metadata: Metadata): Promise<void> {
  await into.engine.run(`COPY (${query}) TO ${literal(path)} (${options(into, rows, metadata)}, USE_TMP_FILE false)`);
}

/** Writes a query into files by the values of some of its columns: `folder/event_date=…/data_0.part`. */
export async function writeFolder(
  into: Writer,
  { query, rows }: Sized,
  folder: string,
  metadata: Metadata,
  by: readonly string[],
): Promise<void> {
  const how = `PARTITION_BY (${by.join(', ')}), FILE_EXTENSION ${literal(PART_ENDING)}`;
  await into.engine.run(`COPY (${query}) TO ${literal(folder)} (${options(into, rows, metadata)}, ${how})`);
}

function options({ isFrugal }: Writer, rows: number, metadata: Metadata): string {
  const pairs = Object.entries(metadata).map(([key, value]) => `${identifier(key)}: ${textLiteral(value)}`);
  const format = [
    `FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL ${ZSTD_LEVEL}`,
    `ROW_GROUP_SIZE ${isFrugal ? FRUGAL_ROWS : ROW_GROUP_ROWS}`,
    ...(rows > ROW_GROUP_ROWS ? [`DICTIONARY_SIZE_LIMIT ${DICTIONARY_WORDS}`] : []),
    `KV_METADATA {${pairs.join(', ')}}`,
  ];
  return format.join(', ');
}

/** The name of the column that `readFiles` adds: the path of the file a row is in. */
export const FILE = '_dfinery_file';

/** `read_parquet` of files of one schema. */
export function readFiles(paths: readonly string[], withFile = false): string {
  const list = paths.map(pathLiteral).join(', ');
  const file = withFile ? `, filename = ${literal(FILE)}` : '';
  return `read_parquet([${list}], hive_partitioning = false${file})`;
}

/** Rows of each file, from its footer, by path. */
export async function countRows(engine: Engine, paths: readonly string[]): Promise<Map<string, number>> {
  if (paths.length === 0) return new Map();
  const rows = await engine.rows(
    `SELECT file_name AS path, num_rows AS n FROM parquet_file_metadata([${paths.map(pathLiteral).join(', ')}])`,
  );
  return new Map(rows.map((row) => [String(row.path), Number(row.n)]));
}
