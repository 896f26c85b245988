// This folder: what `parquet` and `delta` share: a table `events` of one Parquet file a day. A format adds how a place is
// opened, and a log: which files are live, and how a change becomes visible.

import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { VERSION } from '../../base/version.ts';
import { identifier, literal, pathLiteral } from '../../cells/types/sql.ts';
import type { Engine, ResultRow } from '../../engine/session/engine.ts';
import type { StoredProfiles } from '../../table/place-state.ts';
import type { StoredReceipt } from '../../table/receipts.ts';

/** Number of rows of a row group, which a filter skips or a reader reads as a whole. */
const ROW_GROUP_ROWS = 61_440;
/** Number of rows of a row group if memory is short: a row group is held in memory until it is complete. */
const LOW_MEMORY_ROWS = 10_240;
/** Compression level: on exports smaller and faster than the default, 3 (measured). */
const ZSTD_LEVEL = 1;
/** Different values at which a large file gives up a dictionary, which takes time: ids never repeat. */
const DICTIONARY_VALUES = 4_096;
const READ_BYTES = 1 << 20;
/** The key of the metadata of the file of profiles with what the place holds of them, as JSON. */
export const PROFILES_KEY = 'dfinery.profiles';
/** The key of a file's metadata with its receipt, as JSON. */
export const RECEIPT_KEY = 'dfinery.receipt';
/** The key of a file's metadata with the instant at which it was written (ISO, UTC). */
export const WRITTEN_KEY = 'dfinery.written_at';

/** DuckDB's statistics of a column of a file that it wrote. */
interface ColumnFacts {
  /** Rows without a value. */
  readonly nulls: number;
  /** The least value as DuckDB writes it (`2026-01-01 00:00:00+00` of an instant); null if it is not known. */
  readonly least: string | null;
  readonly greatest: string | null;
}

export interface WrittenFile {
  readonly local: string;
  readonly rows: number;
  readonly bytes: number;
  /** SHA-256 of the whole file (hex). */
  readonly sha256: string;
  /** Instant (ISO, UTC). */
  readonly writtenAt: string;
  readonly columns: ReadonlyMap<string, ColumnFacts>;
}

export interface ParquetToWrite {
  readonly query: string;
  /** Number of its rows. */
  readonly rows: number;
  readonly receipt: StoredReceipt;
  /** Of the file of profiles: what the place then holds of them. */
  readonly profiles?: StoredProfiles | undefined;
}

/** Writes a query into a Parquet file that does not exist yet. */
export async function writeParquet(
  engine: Engine,
  { query, rows, receipt, profiles }: ParquetToWrite,
  path: string,
): Promise<WrittenFile> {
  const writtenAt = new Date(engine.options.clock.now()).toISOString();
  const metadata = {
    'dfinery.version': VERSION,
    [RECEIPT_KEY]: JSON.stringify(receipt),
    [WRITTEN_KEY]: writtenAt,
    ...(profiles !== undefined && { [PROFILES_KEY]: JSON.stringify(profiles) }),
  };
  const entries = Object.entries(metadata).map(([key, value]) => `${literal(key)}: ${literal(value)}`);
  const options = [
    `FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL ${ZSTD_LEVEL}`,
    `ROW_GROUP_SIZE ${engine.isLowOnMemory ? LOW_MEMORY_ROWS : ROW_GROUP_ROWS}`,
    ...(rows > ROW_GROUP_ROWS ? [`DICTIONARY_SIZE_LIMIT ${DICTIONARY_VALUES}`] : []),
    `KV_METADATA {${entries.join(', ')}}`,
    'RETURN_STATS, USE_TMP_FILE false',
  ];
  const [row] = await engine.rows(`COPY (${query}) TO ${literal(path)} (${options.join(', ')})`);
  const { columns, lists } = statisticsOf(row);
  for (const [name, nulls] of await countAbsent(engine, path, lists)) {
    columns.set(name, { nulls, least: null, greatest: null });
  }
  const [count, bytes] = [row.count, row.file_size_bytes].map(Number);
  return { local: path, rows: count, bytes, columns, writtenAt, sha256: await fingerprint(path) };
}

/** A column in DuckDB's statistics: its name in double quotes, and for a list the name of its elements. */
const COLUMN = /^"((?:[^"]|"")*)"(\."element")?$/;

type Entries<V> = readonly { readonly key: string; readonly value: V }[];

function statisticsOf(row: ResultRow) {
  const columns = new Map<string, ColumnFacts>();
  const lists: string[] = [];
  for (const { key, value } of row.column_statistics as Entries<Entries<string>>) {
    const [, quoted = '', element] = COLUMN.exec(key) ?? [];
    const name = quoted.replaceAll('""', '"');
    const facts = new Map(value.map((one) => [one.key, one.value]));
    if (element !== undefined) lists.push(name);
    columns.set(name, {
      nulls: Number(facts.get('null_count')),
      least: facts.get('min') ?? null,
      greatest: facts.get('max') ?? null,
    });
  }
  return { columns, lists };
}

/** Counts rows without a list: of a list, DuckDB's statistics are those of its elements. */
async function countAbsent(engine: Engine, path: string, lists: readonly string[]): Promise<[string, number][]> {
  if (lists.length === 0) return [];
  const counts = lists.map((name, i) => `count(*) - count(${identifier(name)}) AS n${i}`);
  const row = await engine.row(`SELECT ${counts.join(', ')} FROM ${readParquet([path])}`);
  return lists.map((name, i) => [name, Number(row[`n${i}`])]);
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
