import { LOWER_BIT, LOWER_E, UPPER_E } from '../../base/ascii.ts';
import type { ScalarCodec } from './codec.ts';
import { BOOL, type CellForms } from './forms.ts';
import { copyBytes } from './string.ts';

const TRUE = Buffer.from('true');
const FALSE = Buffer.from('false');

/** The first four bytes of the words as a number. */
const TRUE_UPPER = Buffer.from('TRUE').readInt32BE();
const TRUE_LOWER = TRUE.readInt32BE();
const FALS_UPPER = Buffer.from('FALS').readInt32BE();
const FALS_LOWER = FALSE.readInt32BE();

/** BOOL, or 0 for any other text. */
export function booleanForm(bytes: Uint8Array, start: number, end: number): CellForms {
  const length = end - start;
  if (length !== 4 && length !== 5) return 0;
  const word = (bytes[start] << 24) | (bytes[start + 1] << 16) | (bytes[start + 2] << 8) | bytes[start + 3];
  if (length === 4) return word === TRUE_UPPER || word === TRUE_LOWER ? BOOL : 0;
  const last = bytes[start + 4];
  return (word === FALS_UPPER && last === UPPER_E) || (word === FALS_LOWER && last === LOWER_E) ? BOOL : 0;
}

/** `TRUE`, `FALSE`, `true`, `false`. */
export const BOOLEAN_CODEC: ScalarCodec = {
  forms: BOOL,
  castForms: BOOL,
  duckdb: 'BOOLEAN',
  jsonSchema: { type: ['boolean', 'null'] },
  sql: (expr) => `CASE WHEN ${expr} IN ('TRUE', 'true') THEN true WHEN ${expr} IN ('FALSE', 'false') THEN false END`,
  textSql: (expr) => `CASE WHEN ${expr} THEN 'TRUE' WHEN NOT ${expr} THEN 'FALSE' END`,
  writeJson(bytes, start, _end, out, at) {
    const word = (bytes[start] | LOWER_BIT) === TRUE[0] ? TRUE : FALSE;
    return copyBytes(word, 0, word.length, out, at);
  },
};
