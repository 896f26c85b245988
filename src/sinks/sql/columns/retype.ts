import { fitsWholly } from '../../../types/evidence.ts';
import { TYPES, widenings } from '../../../types/index.ts';
import type { ColumnType } from '../../../types/type.ts';
import type { Zone } from '../../../types/zone.ts';
import { anyOf, identifier, jsonMember } from '../engine/quote.ts';
import { rescueKey } from '../rows/cells.ts';
import type { PlannedColumn } from './plan.ts';
import { widen } from './widen.ts';

/** A stored column that changes its type. */
export type Retyped = PlannedColumn & { readonly before: ColumnType; readonly type: ColumnType };

export function isRetyped(column: PlannedColumn): column is Retyped {
  return column.before !== null && column.type !== null && column.type !== column.before;
}

/** True when no value can be lost. What a fixed type narrows may not fit. */
export function isWidening({ before, type, storedEvidence }: Retyped, zoned: boolean): boolean {
  return widenings(before).includes(type) && (type === 'string' || fitsWholly(storedEvidence, type, zoned));
}

/** The value of a changed column, from what the table has. */
export function valueAfter(column: Retyped, zone: Zone | undefined): string {
  const name = identifier(column.name);
  if (isWidening(column, zone !== undefined)) return widen(name, column.before, column.type, zone);
  return TYPES[column.type].sql(textBefore(column, zone), zone);
}

/** What is stored, as text that any type it could have had before takes: `5`, not `5.0`; a midnight as its date. */
function textBefore(column: Retyped, zone: Zone | undefined): string {
  return widen(identifier(column.name), column.before, 'string', zone);
}

/** `_rescued` with what the narrowed columns no longer hold. */
export function rescuedAfter(changed: readonly Retyped[], zone: Zone | undefined): string {
  const narrowed = changed.filter((column) => !isWidening(column, zone !== undefined));
  if (narrowed.length === 0) return '_rescued';
  const losses = narrowed.map((column) => {
    const text = textBefore(column, zone);
    const condition = `NOT ${TYPES[column.type].sqlFits(text, zone)}`;
    return { condition, member: jsonMember(rescueKey(column), text, condition) };
  });
  const kept = `nullif(substr(CAST(_rescued AS VARCHAR), 2, length(CAST(_rescued AS VARCHAR)) - 2), '')`;
  const members = losses.map((loss) => loss.member).join(', ');
  return `CASE WHEN ${anyOf(losses.map((l) => l.condition))} THEN '{' || concat_ws(',', ${kept}, ${members}) || '}' ELSE _rescued END`;
}
