import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { type Day, isDay } from '../../base/days.ts';
import { identifier, literal, pathLiteral } from '../../base/sql.ts';
import { VERSION } from '../../base/version.ts';
import type { DuckDbType } from '../../cells/types/codec.ts';
import { COLUMN_TYPES, type ColumnType, codecOf, widenSql } from '../../cells/types/column-types.ts';
import { type Zone, zoneOf } from '../../cells/types/zone.ts';
import { castToColumnSql, duckDbTypeOf } from '../../engine/column-sql.ts';
import type { Engine, ResultRow } from '../../engine/session/engine.ts';
import { type TableState, tableToJson } from '../../table/place-state.ts';
import type { StoredReceipt } from '../../table/receipts.ts';
import { EVENTS, typedColumns } from '../../table/tables.ts';
import type { ColumnStatistics, ColumnTypes, NewFile } from './place-version.ts';

// A Parquet file of a day: its columns, and how it is written, read, and written anew.

/** Number of rows of a row group, which a filter skips or a reader reads as a whole. */
const ROW_GROUP_ROWS = 61_440;
/** Number of rows of a row group if memory is short: it stays in memory until it is complete. */
const LOW_MEMORY_ROWS = 10_240;
/** Compression level: on exports smaller and faster than the default, 3 (measured). */
const ZSTD_LEVEL = 1;
/** Different values at which a large file gives up a dictionary, which takes time: ids never repeat. */
const MAX_DICTIONARY_VALUES = 4_096;
const READ_BYTES = 1 << 20;
/** The keys of a file's metadata: its receipt as JSON, and the instant at which it was written (ISO, UTC). */
const RECEIPT_KEY = 'dfinery.receipt';
const WRITTEN_KEY = 'dfinery.written_at';
/** The key of the metadata of a snapshot with the state of its table, as JSON. */
const TABLE_KEY = 'dfinery.table';

export const PARTITION_COLUMN = 'event_date';
/** What decides the columns of a file. */
export type TableColumns = Pick<TableState, 'columns' | 'timezone'>;

/** The folder of a day, from the root of the storage. */
export const dayFolder = (day: Day): string => `${EVENTS.name}/${PARTITION_COLUMN}=${day}`;

/** The day that has this folder; undefined for any other path. */
export function dayOfFolder(path: string): Day | undefined {
  const day = path.slice(path.indexOf('=') + 1);
  return isDay(day) && path === dayFolder(day) ? day : undefined;
}

/** All columns that a file can have but its partition, in their order. `loadedAt`: the type of `_loaded_at`. */
export function parquetColumns({ columns, timezone }: TableColumns, loadedAt: DuckDbType = 'TIMESTAMP'): ColumnTypes {
  const zone = zoneOf(timezone);
  return new Map([
    ['_key', 'VARCHAR'],
    ['_rescued', 'VARCHAR'],
    ['_loaded_at', loadedAt],
    ...typedColumns(columns).map(({ name, type }) => [name, codecOf(type, zone).duckdb] as const),
  ]);
}

/** The columns of a Parquet file, as they are in it. */
export async function describeFile(engine: Engine, path: string): Promise<ColumnTypes> {
  const rows = await engine.rows(`DESCRIBE SELECT * FROM ${readParquet([path])}`);
  return new Map(
    rows.map(({ column_name: name, column_type: type }) => {
      return [String(name), (type === 'JSON' ? 'VARCHAR' : duckDbTypeOf(type)) as DuckDbType];
    }),
  );
}

/** What is to be written into a file. */
export interface FileContent {
  readonly query: string;
  /** The receipt of its rows, which has their number. */
  readonly receipt: StoredReceipt;
  /** Of a snapshot: the state of its table then. */
  readonly snapshot?: TableState | undefined;
}

/** Writes a query into a Parquet file that does not exist yet. */
export async function writeParquet(
  engine: Engine,
  { query, receipt, snapshot }: FileContent,
  path: string,
): Promise<Omit<NewFile, 'table' | 'day' | 'path'>> {
  const writtenAt = new Date(engine.clock.now()).toISOString();
  const metadata = {
    'dfinery.version': VERSION,
    [RECEIPT_KEY]: JSON.stringify(receipt),
    [WRITTEN_KEY]: writtenAt,
    ...(snapshot !== undefined && { [TABLE_KEY]: JSON.stringify(tableToJson(snapshot)) }),
  };
  const entries = Object.entries(metadata).map(([key, value]) => `${literal(key)}: ${literal(value)}`);
  const options = [
    `FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL ${ZSTD_LEVEL}`,
    `ROW_GROUP_SIZE ${engine.isLowOnMemory ? LOW_MEMORY_ROWS : ROW_GROUP_ROWS}`,
    ...(receipt.rows_stored > ROW_GROUP_ROWS ? [`DICTIONARY_SIZE_LIMIT ${MAX_DICTIONARY_VALUES}`] : []),
    `KV_METADATA {${entries.join(', ')}}`,
    'RETURN_STATS, USE_TMP_FILE false',
  ];
  const [row] = await engine.rows(`COPY (${query}) TO ${literal(path)} (${options.join(', ')})`);
  const { statistics, lists } = statisticsOf(row);
  for (const [name, nulls] of await countAbsent(engine, path, lists)) {
    statistics.set(name, { nulls, least: null, greatest: null });
  }
  const [count, bytes] = [row.count, row.file_size_bytes].map(Number);
  const columns = await describeFile(engine, path);
  return { local: path, rows: count, bytes, statistics, writtenAt, columns, sha256: await fingerprint(path) };
}

