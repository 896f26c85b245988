import { DOT, HYPHEN, NINE, UPPER_E, ZERO } from '../../base/ascii.ts';
import { DOUBLE, type Evidence, LONG, LONG_WIDE } from './evidence.ts';
import { copyBytes } from './json-text.ts';
import { asText, castTo, matches } from './sql.ts';
import { codecOf } from './type.ts';

/** Every integer of up to this many digits is exact as a double. */
const EXACT_DIGITS = 15;
const INT64_DIGITS = 19;
/** A number with a dot and without an exponent cannot underflow if its text has at most this length. */
const SAFE_LENGTH = 300;
/** The shortest text of a double never has more significant digits than this. */
const MAX_DIGITS = 17;
const LONG_MAX = Uint8Array.from('9223372036854775807', (c) => c.charCodeAt(0));

/** LONG, LONG_WIDE or DOUBLE, or 0 for any other text: `+5`, `007`, `-0`, `.5`, `1e5`, beyond 64 bits, lost digits. */
export function numberClass(bytes: Uint8Array, start: number, end: number): Evidence {
  const negative = bytes[start] === HYPHEN;
  const first = negative ? start + 1 : start;
  let i = first;
  while (i < end && bytes[i] >= ZERO && bytes[i] <= NINE) i++;
  const digits = i - first;
  if (digits === 0 || (bytes[first] === ZERO && digits > 1)) return 0;
  if (i < end) return bytes[i] === DOT ? doubleClass(bytes, start, first, i, end) : 0;
  if (bytes[first] === ZERO) return negative ? 0 : LONG;
  return digits <= EXACT_DIGITS ? LONG : wideClass(bytes, first, digits, negative);
}

function wideClass(bytes: Uint8Array, first: number, digits: number, negative: boolean): Evidence {
  if (digits > INT64_DIGITS) return 0;
  if (digits === INT64_DIGITS && !withinInt64(bytes, first, negative)) return 0;
  let high = 0;
  let low = 0;
  const split = first + digits - 9;
  for (let i = first; i < split; i++) high = high * 10 + bytes[i] - ZERO;
  for (let i = split; i < first + digits; i++) low = low * 10 + bytes[i] - ZERO;
  return isExact(high, low) ? LONG : LONG_WIDE;
}

function withinInt64(bytes: Uint8Array, first: number, negative: boolean): boolean {
  for (let i = 0; i < INT64_DIGITS; i++) {
    const difference = bytes[first + i] - LONG_MAX[i];
    if (difference !== 0) return difference < 0 || (negative && difference === 1 && i === INT64_DIGITS - 1);
  }
  return true;
}

/** The distance between two doubles from 2^63 on, which have 53 bits; below, their distance is a divisor of it. */
const LARGEST_STEP = 2 ** (63 - 52);

/**
 * True if high × 10^9 + low, at most 2^63, is a multiple of the distance between two doubles of its size. Its remainder
 * by `LARGEST_STEP` decides, which is exact, as the number itself may not be.
 */
function isExact(high: number, low: number): boolean {
  const remainder = ((high % LARGEST_STEP) * (1_000_000_000 % LARGEST_STEP) + low) % LARGEST_STEP;
  let step = 1;
  for (let limit = 2 ** 53; limit <= high * 1_000_000_000 + low; limit *= 2) step *= 2;
  return remainder % step === 0;
}

/**
 * The class of a number whose text from `dot` on is `.digits`, perhaps with an exponent after a single leading digit.
 */
function doubleClass(bytes: Uint8Array, start: number, first: number, dot: number, end: number): Evidence {
  let i = dot + 1;
  while (i < end && bytes[i] >= ZERO && bytes[i] <= NINE) i++;
  if (i === dot + 1) return 0;
  if (i === end) {
    const digits = end - first - 1;
    return digits <= EXACT_DIGITS || (end - first <= SAFE_LENGTH && significant(bytes, first, end) <= EXACT_DIGITS)
      ? DOUBLE
      : shortestClass(bytes, start, first, end, end);
  }
  if (bytes[i] !== UPPER_E || dot - first !== 1) return 0;
  return isExponent(bytes, i + 1, end) ? shortestClass(bytes, start, first, i, end) : 0;
}

function isExponent(bytes: Uint8Array, start: number, end: number): boolean {
  let i = bytes[start] === HYPHEN || bytes[start] === 0x2b ? start + 1 : start;
  if (i === end) return false;
  for (; i < end; i++) if (bytes[i] < ZERO || bytes[i] > NINE) return false;
  return true;
}

/** The number of digits in [first, end) without the leading and the trailing zeros. */
function significant(bytes: Uint8Array, first: number, end: number): number {
  let from = first;
  let to = end;
  while (from < to && (bytes[from] === ZERO || bytes[from] === DOT)) from++;
  while (to > from && (bytes[to - 1] === ZERO || bytes[to - 1] === DOT)) to--;
  let dots = 0;
  for (let i = from; i < to; i++) if (bytes[i] === DOT) dots = 1;
  return to - from - dots;
}

