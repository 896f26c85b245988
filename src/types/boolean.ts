import { classify } from './classify.ts';
import { fitsWholly, NULL_TEXT } from './evidence.ts';
import type { TypeFace } from './face.ts';
import { writeNull } from './json-text.ts';
import { isNull } from './list-text.ts';
import { absentOr } from './sql.ts';

const TRUE = [0x74, 0x72, 0x75, 0x65];
const FALSE = [0x66, 0x61, 0x6c, 0x73, 0x65];
const LOWER_CASE = 32;

const sql = (expr: string) =>
  `CASE WHEN ${expr} IN ('TRUE', 'true') THEN true WHEN ${expr} IN ('FALSE', 'false') THEN false END`;

/** `TRUE`, `FALSE`, `true`, `false`. */
export const BOOLEAN: TypeFace = {
  type: 'boolean',
  accepts: (b, start, end) => start === end || fitsWholly(classify(b, start, end, undefined), 'boolean', false),
  writeJson(b, start, end, out, at) {
    if (start === end || isNull(b, start, end)) return writeNull(out, at);
    const word = (b[start] | LOWER_CASE) === TRUE[0] ? TRUE : FALSE;
    for (let i = 0; i < word.length; i++) out[at + i] = word[i];
    return at + word.length;
  },
  duckdb: () => 'BOOLEAN',
  sql,
  sqlClean: sql,
  sqlFits: (expr) => absentOr(expr, sql(expr)),
  native: (evidence) => (evidence & NULL_TEXT) === 0 && fitsWholly(evidence, 'boolean', false),
  sqlText: (expr) => `CASE WHEN ${expr} THEN 'TRUE' WHEN NOT ${expr} THEN 'FALSE' END`,
  jsonSchema: () => ({ type: ['boolean', 'null'] }),
  arrow: () => ({ kind: 'bool' }),
};
