import { codecOf } from './codec.ts';
import { LONG, LONG_WIDE } from './evidence.ts';
import { copyBytes } from './json-text.ts';
import { asText, castTo, matches } from './sql.ts';

export const LONG_PATTERN = '0|-?[1-9][0-9]{0,18}';

/** A cell or list element as BIGINT, NULL when it is none. */
export const sqlLong = (expr: string) =>
  `CASE WHEN ${matches(expr, LONG_PATTERN)} THEN TRY_CAST(${expr} AS BIGINT) END`;

const cells = () => LONG | LONG_WIDE;

/** An integer of 64 bits, without leading zeros, `+` or `-0`. JSON keeps every digit, beyond 2^53 too. */
export const LONG_CODEC = codecOf({
  type: 'long',
  cells,
  mixesForms: true,
  duckdb: () => 'BIGINT',
  writeValue: copyBytes,
  plainJson: () => 'copy',
  sql: sqlLong,
  sqlValue: castTo('BIGINT'),
  nativeCells: cells,
  sqlText: asText,
  widenings: { double: castTo('DOUBLE') },
  widenedText: asText,
  keepsSpelling: true,
  range: 'table',
  jsonSchema: () => ({ type: ['integer', 'null'] }),
  arrow: () => ({ kind: 'int64' }),
});