/** A column in DuckDB's statistics: its name in double quotes, and for a list the name of its elements. */
const COLUMN = /^"((?:[^"]|"")*)"(\."element")?$/;

type Entries<V> = readonly { readonly key: string; readonly value: V }[];

function statisticsOf(row: ResultRow) {
  const statistics = new Map<string, ColumnStatistics>();
  const lists: string[] = [];
  for (const { key, value } of row.column_statistics as Entries<Entries<string>>) {
    const [, quoted = '', element] = COLUMN.exec(key) ?? [];
    const name = quoted.replaceAll('""', '"');
    const values = new Map(value.map((entry) => [entry.key, entry.value]));
    if (element !== undefined) lists.push(name);
    statistics.set(name, {
      nulls: Number(values.get('null_count')),
      least: values.get('min') ?? null,
      greatest: values.get('max') ?? null,
    });
  }
  return { statistics, lists };
}

/** Counts rows without a list: of a list, DuckDB's statistics are those of its elements. */
async function countAbsent(engine: Engine, path: string, lists: readonly string[]): Promise<[string, number][]> {
  if (lists.length === 0) return [];
  const counts = lists.map((name, i) => `count(*) - count(${identifier(name)}) AS n${i}`);
  const row = await engine.row(`SELECT ${counts.join(', ')} FROM ${readParquet([path])}`);
  return lists.map((name, i) => [name, Number(row[`n${i}`])]);
}

/**
 * The SELECT of the rows of a file, with all columns of a table in their types. It widens values of an earlier type.
 * A column that the file lacks is NULL. `inFile`: the columns in the file.
 */
export function selectConformed(path: string, inFile: ColumnTypes, { columns, timezone }: TableColumns): string {
  const zone = zoneOf(timezone);
  const ownColumns = parquetColumns({ columns: [], timezone }).keys();
  const stored = new Map([...inFile].map(([name, type]) => [name, columnTypeOf(type, zone)]));
  const values = typedColumns(columns).map(({ name, type }) => {
    const before = stored.get(name);
    const value = before === undefined ? 'NULL' : widenSql(identifier(name), before, type, zone);
    return `${castToColumnSql(value, type, zone)} AS ${identifier(name)}`;
  });
  return `SELECT ${[...ownColumns, ...values].join(', ')} FROM ${readParquet([path])}`;
}

/** The type of a column by its type in a file. */
const columnTypeOf = (inFile: DuckDbType, zone: Zone | undefined): ColumnType | undefined =>
  COLUMN_TYPES.find((type) => codecOf(type, zone).duckdb === inFile);

/** What a file says of itself, as texts; undefined what it lacks. Throws for what is no Parquet file. */
export async function readMetadata(engine: Engine, path: string) {
  const rows = await engine.rows(
    `SELECT decode(key) AS key, decode(value) AS text FROM parquet_kv_metadata(${pathLiteral(path)})`,
  );
  const texts = new Map(rows.map(({ key, text }) => [key, String(text)]));
  return { receipt: texts.get(RECEIPT_KEY), writtenAt: texts.get(WRITTEN_KEY), table: texts.get(TABLE_KEY) };
}

/** The rows of a Parquet file, by its footer. */
export async function rowsOfFile(engine: Engine, path: string): Promise<number> {
  return Number((await engine.row(`SELECT num_rows AS n FROM parquet_file_metadata(${pathLiteral(path)})`)).n);
}

/** The SHA-256 of a file, in hex. Throws the system's error. */
export async function fingerprint(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path, { highWaterMark: READ_BYTES })) hash.update(chunk);
  return hash.digest('hex');
}

/** `read_parquet` of files; a column that some of them lack is NULL there. */
export const readParquet = (paths: readonly string[], options = 'hive_partitioning = false'): string =>
  `read_parquet([${paths.map(pathLiteral).join(', ')}], union_by_name = ${paths.length > 1}, ${options})`;
