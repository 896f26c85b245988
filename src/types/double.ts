import { codecOf } from './codec.ts';
import { DOUBLE, LONG } from './evidence.ts';
import { copyBytes } from './json-text.ts';
import { LONG_PATTERN } from './long.ts';
import { digitsOf } from './numbers.ts';
import { asText, castTo, matches } from './sql.ts';

const DOUBLE_PATTERN = '-?(0|[1-9][0-9]*)\\.[0-9]+|-?[0-9]\\.[0-9]+E[+-]?[0-9]+';
/** Plain texts up to here have at most 15 digits: always exact. */
const EXACT_LENGTH = 16;
/** Powers of ten from which DuckDB's text of a double has an exponent, and below which it does. */
const FIRST_LARGE = 16;
const LAST_PLAIN = -4;
/** -2^63 and 2^63. */
const LONGS = ['CAST(-9223372036854775808 AS DOUBLE)', 'CAST(9223372036854775808 AS DOUBLE)'] as const;

/** A cell or list element as DOUBLE, NULL when it is none; integers that a double holds exactly are. */
export function sqlDouble(expr: string): string {
  const value = `TRY_CAST(${expr} AS DOUBLE)`;
  const text = `CAST(${value} AS VARCHAR)`;
  const isShort = `length(${expr}) <= ${EXACT_LENGTH} AND NOT contains(${expr}, 'E')`;
  const roundTrips = `isfinite(${value}) AND ${sqlDigits(expr)} = ${sqlDigits(text)}`;
  const decimal = `CASE WHEN ${isShort} OR ${text} = ${expr} THEN ${value} WHEN ${roundTrips} THEN ${value} END`;
  const long = `TRY_CAST(${expr} AS BIGINT)`;
  const isExact = `CAST(CAST(${long} AS DOUBLE) AS HUGEINT) = CAST(${long} AS HUGEINT)`;
  const integer = `CASE WHEN length(${expr}) < ${EXACT_LENGTH} OR ${isExact} THEN CAST(${long} AS DOUBLE) END`;
  return `CASE WHEN ${matches(expr, DOUBLE_PATTERN)} THEN ${decimal} WHEN ${matches(expr, LONG_PATTERN)} THEN ${integer} END`;
}

/** The significant digits of a number's text. */
function sqlDigits(text: string): string {
  return `trim(replace(regexp_extract(${text}, '[0-9.]+'), '.', ''), '0')`;
}

/** The text that DuckDB gives a double, from the text of a cell that is one. */
export function canonicalDouble(text: string): string {
  const value = Number(text);
  const sign = text.startsWith('-') ? '-' : '';
  const digits = digitsOf(value);
  if (digits === '') return `${sign}0.0`;
  const power = Number(value.toExponential().split('e')[1]);
  if (power >= FIRST_LARGE || power < LAST_PLAIN) return sign + scientific(digits, power);
  if (power < 0) return `${sign}0.${'0'.repeat(-power - 1)}${digits}`;
  const padded = digits.padEnd(power + 1, '0');
  return `${sign}${padded.slice(0, power + 1)}.${padded.slice(power + 1) || '0'}`;
}

function scientific(digits: string, power: number): string {
  const fraction = digits.length > 1 ? `.${digits.slice(1)}` : '';
  const exponent = String(Math.abs(power)).padStart(2, '0');
  return `${digits[0]}${fraction}e${power < 0 ? '-' : '+'}${exponent}`;
}

/** The text of a double; an integral value within 64 bits is written as a long. */
function asLong(expr: string): string {
  const text = asText(expr);
  const isLong = `${expr} >= ${LONGS[0]} AND ${expr} < ${LONGS[1]} AND trunc(${expr}) = ${expr}`;
  return `CASE WHEN ${isLong} AND ${text} <> '-0.0' THEN CAST(CAST(${expr} AS BIGINT) AS VARCHAR) ELSE ${text} END`;
}

const cells = () => LONG | DOUBLE;

/**
 * A decimal (`1.50`, `1.0E7`) whose digits are those of the shortest text of its value, or an integer that a double
 * holds exactly. JSON gets the cell's own text.
 */
export const DOUBLE_CODEC = codecOf({
  type: 'double',
  cells,
  mixesForms: true,
  duckdb: () => 'DOUBLE',
  writeValue: copyBytes,
  plainJson: () => 'copy',
  sql: sqlDouble,
  sqlValue: castTo('DOUBLE'),
  nativeCells: cells,
  sqlText: asText,
  widenings: {},
  widenedText: asLong,
  keepsSpelling: false,
  range: 'table',
  jsonSchema: () => ({ type: ['number', 'null'] }),
  arrow: () => ({ kind: 'float64' }),
});
