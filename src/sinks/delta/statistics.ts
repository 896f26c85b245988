import { readFiles } from '../files/parquet-file.ts';
import type { Engine, Row } from '../sql/engine/engine.ts';
import { identifier, pathLiteral } from '../sql/engine/quote.ts';
import type { Field } from './schema.ts';

/** Texts of JSON: a long keeps every digit. */
interface Range {
  min: string | undefined;
  max: string | undefined;
}

type Order = (a: string, b: string) => boolean;
const byLong: Order = (a, b) => BigInt(a) < BigInt(b);
const byText: Order = (a, b) => a < b;

/** How the values of a type that has statistics are compared and written; a type that is not here has none (S44). */
const RANGED: Readonly<Record<string, { readonly isLess: Order; write(text: string): string | undefined }>> = {
  long: { isLess: byLong, write: (text) => text },
  timestamp: { isLess: byText, write: (text) => instant(text, 'Z') },
  timestamp_ntz: { isLess: byText, write: (text) => instant(text, '') },
};

const INSTANT = /^(\d{4}-\d{2}-\d{2}) (\d{2}:\d{2}:\d{2})(?:\.(\d{1,6}))?(?:\+00)?$/;

/** With milliseconds, which is what readers take; none for a value between two of them, which would be cut. */
function instant(text: string, zone: string): string | undefined {
  const match = INSTANT.exec(text);
  if (match === null) return undefined;
  const [, date, time, fraction = ''] = match;
  const digits = fraction.padEnd(6, '0');
  return digits.endsWith('000') ? `"${date}T${time}.${digits.slice(0, 3)}${zone}"` : undefined;
}

/**
 * The `stats` of local Parquet files, by path: rows and nulls of every column; least and greatest values of the columns in
 * `ranged` alone, since a log keeps them for good (S44).
 */
export async function statisticsOf(
  engine: Engine,
  paths: readonly string[],
  fields: readonly Field[],
  ranged: ReadonlySet<string>,
): Promise<Map<string, string>> {
  if (paths.length === 0) return new Map();
  const list = paths.map(pathLiteral).join(', ');
  const counts = await engine.rows(`SELECT file_name AS path, num_rows AS n FROM parquet_file_metadata([${list}])`);
  const chunks = await engine.rows(
    `SELECT file_name AS path, path_in_schema AS name, stats_min_value AS lo, stats_max_value AS hi,
    stats_null_count AS nulls, num_values AS n FROM parquet_metadata([${list}])`,
  );
  const byPath = grouped(chunks, (chunk) => String(chunk.path));
  const found = new Map<string, string>();
  for (const { path, n } of counts) {
    const file = String(path);
    const lists = await listNulls(engine, file, fields, byPath.get(file) ?? []);
    found.set(file, statsText(Number(n), { chunks: byPath.get(file) ?? [], fields, lists, ranged }));
  }
  return found;
}

function grouped(rows: readonly Row[], keyOf: (row: Row) => string): Map<string, Row[]> {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const key = keyOf(row);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [row]);
    else group.push(row);
  }
  return groups;
}

interface Described {
  readonly chunks: readonly Row[];
  readonly fields: readonly Field[];
  /** Rows without a list, by column. */
  readonly lists: ReadonlyMap<string, number>;
  readonly ranged: ReadonlySet<string>;
}

function statsText(rows: number, { chunks, fields, lists, ranged }: Described): string {
  const byName = grouped(chunks, (chunk) => String(chunk.name).split(', ')[0]);
  const [lows, highs, nulls]: [string[], string[], string[]] = [[], [], []];
  for (const { name, type } of fields) {
    const own = byName.get(name);
    if (own === undefined) continue;
    const key = JSON.stringify(name);
    const absent = lists.get(name) ?? nullsOf(own);
    if (absent !== undefined) nulls.push(`${key}:${absent}`);
    if (!ranged.has(name)) continue;
    const { min, max } = rangeOf(own, type);
    if (min !== undefined) lows.push(`${key}:${min}`);
    if (max !== undefined) highs.push(`${key}:${max}`);
  }
  const of = (members: string[]) => `{${members.join(',')}}`;
  return `{"numRecords":${rows},"minValues":${of(lows)},"maxValues":${of(highs)},"nullCount":${of(nulls)}}`;
}

function nullsOf(chunks: readonly Row[]): number | undefined {
  const counts = chunks.map(({ nulls }) => (nulls === null ? undefined : Number(nulls)));
  return counts.some((count) => count === undefined) ? undefined : counts.reduce<number>((a, b) => a + (b ?? 0), 0);
}

/** Over all row groups; none unless each group with a value tells its own. */
function rangeOf(chunks: readonly Row[], type: Field['type']): Range {
  const ranged = typeof type === 'string' ? RANGED[type] : undefined;
  const range: Range = { min: undefined, max: undefined };
  if (ranged === undefined) return range;
  for (const { lo, hi, nulls, n } of chunks) {
    if (lo === null || hi === null) {
      if (nulls !== null && Number(nulls) === Number(n)) continue;
      return { min: undefined, max: undefined };
    }
    const [low, high] = [String(lo), String(hi)];
    if (range.min === undefined || ranged.isLess(low, range.min)) range.min = low;
    if (range.max === undefined || ranged.isLess(range.max, high)) range.max = high;
  }
  return {
    min: range.min === undefined ? undefined : ranged.write(range.min),
    max: range.max === undefined ? undefined : ranged.write(range.max),
  };
}

/** Of lists the file itself counts elements: the rows without a list are counted here. */
async function listNulls(
  engine: Engine,
  path: string,
  fields: readonly Field[],
  chunks: readonly Row[],
): Promise<Map<string, number>> {
  const there = new Set(chunks.map((chunk) => String(chunk.name).split(', ')[0]));
  const lists = fields.filter(({ name, type }) => typeof type !== 'string' && there.has(name));
  if (lists.length === 0) return new Map();
  const counts = lists.map(({ name }, i) => `count(*) - count(${identifier(name)}) AS c${i}`);
  const row = await engine.row(`SELECT ${counts.join(', ')} FROM ${readFiles([path])}`);
  return new Map(lists.map(({ name }, i) => [name, Number(row[`c${i}`])]));
}
