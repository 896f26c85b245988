import { groupBy } from '../../base/group.ts';
import type { TableState } from '../../table/state.ts';
import type { Engine, Row } from '../sql/engine/engine.ts';
import { identifier, pathLiteral } from '../sql/engine/quote.ts';
import type { NewFile } from './log.ts';
import { readFiles } from './parquet-file.ts';
import { PARTITION } from './stored-files.ts';

/** What a log says of one column of a file. Of a list the numbers are those of its elements. */
interface ColumnStatistics {
  readonly bytes: number;
  readonly values: number;
  readonly nulls: number;
  readonly least: string | null;
  readonly greatest: string | null;
}

export interface FileStatistics {
  readonly footerBytes: number;
  /** By column. */
  readonly columns: ReadonlyMap<string, ColumnStatistics>;
  /** Rows without a value by column: of a list, rows without a list. */
  readonly nulls: ReadonlyMap<string, number>;
}

const ELEMENT = ', list, element';

/** The columns whose least and greatest values a log may hold: the date, system datetimes and our own numbers (S44). */
export function rangedColumns({ columns }: TableState): ReadonlySet<string> {
  const times = columns.filter(({ group, type }) => group === 'system' && type === 'datetime');
  return new Set([PARTITION, '_dfinery_window', 'item_position', ...times.map(({ name }) => name)]);
}

/**
 * The statistics of new files, by local path: rows and nulls of every column; least and greatest values of the columns in
 * `ranged` alone, since a log keeps them as long as the file, or for good (S44).
 */
export async function statisticsOf(
  engine: Engine,
  files: readonly NewFile[],
  ranged: ReadonlySet<string>,
): Promise<Map<string, FileStatistics>> {
  const found = new Map<string, FileStatistics>();
  if (files.length === 0) return found;
  const list = files.map(({ local }) => pathLiteral(local)).join(', ');
  const chunks = await engine.rows(
    `SELECT file_name AS path, path_in_schema AS name, type, num_values AS n, stats_null_count AS nulls,
    total_compressed_size AS bytes, stats_min_value AS lo, stats_max_value AS hi FROM parquet_metadata([${list}])`,
  );
  const byPath = groupBy(chunks, ({ path }) => String(path));
  const footers = await engine.rows(
    `SELECT file_name AS path, footer_size AS bytes FROM parquet_file_metadata([${list}])`,
  );
  for (const { path, bytes } of footers) {
    const byName = groupBy(byPath.get(String(path)) ?? [], ({ name }) => String(name));
    const columns = new Map<string, ColumnStatistics>();
    for (const [name, own] of byName) columns.set(columnOf(name), summed(own, ranged.has(name)));
    const nulls = new Map([...columns].map(([name, { nulls: absent }]) => [name, absent]));
    const lists = [...byName.keys()].filter((name) => name.endsWith(ELEMENT)).map(columnOf);
    if (lists.length > 0) {
      const counts = lists.map((name, i) => `count(*) - count(${identifier(name)}) AS c${i}`);
      const row = await engine.row(`SELECT ${counts.join(', ')} FROM ${readFiles([String(path)])}`);
      for (const [i, name] of lists.entries()) nulls.set(name, Number(row[`c${i}`]));
    }
    found.set(String(path), { footerBytes: Number(bytes), columns, nulls });
  }
  return found;
}

const columnOf = (path: string): string => (path.endsWith(ELEMENT) ? path.slice(0, -ELEMENT.length) : path);

/** Over all row groups; no range unless each group with a value tells its own. */
function summed(chunks: readonly Row[], isRanged: boolean): ColumnStatistics {
  const sum = (of: (chunk: Row) => unknown) => chunks.reduce((total, chunk) => total + Number(of(chunk)), 0);
  const nulls = sum((chunk) => chunk.nulls);
  const filled = chunks.filter((chunk) => Number(chunk.nulls) < Number(chunk.n));
  const isKnown = isRanged && filled.length > 0 && filled.every(({ lo, hi }) => lo !== null && hi !== null);
  const isLess = chunks[0]?.type === 'INT64' ? lessNumber : lessText;
  const isGreater = (a: string, b: string) => isLess(b, a);
  const extreme = (of: (chunk: Row) => unknown, precedes: (a: string, b: string) => boolean) =>
    isKnown
      ? filled.map((chunk) => String(of(chunk))).reduce((best, text) => (precedes(text, best) ? text : best))
      : null;
  return {
    bytes: sum((chunk) => chunk.bytes),
    values: sum((chunk) => chunk.n) - nulls,
    nulls,
    least: extreme(({ lo }) => lo, isLess),
    greatest: extreme(({ hi }) => hi, isGreater),
  };
}

const INTEGER = /^-?\d+$/;
/** Times of four-digit years are in the order of their texts, also those that differ in fractions. */
const lessText = (a: string, b: string): boolean => a < b;
const lessNumber = (a: string, b: string): boolean =>
  INTEGER.test(a) && INTEGER.test(b) ? BigInt(a) < BigInt(b) : lessText(a, b);
