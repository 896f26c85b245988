import { DOUBLE, LONG, LONG_WIDE } from './evidence.ts';
import type { Evidence } from './type.ts';

const ZERO = 48;
const NINE = 57;
const MINUS = 45;
const DOT = 46;
const UPPER_E = 69;
/** Every integer of so many digits is exact as a double. */
const EXACT_DIGITS = 15;
const INT64_DIGITS = 19;
/** Plain decimals up to this length cannot underflow. */
const SAFE_LENGTH = 300;
/** A double has no more significant digits than this in its shortest text. */
const MAX_DIGITS = 17;
const LONG_MAX = Uint8Array.from('9223372036854775807', (c) => c.charCodeAt(0));

/** LONG, LONG_WIDE or DOUBLE, or 0 for any other text: `+5`, `007`, `-0`, `.5`, `1e5`, beyond 64 bits, lost digits. */
export function numberClass(b: Uint8Array, start: number, end: number): Evidence {
  const negative = b[start] === MINUS;
  const first = negative ? start + 1 : start;
  let i = first;
  while (i < end && b[i] >= ZERO && b[i] <= NINE) i++;
  const digits = i - first;
  if (digits === 0 || (b[first] === ZERO && digits > 1)) return 0;
  if (i < end) return b[i] === DOT ? doubleClass(b, start, first, i, end) : 0;
  if (b[first] === ZERO) return negative ? 0 : LONG;
  return digits <= EXACT_DIGITS ? LONG : wideClass(b, first, digits, negative);
}

function wideClass(b: Uint8Array, first: number, digits: number, negative: boolean): Evidence {
  if (digits > INT64_DIGITS) return 0;
  if (digits === INT64_DIGITS && !withinInt64(b, first, negative)) return 0;
  let high = 0;
  let low = 0;
  const split = first + digits - 9;
  for (let i = first; i < split; i++) high = high * 10 + b[i] - ZERO;
  for (let i = split; i < first + digits; i++) low = low * 10 + b[i] - ZERO;
  return isExact(high, low) ? LONG : LONG_WIDE;
}

function withinInt64(b: Uint8Array, first: number, negative: boolean): boolean {
  for (let i = 0; i < INT64_DIGITS; i++) {
    const difference = b[first + i] - LONG_MAX[i];
    if (difference !== 0) return difference < 0 || (negative && difference === 1 && i === INT64_DIGITS - 1);
  }
  return true;
}

/** True when high * 10^9 + low, at most 2^63, is a multiple of what a double can tell apart at its size. */
function isExact(high: number, low: number): boolean {
  const lastBits = ((high % 2048) * (1_000_000_000 % 2048) + low) % 2048;
  let step = 1;
  for (let limit = 2 ** 53; limit <= high * 1_000_000_000 + low; limit *= 2) step *= 2;
  return lastBits % step === 0;
}

/** The text from `dot` on is `.digits`, perhaps with an exponent after a single leading digit. */
function doubleClass(b: Uint8Array, start: number, first: number, dot: number, end: number): Evidence {
  let i = dot + 1;
  while (i < end && b[i] >= ZERO && b[i] <= NINE) i++;
  if (i === dot + 1) return 0;
  if (i === end) {
    const digits = end - first - 1;
    return digits <= EXACT_DIGITS || (end - first <= SAFE_LENGTH && significant(b, first, end) <= EXACT_DIGITS)
      ? DOUBLE
      : shortestClass(b, start, first, end, end);
  }
  if (b[i] !== UPPER_E || dot - first !== 1) return 0;
  return isExponent(b, i + 1, end) ? shortestClass(b, start, first, i, end) : 0;
}

function isExponent(b: Uint8Array, start: number, end: number): boolean {
  let i = b[start] === MINUS || b[start] === 0x2b ? start + 1 : start;
  if (i === end) return false;
  for (; i < end; i++) if (b[i] < ZERO || b[i] > NINE) return false;
  return true;
}

/** Digits of [first, end) without the leading and the trailing zeros. */
function significant(b: Uint8Array, first: number, end: number): number {
  let from = first;
  let to = end;
  while (from < to && (b[from] === ZERO || b[from] === DOT)) from++;
  while (to > from && (b[to - 1] === ZERO || b[to - 1] === DOT)) to--;
  let dots = 0;
  for (let i = from; i < to; i++) if (b[i] === DOT) dots = 1;
  return to - from - dots;
}

/** Compares the significant digits of the text with those of the shortest text of its value. */
function shortestClass(b: Uint8Array, start: number, first: number, mantissaEnd: number, end: number): Evidence {
  if (significant(b, first, mantissaEnd) > MAX_DIGITS) return 0;
  const value = Number(latin1(b, start, end));
  if (!Number.isFinite(value)) return 0;
  const written = trimZeros(latin1(b, first, mantissaEnd).replace('.', ''));
  return written === digitsOf(value) ? DOUBLE : 0;
}

/** The significant digits of the shortest text of a double; none for zero. */
export function digitsOf(value: number): string {
  const [mantissa] = String(Math.abs(value)).split('e');
  return trimZeros(mantissa.replace('.', ''));
}

function trimZeros(digits: string): string {
  return digits.replace(/^0+/, '').replace(/0+$/, '');
}

/** Bytes that are known to be ASCII, as text. */
export function latin1(b: Uint8Array, start: number, end: number): string {
  let text = '';
  for (let i = start; i < end; i++) text += String.fromCharCode(b[i]);
  return text;
}
