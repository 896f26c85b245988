import { LOWER_BIT, standsAt } from '../../base/ascii.ts';
import { copyBytes, type ScalarCodec } from './codec.ts';
import { BOOL, type CellForms } from './forms.ts';

const TRUE = Buffer.from('true');
const FALSE = Buffer.from('false');
const WORDS = [TRUE, FALSE, Buffer.from('TRUE'), Buffer.from('FALSE')];

/** BOOL, or 0 for any other text. */
export const booleanForm = (bytes: Uint8Array, start: number, end: number): CellForms =>
  WORDS.some((word) => word.length === end - start && standsAt(bytes, start, word)) ? BOOL : 0;

/** `TRUE`, `FALSE`, `true`, `false`. */
export const BOOLEAN_CODEC: ScalarCodec = {
  forms: BOOL,
  duckdbType: 'BOOLEAN',
  jsonSchema: { type: ['boolean', 'null'] },
  checkedSql: (expr) =>
    `CASE WHEN ${expr} IN ('TRUE', 'true') THEN true WHEN ${expr} IN ('FALSE', 'false') THEN false END`,
  textSql: (expr) => `CASE WHEN ${expr} THEN 'TRUE' WHEN NOT ${expr} THEN 'FALSE' END`,
  writeJson(bytes, start, _end, out, at) {
    const word = (bytes[start] | LOWER_BIT) === TRUE[0] ? TRUE : FALSE;
    return copyBytes(word, 0, word.length, out, at);
  },
};
