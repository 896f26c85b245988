import { canonicalDouble, sqlDouble } from './double.ts';
import { LIST_DOUBLE, LIST_LONG, LIST_LONG_WIDE } from './evidence.ts';
import type { TypeFace } from './face.ts';
import { copyBytes, writeQuoted } from './json-text.ts';
import { listFace } from './list.ts';
import { isStringList, sqlElements } from './list-sql.ts';
import { sqlLong } from './long.ts';
import { latin1 } from './numbers.ts';
import { STRING_FACE } from './string.ts';

const QUOTE = 34;
const DOT = 46;
const LOWER_N = 110;
const NUMBERS = LIST_LONG | LIST_LONG_WIDE | LIST_DOUBLE;

/** Strings and nulls as they are; a number as its canonical text. */
function writeElement(b: Uint8Array, start: number, end: number, out: Uint8Array, at: number): number {
  if (b[start] === QUOTE || b[start] === LOWER_N) return copyBytes(b, start, end, out, at);
  const isDouble = b.subarray(start, end).includes(DOT);
  const text = latin1(b, start, end);
  return writeQuoted(isDouble ? canonicalDouble(text) : text, out, at);
}

/** The canonical text of a number in a list: its own for a long, DuckDB's for a double. */
const sqlNumberText = (text: string) =>
  `coalesce(CAST(${sqlLong(text)} AS VARCHAR), CAST(${sqlDouble(text)} AS VARCHAR))`;

const strings = (expr: string) => `from_json(${expr}, '["VARCHAR"]')`;

const sql = (expr: string) =>
  `CASE WHEN ${isStringList(expr)} THEN ${strings(expr)} ELSE ${sqlElements(expr, sqlNumberText)} END`;

/** A JSON list of strings and nulls, or of numbers that become text. */
export const STRING_LIST: TypeFace = {
  ...listFace('string[]', STRING_FACE, sql, writeElement),
  sqlClean: (expr, evidence) => ((evidence & NUMBERS) === 0 ? strings(expr) : sql(expr)),
};