/** Compares the significant digits of the text with those of the shortest text of its value. */
function shortestClass(bytes: Uint8Array, start: number, first: number, mantissaEnd: number, end: number): Evidence {
  if (significant(bytes, first, mantissaEnd) > MAX_DIGITS) return 0;
  const value = Number(latin1(bytes, start, end));
  if (!Number.isFinite(value)) return 0;
  const written = trimZeros(latin1(bytes, first, mantissaEnd).replace('.', ''));
  return written === digitsOf(value) ? DOUBLE : 0;
}

/** The significant digits of the shortest text of a double; none for zero. */
function digitsOf(value: number): string {
  const [mantissa] = String(Math.abs(value)).split('e');
  return trimZeros(mantissa.replace('.', ''));
}

function trimZeros(digits: string): string {
  return digits.replace(/^0+/, '').replace(/0+$/, '');
}

/** Decodes bytes that are known to be ASCII. */
export function latin1(bytes: Uint8Array, start: number, end: number): string {
  let text = '';
  for (let i = start; i < end; i++) text += String.fromCharCode(bytes[i]);
  return text;
}

const LONG_PATTERN = '0|-?[1-9][0-9]{0,18}';

/** SQL of a cell or list element as BIGINT; NULL if it is none. */
export const sqlLong = (expr: string) =>
  `CASE WHEN ${matches(expr, LONG_PATTERN)} THEN TRY_CAST(${expr} AS BIGINT) END`;

const longCells = () => LONG | LONG_WIDE;

/** An integer of 64 bits, without leading zeros, `+` or `-0`. JSON keeps every digit, beyond 2^53 too. */
export const LONG_CODEC = codecOf({
  type: 'long',
  cells: longCells,
  mixesSpellings: true,
  duckdb: () => 'BIGINT',
  writeValue: copyBytes,
  isJson: true,
  sql: sqlLong,
  sqlValue: castTo('BIGINT'),
  nativeCells: longCells,
  sqlText: asText,
  widenings: { double: castTo('DOUBLE') },
  widenedText: asText,
  keepsSpelling: true,
  range: 'table',
  jsonSchema: () => ({ type: ['integer', 'null'] }),
});

const DOUBLE_PATTERN = '-?(0|[1-9][0-9]*)\\.[0-9]+|-?[0-9]\\.[0-9]+E[+-]?[0-9]+';
/** A plain text of up to this length has at most 15 digits, so that it is always exact. */
const EXACT_LENGTH = 16;
/** Powers of ten from which DuckDB's text of a double has an exponent, and below which it does. */
const FIRST_LARGE = 16;
const LAST_PLAIN = -4;
/** -2^63 and 2^63. */
const LONGS = ['CAST(-9223372036854775808 AS DOUBLE)', 'CAST(9223372036854775808 AS DOUBLE)'] as const;

/** SQL of a cell or list element as DOUBLE; NULL if it is none. Integers that a double holds exactly are doubles. */
export function sqlDouble(expr: string): string {
  const value = `TRY_CAST(${expr} AS DOUBLE)`;
  const text = asText(value);
  const isShort = `length(${expr}) <= ${EXACT_LENGTH} AND NOT contains(${expr}, 'E')`;
  const roundTrips = `isfinite(${value}) AND ${sqlDigits(expr)} = ${sqlDigits(text)}`;
  const dotted = `CASE WHEN ${isShort} OR ${text} = ${expr} THEN ${value} WHEN ${roundTrips} THEN ${value} END`;
  const long = `TRY_CAST(${expr} AS BIGINT)`;
  const isExact = `CAST(CAST(${long} AS DOUBLE) AS HUGEINT) = CAST(${long} AS HUGEINT)`;
  const integer = `CASE WHEN length(${expr}) < ${EXACT_LENGTH} OR ${isExact} THEN CAST(${long} AS DOUBLE) END`;
  const isLong = matches(expr, LONG_PATTERN);
  return `CASE WHEN ${matches(expr, DOUBLE_PATTERN)} THEN ${dotted} WHEN ${isLong} THEN ${integer} END`;
}

/** SQL of the significant digits of a number's text. */
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

/** SQL of the text of a double; an integral value within 64 bits is written as a long. */
function asLong(expr: string): string {
  const text = asText(expr);
  const isLong = `${expr} >= ${LONGS[0]} AND ${expr} < ${LONGS[1]} AND trunc(${expr}) = ${expr}`;
  return `CASE WHEN ${isLong} AND ${text} <> '-0.0' THEN ${asText(castTo('BIGINT')(expr))} ELSE ${text} END`;
}

const doubleCells = () => LONG | DOUBLE;

/** A number with a dot and the digits of its shortest text, or an exact integer. JSON gets the cell's own text. */
export const DOUBLE_CODEC = codecOf({
  type: 'double',
  cells: doubleCells,
  mixesSpellings: true,
  duckdb: () => 'DOUBLE',
  writeValue: copyBytes,
  isJson: true,
  sql: sqlDouble,
  sqlValue: castTo('DOUBLE'),
  nativeCells: doubleCells,
  sqlText: asText,
  widenings: {},
  widenedText: asLong,
  keepsSpelling: false,
  range: 'table',
  jsonSchema: () => ({ type: ['number', 'null'] }),
});
