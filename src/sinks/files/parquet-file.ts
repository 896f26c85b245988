import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { VERSION } from '../../base/version.ts';
import type { TableName } from '../../table/columns.ts';
import { literal } from '../../types/sql.ts';
import type { Engine } from '../sql/engine/engine.ts';
import { pathLiteral } from '../sql/engine/quote.ts';

/** Rows of a row group: what a filter can skip or must read as one. */
export const ROW_GROUP_ROWS = 61_440;
/** Measured on exports: smaller and faster than the default, 3. */
const ZSTD_LEVEL = 1;
/** In large files a dictionary is given up at so many different values: ids never repeat. Else at a fifth of the rows. */
const DICTIONARY_VALUES = 4_096;
/** Rows of a row group where memory is short: each is held until it is whole. */
const LOW_MEMORY_ROWS = 10_240;
/** A file that is not part of a dataset yet ends like this, so that readers that glob for `.parquet` do not see it. */
const UNFINISHED = 'part';
/** Hive's name of the partition of rows without a date. */
export const NO_DATE = '__HIVE_DEFAULT_PARTITION__';
const DATE = 'event_date';

/** A query with the date of its rows as one more column. */
export const withDate = (query: string, date: string | null): string =>
  `SELECT *, CAST(${date === null ? 'NULL' : literal(date)} AS DATE) AS ${DATE} FROM (${query})`;

/** What runs statements, and whether it must do with little memory: smaller row groups. */
export interface Writer {
  readonly engine: { run(sql: string): Promise<unknown> };
  readonly isLowOnMemory: boolean;
  /** More options of COPY for a query; none if absent. */
  copyOptions?(file: SizedQuery): Promise<string[]>;
  /** True if files hold the date of their rows as a column, too. */
  readonly hasDateColumn?: boolean;
}

/** A query and about how many rows it gives a file. */
export interface SizedQuery {
  readonly query: string;
  readonly rows: number;
  /** By default `events`. */
  readonly table?: TableName;
}

/** Writes a query into one Parquet file that does not exist yet. */
export async function writeFile(into: Writer, file: SizedQuery, path: string): Promise<void> {
  await into.engine.run(`COPY (${file.query}) TO ${literal(path)} (${await options(into, file)}, USE_TMP_FILE false)`);
}

/** Writes a query that has an `event_date` into one file for each date, under a folder; gives their paths by date. */
export async function writeDates(into: Writer, file: SizedQuery, folder: string): Promise<Map<string, string>> {
  const { query, rows } = file;
  const column = into.hasDateColumn === true ? ', WRITE_PARTITION_COLUMNS true' : '';
  const how = `PARTITION_BY (${DATE}), FILE_EXTENSION ${literal(UNFINISHED)}${column}`;
  await into.engine.run(`COPY (${query}) TO ${literal(folder)} (${await options(into, file)}, ${how})`);
  const paths = new Map<string, string>();
  for (const name of (await readdir(folder)).sort()) {
    const parts = (await readdir(join(folder, name))).sort().map((file) => join(folder, name, file));
    const date = name.slice(DATE.length + 1) || NO_DATE;
    paths.set(date, parts.length === 1 ? parts[0] : await joinFiles(into, { parts, rows }, join(folder, name)));
  }
  return paths;
}

/** One file of several: of very many dates DuckDB closes files before they are whole and begins new ones. */
async function joinFiles(
  into: Writer,
  { parts, rows }: { readonly parts: readonly string[]; readonly rows: number },
  folder: string,
): Promise<string> {
  const path = `${folder}.${UNFINISHED}`;
  await writeFile(into, { query: `SELECT * FROM ${readFiles(parts)}`, rows }, path);
  await rm(folder, { recursive: true });
  return path;
}

async function options(into: Writer, file: SizedQuery): Promise<string> {
  const { isLowOnMemory } = into;
  const { rows } = file;
  const format = [
    `FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL ${ZSTD_LEVEL}`,
    `ROW_GROUP_SIZE ${isLowOnMemory ? LOW_MEMORY_ROWS : ROW_GROUP_ROWS}`,
    ...(rows > ROW_GROUP_ROWS ? [`DICTIONARY_SIZE_LIMIT ${DICTIONARY_VALUES}`] : []),
    `KV_METADATA {'dfinery.version': ${literal(VERSION)}}`,
    // Without filters: of a large object only some columns are copied, and DuckDB would ask the filter of another one.
    'WRITE_BLOOM_FILTER false',
    ...((await into.copyOptions?.(file)) ?? []),
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
