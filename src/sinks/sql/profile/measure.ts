import { EVENT_NAME, EVENT_NAME_ALTERNATIVE, eventNameIndex } from '../../../schema/groups.ts';
import type { ColumnScan } from '../../../schema/scan.ts';
import { fitsWholly, TYPES } from '../../../types/index.ts';
import { literal } from '../../../types/sql.ts';
import type { ColumnType, Evidence } from '../../../types/type.ts';
import type { Zone } from '../../../types/zone.ts';
import { cell } from '../rows/read-csv.ts';

/** Most characters of a text that is shown. */
const LONGEST_TEXT = 200;
const EXAMPLES = 3;
/** Columns measured by one query: what bounds its plan and its aggregates. */
const BATCH = 500;

/** What the values of a column are. */
export interface Measured {
  /** None while every cell is absent. */
  readonly type: ColumnType | null;
  /** Cells with a value; the text `null` is one in text columns alone. */
  readonly filled: number;
  /** An estimate: measured up to a quarter off. */
  readonly distinct: number;
  /** Canonical text; none for lists. */
  readonly minimum: string | null;
  readonly maximum: string | null;
  /** Cells as they are written, the most frequent first. */
  readonly examples: readonly string[];
  /** Cells that do not fit the type. */
  readonly rescued: number;
}

/** A column to measure. */
export interface Wanted {
  readonly index: number;
  readonly type: ColumnType;
  readonly evidence: Evidence;
  readonly isClean: boolean;
  /** For the times in the column. */
  readonly zone: Zone | undefined;
}

/** Types by source name. */
export type PinnedTypes = ReadonlyMap<string, ColumnType> | undefined;

/** The columns that have a value. */
export function wantedColumns(columns: readonly ColumnScan[], pinned: PinnedTypes, zone: Zone | undefined): Wanted[] {
  const sources = columns.map((column) => column.source);
  return columns.flatMap((column, index) => {
    const type = pinnedType(sources, index, pinned) ?? column.type;
    if (type === undefined || column.filled === 0) return [];
    const isClean = fitsWholly(column.evidence, type, zone !== undefined);
    const { evidence, first, last } = column;
    const own = first === undefined || last === undefined ? zone : zone?.within(first, last);
    return [{ index, type, evidence, isClean, zone: own }];
  });
}

/** The event name has two names; of equal names the first is meant. */
function pinnedType(sources: readonly string[], index: number, pinned: PinnedTypes): ColumnType | undefined {
  if (pinned === undefined || sources.indexOf(sources[index]) !== index) return undefined;
  const names = eventNameIndex(sources) === index ? [EVENT_NAME, EVENT_NAME_ALTERNATIVE] : [sources[index]];
  return names.map((name) => pinned.get(name)).find((type) => type !== undefined);
}

export function* batchesOf(columns: readonly Wanted[]): Generator<readonly Wanted[]> {
  for (let from = 0; from < columns.length; from += BATCH) yield columns.slice(from, from + BATCH);
}

/**
 * One query over the file, without FILTER: each would copy the arguments of all aggregates. `answers` is a JSON list of `Measured`
 * in the order given.
 */
export function measureSql(columns: readonly Wanted[], from: string): string {
  const values = columns.map((column) => `${cell(column.index)}, ${valueSql(column)} AS ${value(column)}`);
  const answers = columns.map(answerSql);
  return `SELECT CAST(to_json([${answers.join(', ')}]) AS VARCHAR) AS answers FROM (SELECT ${values.join(', ')} FROM ${from})`;
}

const value = ({ index }: Wanted): string => `v${index}`;

function valueSql({ index, type, evidence, isClean, zone }: Wanted): string {
  const codec = TYPES[type];
  return isClean ? codec.sqlClean(cell(index), evidence, zone) : codec.sql(cell(index), zone);
}

function answerSql(column: Wanted): string {
  const { index, type, isClean, zone } = column;
  const text = cell(index);
  const typed = value(column);
  const codec = TYPES[type];
  const rescued = isClean ? '0' : `count(CASE WHEN NOT ${codec.sqlFits(text, zone)} THEN 1 END)`;
  const present =
    type === 'string' ? `left(${text}, ${LONGEST_TEXT})` : `left(nullif(${text}, 'null'), ${LONGEST_TEXT})`;
  const extreme = (name: 'min' | 'max') =>
    !codec.isOrdered ? 'NULL' : `left(${codec.sqlText(`${name}(${typed})`, zone)}, ${LONGEST_TEXT})`;
  const members = [
    `type: ${literal(type)}`,
    `filled: count(${typed}) + ${rescued}`,
    `distinct: least(approx_count_distinct(${typed}), count(${typed}))`,
    `minimum: ${extreme('min')}`,
    `maximum: ${extreme('max')}`,
    `examples: coalesce(approx_top_k(${present}, ${EXAMPLES}), [])`,
    `rescued: ${rescued}`,
  ];
  return `{${members.map((member) => member.replace(/^(\w+)/, "'$1'")).join(', ')}}`;
}
