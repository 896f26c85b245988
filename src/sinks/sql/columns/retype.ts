// This folder: types of columns in SQL: NULLs, casts, and values that change their type.

import { isWidening, type Retyped } from '../../../table/plan.ts';
import { sqlWiden, TYPES } from '../../../types/index.ts';
import type { Zone } from '../../../types/zone.ts';
import { anyOf, identifier, jsonMember } from '../engine/quote.ts';
import { rescueKey } from '../rows/cells.ts';

/** The value of a changed column, from what the table has. */
export function valueAfter(column: Retyped, zone: Zone | undefined): string {
  const name = identifier(column.name);
  if (isWidening(column, zone !== undefined)) return sqlWiden(name, column.before, column.type, zone);
  return TYPES[column.type].sql(textBefore(column, zone), zone);
}

/** What is stored, as text that any type it could have had before takes: `5`, not `5.0`; a midnight as its date. */
function textBefore(column: Retyped, zone: Zone | undefined): string {
  return sqlWiden(identifier(column.name), column.before, 'string', zone);
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
