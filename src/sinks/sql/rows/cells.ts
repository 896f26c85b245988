import type { PlannedColumn } from '../../../table/plan.ts';
import { sqlWiden, TYPES } from '../../../types/index.ts';
import { NULL_TEXT, STRING } from '../../../types/type.ts';
import type { Zone } from '../../../types/zone.ts';
import { anyOf, jsonMember } from '../engine/quote.ts';

/** How the cells of one column of one file become values. */
export interface CellSql {
  readonly column: PlannedColumn;
  /** The reader's type for it. */
  readonly reader: string;
  /** The value in the column's own type; none when the table stores nothing of it. */
  readonly value: string | undefined;
  /** A member of `_rescued`, or NULL; none when every cell fits. */
  readonly rescue: { readonly condition: string; readonly member: string } | undefined;
}

/**
 * The SQL for a column read as `expr`. `wantsText`: something else needs the cells as they are written, so the reader
 * may not type them.
 */
export function cellSql(column: PlannedColumn, expr: string, zone: Zone | undefined, wantsText: boolean): CellSql {
  const { readAs, type, isClean, isRefused, batchEvidence: evidence } = column;
  if (isRefused) return { column, reader: 'VARCHAR', value: undefined, rescue: refused(column, expr) };
  if (readAs === null || type === null) return { column, reader: 'VARCHAR', value: undefined, rescue: undefined };
  const codec = TYPES[readAs];
  const asInstants = zone !== undefined;
  const isText = type === 'string' && column.before === 'string';
  const keepsNullText = isText && readAs !== 'string' && (evidence & NULL_TEXT) !== 0;
  if (isClean && !wantsText && !keepsNullText && codec.native(evidence, asInstants)) {
    return { column, reader: codec.duckdb(asInstants), value: sqlWiden(expr, readAs, type, zone), rescue: undefined };
  }
  const typed = isClean ? codec.sqlClean(expr, evidence, zone) : codec.sql(expr, zone);
  const condition = `NOT ${codec.sqlFits(expr, zone)}`;
  const wide = sqlWiden(typed, readAs, type, zone);
  return {
    column,
    reader: 'VARCHAR',
    value: keepsNullText ? `CASE WHEN ${expr} = 'null' THEN 'null' ELSE ${wide} END` : wide,
    rescue: isClean ? undefined : { condition, member: jsonMember(rescueKey(column), expr, condition) },
  };
}

/** `_rescued` of a row: one JSON object of all that did not fit, or NULL. */
export function rescuedSql(cells: readonly CellSql[]): string | undefined {
  const rescues = cells.flatMap((cell) => cell.rescue ?? []);
  if (rescues.length === 0) return undefined;
  const members = rescues.map((rescue) => rescue.member).join(', ');
  return `CASE WHEN ${anyOf(rescues.map((r) => r.condition))} THEN '{' || concat_ws(',', ${members}) || '}' END`;
}

/** Where a column's cells are found in `_rescued`: its source name, unless the header has that name twice. */
export function rescueKey(column: { source: string; occurrence: number; name: string }): string {
  return column.occurrence === 1 ? column.source : column.name;
}

/** Every cell of a column that the table does not take; `null` counts only where the column is text. */
function refused(column: PlannedColumn, expr: string): CellSql['rescue'] {
  const isText = (column.batchEvidence & STRING) !== 0;
  const condition = isText ? `${expr} IS NOT NULL` : `coalesce(${expr} <> 'null', false)`;
  return { condition, member: jsonMember(rescueKey(column), expr, condition) };
}
