import { DOT, HYPHEN, NINE, PLUS, UPPER_E, ZERO } from '../../base/ascii.ts';
import { castSql, matchesSql, varcharSql } from '../../base/sql.ts';
import { copyBytes, type ScalarCodec } from './codec.ts';
import { type CellForms, DOUBLE, LONG, LONG_WIDE } from './forms.ts';

/** A number of at most so many digits comes back from a double as it was. */
const EXACT_DIGITS = 15;
const INT64_DIGITS = 19;

/** LONG, LONG_WIDE or DOUBLE, or 0 for any other text: `+5`, `007`, `-0`, `.5`, `1e5`, beyond 64 bits, lost digits. */
export function numberForm(bytes: Uint8Array, start: number, end: number): CellForms {
  const isNegative = bytes[start] === HYPHEN;
  const digitsStart = isNegative ? start + 1 : start;
  const wholeEnd = digitsEnd(bytes, digitsStart, end);
  const digits = wholeEnd - digitsStart;
  if (digits === 0 || (bytes[digitsStart] === ZERO && digits > 1)) return 0;
  if (wholeEnd < end) return bytes[wholeEnd] === DOT ? doubleForm(bytes, digitsStart, wholeEnd, end) : 0;
  if (bytes[digitsStart] === ZERO) return isNegative ? 0 : LONG;
  if (digits <= EXACT_DIGITS) return LONG;
  if (digits > INT64_DIGITS) return 0;
  const value = BigInt(asciiText(bytes, start, end));
  if (BigInt.asIntN(64, value) !== value) return 0;
  return BigInt(Number(value)) === value ? LONG : LONG_WIDE;
}

function digitsEnd(bytes: Uint8Array, start: number, end: number): number {
  let i = start;
  while (i < end && bytes[i] >= ZERO && bytes[i] <= NINE) i++;
  return i;
}

/**
 * DOUBLE for a number without a sign whose text from `dot` on is `.digits`. An exponent may follow a single leading
 * digit. 0 if its digits are not those of the shortest text of its value.
 */
function doubleForm(bytes: Uint8Array, digitsStart: number, dot: number, end: number): CellForms {
  const fractionEnd = digitsEnd(bytes, dot + 1, end);
  if (fractionEnd === dot + 1) return 0;
  const hasExponent = fractionEnd < end;
  if (!hasExponent && end - digitsStart - 1 <= EXACT_DIGITS) return DOUBLE;
  if (hasExponent && (dot - digitsStart !== 1 || !isExponent(bytes, fractionEnd, end))) return 0;
  const value = Number(asciiText(bytes, digitsStart, end));
  const writtenDigits = trimZeros(asciiText(bytes, digitsStart, fractionEnd).replace('.', ''));
  return Number.isFinite(value) && writtenDigits === digitsOf(value) ? DOUBLE : 0;
}

function isExponent(bytes: Uint8Array, start: number, end: number): boolean {
  const digitsStart = start + (bytes[start + 1] === HYPHEN || bytes[start + 1] === PLUS ? 2 : 1);
  return bytes[start] === UPPER_E && digitsStart < end && digitsEnd(bytes, digitsStart, end) === end;
}

/** The significant digits of the shortest text of a positive double; empty for zero. */
function digitsOf(value: number): string {
  const [mantissa] = String(value).split('e');
  return trimZeros(mantissa.replace('.', ''));
}

/** The digits without zeros at both ends; no pattern, which would take the square of their number. */
function trimZeros(digits: string): string {
  let [from, to] = [0, digits.length];
  while (from < to && digits[from] === '0') from++;
  while (to > from && digits[to - 1] === '0') to--;
  return digits.slice(from, to);
}

/** Decodes bytes that are known to be ASCII. */
function asciiText(bytes: Uint8Array, start: number, end: number): string {
  let text = '';
  for (let i = start; i < end; i++) text += String.fromCharCode(bytes[i]);
  return text;
}

const LONG_PATTERN = '0|-?[1-9][0-9]{0,18}';

/** An integer of 64 bits, without leading zeros, `+` or `-0`. JSON keeps every digit, beyond 2^53 too. */
export const LONG_CODEC: ScalarCodec = {
  forms: LONG | LONG_WIDE,
  duckdbType: 'BIGINT',
  jsonSchema: { type: ['integer', 'null'] },
  checkedSql: (expr) => `CASE WHEN ${matchesSql(expr, LONG_PATTERN)} THEN TRY_CAST(${expr} AS BIGINT) END`,
  textSql: varcharSql,
  writeJson: copyBytes,
};

const DOUBLE_PATTERN = '-?(0|[1-9][0-9]*)\\.[0-9]+|-?[0-9]\\.[0-9]+E[+-]?[0-9]+';
/** -2^63 and 2^63. */
const LONG_BOUNDS = ['CAST(-9223372036854775808 AS DOUBLE)', 'CAST(9223372036854775808 AS DOUBLE)'] as const;

/** SQL of a text as DOUBLE; NULL for any other text. */
const doubleSql = (expr: string): string =>
  `CASE WHEN ${matchesSql(expr, DOUBLE_PATTERN)} THEN ${dottedDoubleSql(expr)} ` +
  `WHEN ${matchesSql(expr, LONG_PATTERN)} THEN ${exactIntegerSql(expr)} END`;

/** SQL of the DOUBLE of a text with a dot; NULL if its digits are not those of the shortest text of its value. */
function dottedDoubleSql(expr: string): string {
  const value = `TRY_CAST(${expr} AS DOUBLE)`;
  const text = varcharSql(value);
  // One of its characters is the dot.
  const isShort = `length(${expr}) <= ${EXACT_DIGITS + 1} AND NOT contains(${expr}, 'E')`;
  const roundTrips = `isfinite(${value}) AND ${digitsSql(expr)} = ${digitsSql(text)}`;
  return `CASE WHEN ${isShort} OR ${text} = ${expr} OR ${roundTrips} THEN ${value} END`;
}

/** SQL of the DOUBLE of an integer's text; NULL if a double does not hold it exactly. */
function exactIntegerSql(expr: string): string {
  const long = `TRY_CAST(${expr} AS BIGINT)`;
  const isExact = `CAST(CAST(${long} AS DOUBLE) AS HUGEINT) = CAST(${long} AS HUGEINT)`;
  return `CASE WHEN length(${expr}) <= ${EXACT_DIGITS} OR ${isExact} THEN CAST(${long} AS DOUBLE) END`;
}

/** SQL of the significant digits of a number's text. */
const digitsSql = (text: string): string => `trim(replace(regexp_extract(${text}, '[0-9.]+'), '.', ''), '0')`;

/** SQL of the text of a double; an integral value within 64 bits is written as a long. */
function doubleTextSql(expr: string): string {
  const text = varcharSql(expr);
  const isLong = `${expr} >= ${LONG_BOUNDS[0]} AND ${expr} < ${LONG_BOUNDS[1]} AND trunc(${expr}) = ${expr}`;
  return `CASE WHEN ${isLong} AND ${text} <> '-0.0' THEN ${varcharSql(castSql(expr, 'BIGINT'))} ELSE ${text} END`;
}

/** A number with a dot and the digits of its shortest text, or an exact integer. JSON gets the cell's own text. */
export const DOUBLE_CODEC: ScalarCodec = {
  forms: LONG | DOUBLE,
  duckdbType: 'DOUBLE',
  jsonSchema: { type: ['number', 'null'] },
  checkedSql: doubleSql,
  textSql: doubleTextSql,
  writeJson: copyBytes,
};
