import { columnKey } from '../../cells/columns/groups.ts';
import {
  DATE,
  DATETIME_BEYOND,
  DATETIME_DASH,
  DATETIME_DOT,
  DATETIME_OFFSET,
  type Evidence,
  NULL_TEXT,
} from '../../cells/types/evidence.ts';
import { TYPES } from '../../cells/types/index.ts';
import { withoutNullText } from '../../cells/types/sql.ts';
import { PARTITION_SOURCES } from '../../engine/row-dates.ts';
import { cell, type WindowLoad } from '../../engine/rows/file-query.ts';
import type { FileColumn } from '../../table/incoming.ts';

/** The keys of the columns whose date a row is filed under: the first of them that has one. */
const DATED = PARTITION_SOURCES.map((source) => columnKey(source, 1));

const ISO_DATE_FIRST = DATE | DATETIME_DASH | DATETIME_OFFSET | DATETIME_BEYOND | NULL_TEXT;
const TIMES = ISO_DATE_FIRST | DATETIME_DOT;
const OFFSET = `'(Z|[+-][0-9]{2}:?[0-9]{2})$'`;

/**
 * SQL of the date as written in `df_server_datetime`, else in `df_correction_datetime`, for a file of a window: a
 * DATE, or NULL; and the columns that it needs as text.
 */
export function partitionSql(load: WindowLoad, index: number): { sql: string; texts: ReadonlySet<string> } {
  const texts = new Set<string>();
  const dates: string[] = [];
  for (const column of datedColumns(load, index)) {
    const { evidence } = load.window.files[index].columns[column.index];
    if (isReadAsWallTime(load, column, evidence)) dates.push(`CAST(${cell(column.index)} AS DATE)`);
    else {
      texts.add(column.key);
      dates.push(writtenDate(cell(column.index), evidence));
    }
    if (isComplete(load, index, column, evidence)) break;
  }
  if (dates.length === 0) return { sql: 'CAST(NULL AS DATE)', texts };
  return { sql: dates.length === 1 ? dates[0] : `coalesce(${dates.join(', ')})`, texts };
}

/** The date that all rows of a window have, if the scan proves that there is only one. */
export function onlyDate(load: WindowLoad): string | undefined {
  const dates = new Set(load.window.files.map((_, index) => onlyDateOf(load, index)));
  const [date] = dates;
  return dates.size === 1 ? date : undefined;
}

function onlyDateOf(load: WindowLoad, index: number): string | undefined {
  const [column] = datedColumns(load, index);
  if (column?.key !== DATED[0]) return undefined;
  const { evidence, first, last } = load.window.files[index].columns[column.index];
  // A cell with a UTC offset shows another date than the range, which is in the configured zone.
  if ((evidence & (DATETIME_OFFSET | DATETIME_BEYOND)) !== 0 || first === undefined || last === undefined)
    return undefined;
  const [from, to] = [first.slice(0, 10), last.slice(0, 10)];
  return from === to && isComplete(load, index, column, evidence) ? from : undefined;
}

function datedColumns(load: WindowLoad, index: number): FileColumn[] {
  const columns = load.incoming.files[index];
  return DATED.flatMap((key) => columns.find((column) => column.key === key && column.filled > 0) ?? []);
}

/** True if every row of the file has a date in this column. */
function isComplete(load: WindowLoad, index: number, column: FileColumn, evidence: Evidence): boolean {
  return column.filled === load.window.files[index].rows && (evidence & ~(TIMES & ~NULL_TEXT)) === 0;
}

/** True if DuckDB's CSV reader gives the cells of the column as wall-clock times, not as texts. */
function isReadAsWallTime(load: WindowLoad, column: FileColumn, evidence: Evidence): boolean {
  const stored = load.planned.get(column.key);
  if (load.zone !== undefined || stored === undefined || stored.type === null || stored.isRefused) return false;
  if (stored.readAs !== 'datetime' || !stored.isClean) return false;
  return (evidence & ~TIMES) === 0 && TYPES.datetime.native(stored.batchEvidence, false);
}

/** SQL of the date in a text that may be anything. */
function writtenDate(expr: string, evidence: Evidence): string {
  const text = (evidence & NULL_TEXT) === 0 ? expr : withoutNullText(expr);
  const isoDate = `CAST(left(${text}, 10) AS DATE)`;
  if ((evidence & ~ISO_DATE_FIRST) === 0) return isoDate;
  if ((evidence & ~TIMES) === 0) {
    return `CASE WHEN contains(${text}, '-') THEN ${isoDate} ELSE CAST(strptime(${text}, '%Y.%m.%d %H:%M') AS DATE) END`;
  }
  const wall = TYPES.datetime.sql(expr);
  const withoutOffset = TYPES.datetime.sql(`regexp_replace(${expr}, ${OFFSET}, '')`);
  return `CAST(coalesce(${wall}, ${withoutOffset}) AS DATE)`;
}
