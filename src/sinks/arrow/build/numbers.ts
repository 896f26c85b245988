import { latin1 } from '../../../types/numbers.ts';

const ZERO = 48;
const MINUS = 45;
const DOT = 46;
const UPPER_E = 69;
/** Every integer of so many digits is exact as a double. */
const EXACT_DIGITS = 15;
const LOW_DIGITS = 9;
const BILLION = 1_000_000_000;
const MILLION = 1_000_000;
/** Until then microseconds are exact as a double. */
const EXACT_SECONDS = 2 ** 33;
const HALF_WORD = 2 ** 16;
const WORD = 2 ** 32;
/** Powers of ten that are exact as a double. */
const POWERS = Float64Array.from({ length: 23 }, (_, i) => Number(`1e${i}`));

/** Writes an integer of 64 bits, [start, end) of its text, as value `row` of `words`. */
export function writeLong(b: Uint8Array, start: number, end: number, words: Int32Array, row: number): void {
  const isNegative = b[start] === MINUS;
  const first = isNegative ? start + 1 : start;
  const split = end - LOW_DIGITS;
  if (end - first <= EXACT_DIGITS) writeWords(0, digits(b, first, end), isNegative, words, row);
  else writeProduct(digits(b, first, split), BILLION, digits(b, split, end), isNegative, words, row);
}

/** Writes `seconds` and `micros` together, in microseconds. */
export function writeMicros(seconds: number, micros: number, words: Int32Array, row: number): void {
  if (seconds >= 0 && seconds < EXACT_SECONDS) writeWords(0, seconds * MILLION + micros, false, words, row);
  // Stryker disable next-line ConditionalExpression,EqualityOperator: both products of a number are the same
  else if (seconds >= 0) writeProduct(seconds, MILLION, micros, false, words, row);
  else writeProduct(-seconds - 1, MILLION, MILLION - micros, true, words, row);
}

function digits(b: Uint8Array, start: number, end: number): number {
  let value = 0;
  for (let i = start; i < end; i++) value = value * 10 + b[i] - ZERO;
  return value;
}

/** Writes `value * factor + rest`, or its negative; all whole, `value` and `factor` below 2^40 and 2^30. */
function writeProduct(
  value: number,
  factor: number,
  rest: number,
  isNegative: boolean,
  words: Int32Array,
  row: number,
): void {
  const high = Math.floor(value / HALF_WORD);
  const low = (value - high * HALF_WORD) * factor + rest;
  const middle = high * factor;
  const carried = Math.floor(middle / HALF_WORD);
  writeWords(carried, (middle - carried * HALF_WORD) * HALF_WORD + low, isNegative, words, row);
}

/** Writes `high * 2^32 + low`, `low` being below 2^53, or its negative. */
function writeWords(high: number, low: number, isNegative: boolean, words: Int32Array, row: number): void {
  const carried = Math.floor(low / WORD);
  const lowWord = low - carried * WORD;
  const highWord = high + carried;
  if (!isNegative) {
    words[row * 2] = lowWord;
    words[row * 2 + 1] = highWord;
    return;
  }
  words[row * 2] = -lowWord;
  words[row * 2 + 1] = lowWord === 0 ? -highWord : ~highWord;
}

/** The value of a double or an integer, [start, end) of its text; the nearest double. */
export function doubleOf(b: Uint8Array, start: number, end: number): number {
  const isNegative = b[start] === MINUS;
  let value = 0;
  let dot = end;
  let count = 0;
  for (let i = isNegative ? start + 1 : start; i < end; i++) {
    const c = b[i];
    if (c === DOT) dot = i + 1;
    else if (c === UPPER_E) return Number(latin1(b, start, end));
    else {
      value = value * 10 + c - ZERO;
      count++;
    }
  }
  // Both are exact, so the quotient is the nearest double.
  if (count > EXACT_DIGITS) return Number(latin1(b, start, end));
  const quotient = value / POWERS[end - dot];
  return isNegative ? -quotient : quotient;
}
