import type { NewFile } from '../files/log.ts';
import { readFiles } from '../files/parquet-file.ts';
import type { Engine, Row } from '../sql/engine/engine.ts';
import { identifier, pathLiteral } from '../sql/engine/quote.ts';

/** What the catalog says of one column of a file. Of a list the numbers are those of its elements. */
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

/**
 * The statistics of new files, by local path: rows and nulls of every column; least and greatest values of the columns in
 * `ranged` alone, since a catalog keeps them as long as the file (S44).
 */
export async function statisticsOf(
  engine: Engine,
  files: readonly NewFile[],
  ranged: ReadonlySet<string>,
): Promise<Map<string, FileStatistics>> {
  const found = new Map<string, FileStatistics>();
  for (const { local } of files) {
    const path = pathLiteral(local);
    const { footer } = await engine.row(`SELECT footer_size AS footer FROM parquet_file_metadata([${path}])`);
    const chunks = await engine.rows(
      `SELECT path_in_schema AS name, type, num_values AS n, stats_null_count AS nulls, total_compressed_size AS bytes,
      stats_min_value AS lo, stats_max_value AS hi FROM parquet_metadata([${path}])`,
    );
    const byName = new Map<string, Row[]>();
    for (const chunk of chunks) {
      const name = String(chunk.name);
      byName.set(name, [...(byName.get(name) ?? []), chunk]);
    }
    const lists = [...byName.keys()].filter((name) => name.endsWith(ELEMENT));
    const columns = new Map<string, ColumnStatistics>();
    for (const [name, own] of byName) columns.set(columnOf(name), summed(own, ranged.has(name)));
    const nulls = new Map([...columns].map(([name, { nulls: absent }]) => [name, absent]));
    if (lists.length > 0) {
      const counts = lists.map((name, i) => `count(*) - count(${identifier(columnOf(name))}) AS c${i}`);
      const row = await engine.row(`SELECT ${counts.join(', ')} FROM ${readFiles([local])}`);
      for (const [i, name] of lists.entries()) nulls.set(columnOf(name), Number(row[`c${i}`]));
    }
    found.set(local, { footerBytes: Number(footer), columns, nulls });
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
  const extreme = (texts: readonly string[], precedes: (a: string, b: string) => boolean) =>
    texts.reduce((best, text) => (precedes(text, best) ? text : best));
  return {
    bytes: sum((chunk) => chunk.bytes),
    values: sum((chunk) => chunk.n) - nulls,
    nulls,
    least: isKnown
      ? extreme(
          filled.map(({ lo }) => String(lo)),
          isLess,
        )
      : null,
    greatest: isKnown
      ? extreme(
          filled.map(({ hi }) => String(hi)),
          (a, b) => isLess(b, a),
        )
      : null,
  };
}

const INTEGER = /^-?\d+$/;
/** Times of four-digit years are in the order of their texts, also those that differ in fractions. */
const lessText = (a: string, b: string): boolean => a < b;
const lessNumber = (a: string, b: string): boolean =>
  INTEGER.test(a) && INTEGER.test(b) ? BigInt(a) < BigInt(b) : lessText(a, b);
