import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { groupBy } from '../../base/group.ts';
import { VERSION } from '../../base/version.ts';
import { literal } from '../../cells/types/sql.ts';
import { type DescribedColumn, describe } from '../../engine/conversions.ts';
import type { Engine, Row } from '../../engine/session/engine.ts';
import { pathLiteral } from '../../engine/session/quote.ts';
import type { TableName } from '../../table/columns.ts';
import type { ColumnStatistics, NewFile } from './data-file.ts';
import type { Layout } from './table-log.ts';

/** Number of rows of a row group, which a filter skips or a reader reads as a whole. */
export const ROW_GROUP_ROWS = 61_440;
/** Compression level: on exports smaller and faster than the default, 3 (measured). */
const ZSTD_LEVEL = 1;
/** Different values at which a large file gives up a dictionary, which takes time: ids never repeat. */
export const DICTIONARY_VALUES = 4_096;
const READ_BYTES = 1 << 20;
/** Number of rows of a row group if memory is short: a row group is held in memory until it is complete. */
const LOW_MEMORY_ROWS = 10_240;
/** Extension of a file that is not part of a dataset yet, so that readers that glob for `.parquet` do not see it. */
const PART_EXTENSION = 'part';
/** Hive's name of the partition of rows without a date. */
export const NO_DATE = '__HIVE_DEFAULT_PARTITION__';
/** The column by which tables are partitioned; only some logs want it in the files, too. */
export const PARTITION_COLUMN = 'event_date';
/** The folder of a partition, as a regular expression: its group is the date, of the years 1 to 9999, or `NO_DATE`. */
export const PARTITION_FOLDER = `${PARTITION_COLUMN}=(\\d{4}-\\d{2}-\\d{2}|${NO_DATE})`;
export const DATE_COLUMN: DescribedColumn = { name: PARTITION_COLUMN, type: 'DATE' };

/** A query for a file of a table, and the approximate number of its rows. */
export interface SizedQuery {
  readonly query: string;
  readonly rows: number;
  readonly table: TableName;
  /** The date of all its rows; undefined if the query has a column for it, or if it does not matter. */
  readonly date?: string | null | undefined;
  /** The columns of the query without that of the date; undefined: DuckDB is asked. */
  readonly columns?: readonly DescribedColumn[];
}

/** A file that was written, with the facts in its footer. */
export type WrittenFile = Pick<NewFile, 'local' | 'rows' | 'bytes' | 'sha256' | 'footerBytes' | 'statistics'>;

export interface Writer {
  rows(sql: string): Promise<Row[]>;
  /** True if memory is short: row groups are then smaller. */
  readonly isLowOnMemory: boolean;
  readonly layout: Pick<Layout, 'hasDateColumn' | 'fieldIds'>;
}

/** Writes a query into one Parquet file that does not exist yet. */
export async function writeFile(into: Writer, file: SizedQuery, path: string): Promise<WrittenFile> {
  const { layout } = into;
  const query =
    layout.hasDateColumn === true && file.date !== undefined
      ? `SELECT *, CAST(${file.date === null ? 'NULL' : literal(file.date)} AS DATE) AS ${PARTITION_COLUMN} FROM (${file.query})`
      : file.query;
  const [row] = await copy(into, { ...file, query }, path, 'USE_TMP_FILE false');
  return await writtenFile(row);
}

/** Writes a query that has an `event_date` into one file for each date, under a folder; returns the files by date. */
export async function writeDates(into: Writer, file: SizedQuery, folder: string) {
  const column = into.layout.hasDateColumn === true ? ', WRITE_PARTITION_COLUMNS true' : '';
  const how = `PARTITION_BY (${PARTITION_COLUMN}), FILE_EXTENSION ${literal(PART_EXTENSION)}${column}`;
  const rows = await copy(into, file, folder, how);
  const files = new Map<string | null, WrittenFile>();
  const dateOf = (row: Row) => (row.partition_keys as Entries<string | null>)[0].value;
  for (const [date, parts] of groupBy(rows, dateOf)) {
    const written = await Promise.all(parts.map(writtenFile));
    files.set(date, written.length === 1 ? written[0] : await joinFiles(into, file, written));
  }
  return files;
}

/** Joins several files of one date: for very many dates DuckDB closes files early and begins new ones. */
async function joinFiles(into: Writer, { rows, table }: SizedQuery, parts: WrittenFile[]): Promise<WrittenFile> {
  const folder = dirname(parts[0].local);
  const query = `SELECT * FROM ${readFiles(parts.map(({ local }) => local))}`;
  const joined = await writeFile(into, { query, rows, table }, `${folder}.${PART_EXTENSION}`);
  await rm(folder, { recursive: true });
  return joined;
}

