// This folder: types of columns in SQL: NULLs, casts, and values that change their type.

import { sqlWiden } from '../../../types/index.ts';
import { literal } from '../../../types/sql.ts';
import type { ColumnType } from '../../../types/type.ts';
import type { Zone } from '../../../types/zone.ts';

/** -2^63 and 2^63, as doubles. */
const LONGS = ['CAST(-9223372036854775808 AS DOUBLE)', 'CAST(9223372036854775808 AS DOUBLE)'] as const;

/**
 * A typed expression as a wider type. Text is written so that it does not matter what the column was in between: a
 * double or datetime that a long or date could have been is written as those are, and a list that may have been one of
 * numbers as that (S21).
 */
export function widen(expr: string, from: ColumnType, to: ColumnType, zone: Zone | undefined): string {
  if (from === to) return expr;
  const plain = sqlWiden(expr, from, to, zone);
  if (from === 'double' && to === 'string') return asLong(expr, plain);
  if (from === 'datetime' && to === 'string') return `regexp_replace(${plain}, ' 00:00:00\\.000$', '')`;
  if (from === 'string[]' && to === 'string') return withNumbers(plain);
  if (from !== 'double[]') return plain;
  const text = withLongs(sqlWiden(expr, from, 'string', zone));
  return to === 'string' ? text : `from_json(${text}, '["VARCHAR"]')`;
}

function asLong(double: string, text: string): string {
  const isLong = `${double} >= ${LONGS[0]} AND ${double} < ${LONGS[1]} AND trunc(${double}) = ${double}`;
  return `CASE WHEN ${isLong} AND ${text} <> '-0.0' THEN CAST(CAST(${double} AS BIGINT) AS VARCHAR) ELSE ${text} END`;
}

/** `[1.0,2.5,0.0]` as `[1,2.5,0]`. Zeros twice: neighbours share the comma between them. */
function withLongs(list: string): string {
  const replaced = (text: string, pattern: string) => `regexp_replace(${text}, ${literal(pattern)}, '\\1\\2', 'g')`;
  const zeros = '([\\[,]0)\\.0([,\\]])';
  return replaced(replaced(replaced(list, '([1-9][0-9]*)\\.0([,\\]])'), zeros), zeros);
}

/** A number as a cell or DuckDB writes it. */
const NUMBER = '-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:[eE][+-]?[0-9]+)?';

/** `["1.5",null]` as `[1.5,null]`; a list with any other text was never one of numbers. */
function withNumbers(list: string): string {
  const element = `(?:"${NUMBER}"|null)`;
  const isNumbers = `regexp_full_match(${list}, ${literal(`\\[${element}(?:,${element})*\\]`)})`;
  const numbers = `regexp_replace(${list}, ${literal(`([\\[,])"(${NUMBER})"`)}, '\\1\\2', 'g')`;
  return `CASE WHEN ${isNumbers} THEN ${numbers} ELSE ${list} END`;
}
