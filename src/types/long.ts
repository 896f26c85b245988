import { classify } from './classify.ts';
import { fitsWholly, NULL_TEXT } from './evidence.ts';
import type { TypeFace } from './face.ts';
import { copyBytes, writeNull } from './json-text.ts';
import { isNull } from './list-text.ts';
import { absentOr, matches, withoutNullText } from './sql.ts';

export const LONG_PATTERN = '0|-?[1-9][0-9]{0,18}';

/** A cell or list element as BIGINT, NULL when it is none. */
export const sqlLong = (expr: string) =>
  `CASE WHEN ${matches(expr, LONG_PATTERN)} THEN TRY_CAST(${expr} AS BIGINT) END`;

/** An integer of 64 bits, without leading zeros, `+` or `-0`. JSON keeps every digit, beyond 2^53 too. */
export const LONG_FACE: TypeFace = {
  type: 'long',
  accepts: (b, start, end) => start === end || fitsWholly(classify(b, start, end, undefined), 'long', false),
  writeJson(b, start, end, out, at) {
    return start === end || isNull(b, start, end) ? writeNull(out, at) : copyBytes(b, start, end, out, at);
  },
  duckdb: () => 'BIGINT',
  sql: sqlLong,
  sqlClean: (expr, evidence) => `CAST(${(evidence & NULL_TEXT) === 0 ? expr : withoutNullText(expr)} AS BIGINT)`,
  sqlFits: (expr) => absentOr(expr, sqlLong(expr)),
  native: (evidence) => (evidence & NULL_TEXT) === 0 && fitsWholly(evidence, 'long', false),
  sqlText: (expr) => `CAST(${expr} AS VARCHAR)`,
  jsonSchema: () => ({ type: ['integer', 'null'] }),
  arrow: () => ({ kind: 'int64' }),
};