async function copy(into: Writer, file: SizedQuery, path: string, how: string): Promise<Row[]> {
  const { isLowOnMemory, layout } = into;
  const { query, rows, table, columns } = file;
  const described = async () => (columns ? [...columns, DATE_COLUMN] : await describe(into, query));
  const fieldIds = layout.fieldIds === undefined ? [] : [layout.fieldIds(table, await described())];
  const options = [
    `FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL ${ZSTD_LEVEL}`,
    `ROW_GROUP_SIZE ${isLowOnMemory ? LOW_MEMORY_ROWS : ROW_GROUP_ROWS}`,
    ...(rows > ROW_GROUP_ROWS ? [`DICTIONARY_SIZE_LIMIT ${DICTIONARY_VALUES}`] : []),
    `KV_METADATA {'dfinery.version': ${literal(VERSION)}}`,
    // A copy of some columns of a large object lacks the filters of others, which DuckDB would ask.
    'WRITE_BLOOM_FILTER false',
    ...fieldIds,
    'RETURN_STATS',
    how,
  ];
  return into.rows(`COPY (${query}) TO ${literal(path)} (${options.join(', ')})`);
}

/** A column in a file's statistics: its name in double quotes, and for a list the name of its elements. */
const COLUMN = /^"((?:[^"]|"")*)"(\."element")?$/;

type Entries<V> = readonly { readonly key: string; readonly value: V }[];

async function writtenFile(row: Row): Promise<WrittenFile> {
  const statistics = new Map<string, ColumnStatistics>();
  for (const { key, value } of row.column_statistics as Entries<Entries<string>>) {
    const [, quoted = '', element] = COLUMN.exec(key) ?? [];
    const name = quoted.replaceAll('""', '"');
    const facts = new Map(value.map((one) => [one.key, one.value]));
    const nulls = Number(facts.get('null_count'));
    statistics.set(name, {
      isList: element !== undefined,
      bytes: Number(facts.get('column_size_bytes')),
      values: Number(facts.get('num_values')) - nulls,
      nulls,
      least: facts.get('min') ?? null,
      greatest: facts.get('max') ?? null,
    });
  }
  const local = String(row.filename);
  const [rows, bytes, footerBytes] = [row.count, row.file_size_bytes, row.footer_size_bytes].map(Number);
  return { local, rows, bytes, footerBytes, statistics, sha256: await fingerprint(local) };
}

/** The SHA-256 of a file, in hex. Throws the system's error. */
export async function fingerprint(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path, { highWaterMark: READ_BYTES })) hash.update(chunk);
  return hash.digest('hex');
}

/** The column that `readFilesWithPaths` adds: the path of the row's file. */
export const FILE = '_dfinery_file';

/** `read_parquet` of files with the same schema. */
export const readFiles = (paths: readonly string[]): string => `read_parquet(${filesToRead(paths)})`;

/** `read_parquet` of files with the same schema, and the path of each row's file in the column FILE. */
export const readFilesWithPaths = (paths: readonly string[]): string =>
  `read_parquet(${filesToRead(paths)}, filename = ${literal(FILE)})`;

const filesToRead = (paths: readonly string[]): string =>
  `[${paths.map(pathLiteral).join(', ')}], hive_partitioning = false`;

/** Number of rows of each file by path, from its footer. */
export async function countRows(engine: Engine, paths: readonly string[]): Promise<Map<string, number>> {
  if (paths.length === 0) return new Map();
  const rows = await engine.rows(
    `SELECT file_name AS path, num_rows AS n FROM parquet_file_metadata([${paths.map(pathLiteral).join(', ')}])`,
  );
  return new Map(rows.map((row) => [String(row.path), Number(row.n)]));
}

/** Those of the names that the schema of each file has, by path: of columns, and of parts of lists. */
export async function schemaNames(engine: Engine, paths: readonly string[], names: readonly string[]) {
  if (paths.length === 0 || names.length === 0) return new Map<string, readonly string[]>();
  const rows = await engine.rows(
    `SELECT file_name AS path, list(name) AS names FROM parquet_schema([${paths.map(pathLiteral).join(', ')}])
    WHERE name IN (${names.map(literal).join(', ')}) GROUP BY file_name`,
  );
  return new Map(rows.map((row) => [String(row.path), row.names as readonly string[]]));
}

/** Number of rows that meet a condition, by the path of their file; `from` has the column FILE. */
export async function countByFile(engine: Engine, from: string, condition: string): Promise<Map<string, number>> {
  const rows = await engine.rows(
    `SELECT ${FILE} AS path, count(*) AS n FROM ${from} WHERE ${condition} GROUP BY ${FILE}`,
  );
  return new Map(rows.map(({ path, n }) => [String(path), Number(n)]));
}

/** Turns off the engine's cache of files, since files are replaced under their names. */
export const forgetReadFiles = (engine: Engine) => engine.run('SET enable_external_file_cache = false');
