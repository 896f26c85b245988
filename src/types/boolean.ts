import { codecOf, nativelyAll } from './codec.ts';
import { writeBytes } from './json-text.ts';

const TRUE = Buffer.from('true');
const FALSE = Buffer.from('false');
const LOWER_CASE = 32;

const sql = (expr: string) =>
  `CASE WHEN ${expr} IN ('TRUE', 'true') THEN true WHEN ${expr} IN ('FALSE', 'false') THEN false END`;
const sqlText = (expr: string) => `CASE WHEN ${expr} THEN 'TRUE' WHEN NOT ${expr} THEN 'FALSE' END`;

/** `TRUE`, `FALSE`, `true`, `false`. */
export const BOOLEAN = codecOf({
  type: 'boolean',
  duckdb: () => 'BOOLEAN',
  writeValue: (b, start, _end, out, at) => writeBytes((b[start] | LOWER_CASE) === TRUE[0] ? TRUE : FALSE, out, at),
  sql,
  sqlValue: sql,
  native: nativelyAll('boolean'),
  sqlText,
  widenings: { string: sqlText },
  keepsSpelling: false,
  isOrdered: true,
  isScale: false,
  jsonSchema: () => ({ type: ['boolean', 'null'] }),
  arrow: () => ({ kind: 'bool' }),
});
