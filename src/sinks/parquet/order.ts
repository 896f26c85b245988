import { EVENT_NAME, SERVER_DATETIME } from '../../schema/groups.ts';
import { literal } from '../../types/sql.ts';
import type { Typed } from '../duckdb/alter.ts';
import { identifier } from '../duckdb/sql.ts';

/** Rows of a row group: what a filter can skip or must read as one. */
export const ROW_GROUP_ROWS = 61_440;
/** The column that rows are gathered by on their way into a file. */
export const BUCKET = '_dfinery_bucket';

const MOST_BUCKETS = 16;
/** From so many names on the list of them may not be whole. */
const MOST_NAMES = 1_000;
const FIRST_BUCKET = 100;

/**
 * The bucket of a row, as SQL: buckets are runs of event names in alphabetical order, and no more of them than row
 * groups, so that statistics tell which row groups have a name. Measured: sorting a million rows by name and time makes
 * an export half as slow again and holds all of them in memory; buckets cost a tenth and no more memory than before.
 * A filter on time skips by date: each has a file of its own. None where there is nothing to skip, or no name is known.
 */
export function bucketSql(
  columns: readonly Typed[],
  rows: number,
  names: readonly string[] | undefined,
): string | undefined {
  const count = Math.min(MOST_BUCKETS, names?.length ?? 0, Math.floor(rows / ROW_GROUP_ROWS));
  const name = columnOf(columns, EVENT_NAME);
  const number = name === undefined ? undefined : numberOf(name, names);
  if (count < 2 || number === undefined) return undefined;
  return `${FIRST_BUCKET} + ${number} * ${count} // ${names?.length ?? 1}`;
}

/** The order of rows in a file that is encoded anew at leisure: event names, then time. Needs memory, or spills. */
export function sortedBy(columns: readonly Typed[], rows: number): string {
  const keys = [EVENT_NAME, SERVER_DATETIME].flatMap((source) => columnOf(columns, source) ?? []);
  return rows <= ROW_GROUP_ROWS || keys.length === 0 ? '' : `ORDER BY ${keys.join(', ')}`;
}

function columnOf(columns: readonly Typed[], source: string): string | undefined {
  const column = columns.find((c) => c.source === source && c.occurrence === 1);
  return column && identifier(column.name);
}

/** The place of a name among all, in the order that a file's statistics have. */
function numberOf(name: string, names: readonly string[] = []): string | undefined {
  if (names.length === 0 || names.length >= MOST_NAMES || names.some((text) => text.includes('\0'))) return undefined;
  const sorted = [...names].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  const type = `ENUM(${sorted.map(literal).join(', ')})`;
  return `coalesce(CAST(enum_code(TRY_CAST(CAST(${name} AS VARCHAR) AS ${type})) AS BIGINT), 0)`;
}

/** The event names of a window, when each of its files was looked at. */
export function namesOf(files: readonly { readonly eventNames?: readonly string[] }[]): string[] | undefined {
  const lists = files.map((file) => file.eventNames);
  if (lists.some((list) => list === undefined || list.length >= MOST_NAMES)) return undefined;
  return [...new Set(lists.flatMap((list) => list ?? []))];
}
