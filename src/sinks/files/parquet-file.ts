import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { groupBy } from '../../base/group.ts';
import { VERSION } from '../../base/version.ts';
import type { TableName } from '../../table/columns.ts';
import { literal } from '../../types/sql.ts';
import { describe } from '../sql/columns.ts';
import type { Engine, Row } from '../sql/engine/engine.ts';
import { pathLiteral } from '../sql/engine/quote.ts';
import type { ColumnStatistics, Layout, WrittenFile } from './log.ts';

/** Rows of a row group: what a filter can skip or must read as one. */
export const ROW_GROUP_ROWS = 61_440;
/** Measured on exports: smaller and faster than the default, 3. */
const ZSTD_LEVEL = 1;
/** In large files a dictionary, which takes time, is given up at so many different values: ids never repeat. Else at a fifth of the rows. */
export const DICTIONARY_VALUES = 4_096;
/** Of a file that is read to be hashed, at a time. */
const READ_BYTES = 1 << 20;
/** Rows of a row group where memory is short: each is held until it is whole. */
const LOW_MEMORY_ROWS = 10_240;
/** A file that is not part of a dataset yet ends like this, so that readers that glob for `.parquet` do not see it. */
const UNFINISHED = 'part';
/** Hive's name of the partition of rows without a date. */
export const NO_DATE = '__HIVE_DEFAULT_PARTITION__';
/** The column by which tables are partitioned; only some logs want it in the files, too. */
export const PARTITION = 'event_date';

/** A query for a file, and about how many rows it gives. */
export interface SizedQuery {
  readonly query: string;
  readonly rows: number;
  /** By default `events`. */
  readonly table?: TableName;
  /** The date of all its rows; undefined: a column of the query, or of no interest. */
  readonly date?: string | null | undefined;
}

/** What writes files. */
export interface Writer {
  rows(sql: string): Promise<Row[]>;
  /** True if it must do with little memory: row groups are smaller. */
  readonly isLowOnMemory: boolean;
  readonly layout: Pick<Layout, 'hasDateColumn' | 'fieldIds'>;
}

/** Writes a query into one Parquet file that does not exist yet. */
export async function writeFile(into: Writer, file: SizedQuery, path: string): Promise<WrittenFile> {
  const { layout } = into;
  const query =
    layout.hasDateColumn === true && file.date !== undefined
      ? `SELECT *, CAST(${file.date === null ? 'NULL' : literal(file.date)} AS DATE) AS ${PARTITION} FROM (${file.query})`
      : file.query;
  const [row] = await copy(into, { ...file, query }, path, 'USE_TMP_FILE false');
  return await writtenFile(row);
}

/** Writes a query that has an `event_date` into one file for each date, under a folder; gives them by date. */
export async function writeDates(
  into: Writer,
  file: SizedQuery,
  folder: string,
): Promise<Map<string | null, WrittenFile>> {
  const column = into.layout.hasDateColumn === true ? ', WRITE_PARTITION_COLUMNS true' : '';
  const how = `PARTITION_BY (${PARTITION}), FILE_EXTENSION ${literal(UNFINISHED)}${column}`;
  const rows = await copy(into, file, folder, how);
  const files = new Map<string | null, WrittenFile>();
  const dateOf = (row: Row) => (row.partition_keys as Entries<string | null>)[0].value;
  for (const [date, parts] of groupBy(rows, dateOf)) {
    const written = await Promise.all(parts.map(writtenFile));
    files.set(date, written.length === 1 ? written[0] : await joinFiles(into, file, written));
  }
  return files;
}

/** One file of several: of very many dates DuckDB closes files before they are whole and begins new ones. */
async function joinFiles(into: Writer, { rows, table }: SizedQuery, parts: WrittenFile[]): Promise<WrittenFile> {
  const folder = dirname(parts[0].local);
  const query = `SELECT * FROM ${readFiles(parts.map(({ local }) => local))}`;
  const joined = await writeFile(into, { query, rows, ...(table && { table }) }, `${folder}.${UNFINISHED}`);
  await rm(folder, { recursive: true });
  return joined;
}

/** Runs the COPY; gives a row for each file. */
async function copy(into: Writer, file: SizedQuery, path: string, how: string): Promise<Row[]> {
  const { isLowOnMemory, layout } = into;
  const { query, rows, table = 'events' } = file;
  const fieldIds = layout.fieldIds === undefined ? [] : [layout.fieldIds(table, await describe(into, query))];
  const options = [
    `FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL ${ZSTD_LEVEL}`,
    `ROW_GROUP_SIZE ${isLowOnMemory ? LOW_MEMORY_ROWS : ROW_GROUP_ROWS}`,
    ...(rows > ROW_GROUP_ROWS ? [`DICTIONARY_SIZE_LIMIT ${DICTIONARY_VALUES}`] : []),
    `KV_METADATA {'dfinery.version': ${literal(VERSION)}}`,
    // Without filters: of a large object only some columns are copied, and DuckDB would ask the filter of another one.
    'WRITE_BLOOM_FILTER false',
    ...fieldIds,
    'RETURN_STATS',
    how,
  ];
  return into.rows(`COPY (${query}) TO ${literal(path)} (${options.join(', ')})`);
}

/** A column of a file: its name in double quotes, and of a list what its elements are called. */
const COLUMN = /^"((?:[^"]|"")*)"(\."element")?$/;

type Entries<V> = readonly { readonly key: string; readonly value: V }[];

async function writtenFile(row: Row): Promise<WrittenFile> {
  const statistics = new Map<string, ColumnStatistics>();
  for (const { key, value } of row.column_statistics as Entries<Entries<string>>) {
    const [, quoted = '', element] = COLUMN.exec(key) ?? [];
    const name = quoted.replaceAll('""', '"');
    const told = new Map(value.map((one) => [one.key, one.value]));
    const nulls = Number(told.get('null_count'));
    statistics.set(name, {
      isList: element !== undefined,
      bytes: Number(told.get('column_size_bytes')),
      values: Number(told.get('num_values')) - nulls,
      nulls,
      least: told.get('min') ?? null,
      greatest: told.get('max') ?? null,
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
