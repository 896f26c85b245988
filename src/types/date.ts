import { classify } from './classify.ts';
import { fitsWholly, NULL_TEXT } from './evidence.ts';
import type { TypeFace } from './face.ts';
import { writeNull, writeString } from './json-text.ts';
import { isNull } from './list-text.ts';
import { absentOr, matches, withoutNullText } from './sql.ts';

/** Year 0000 is none; `TRY_CAST` refuses the other days that do not exist. */
const sql = (expr: string) =>
  `CASE WHEN ${matches(expr, '[0-9]{4}-[0-9]{2}-[0-9]{2}')} AND NOT starts_with(${expr}, '0000') ` +
  `THEN TRY_CAST(${expr} AS DATE) END`;

/** `yyyy-MM-dd`, a day of the years 1 to 9999. */
export const DATE_FACE: TypeFace = {
  type: 'date',
  accepts: (b, start, end) => start === end || fitsWholly(classify(b, start, end, undefined), 'date', false),
  writeJson(b, start, end, out, at) {
    return start === end || isNull(b, start, end) ? writeNull(out, at) : writeString(b, start, end, out, at);
  },
  duckdb: () => 'DATE',
  sql,
  sqlClean: (expr, evidence) => `CAST(${(evidence & NULL_TEXT) === 0 ? expr : withoutNullText(expr)} AS DATE)`,
  sqlFits: (expr) => absentOr(expr, sql(expr)),
  native: (evidence) => (evidence & NULL_TEXT) === 0 && fitsWholly(evidence, 'date', false),
  sqlText: (expr) => `CAST(${expr} AS VARCHAR)`,
  jsonSchema: () => ({ type: ['string', 'null'], format: 'date' }),
  arrow: () => ({ kind: 'date32' }),
};
