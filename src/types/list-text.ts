import {
  DOUBLE,
  LIST_DOUBLE,
  LIST_EMPTY,
  LIST_LONG,
  LIST_LONG_WIDE,
  LIST_STRING,
  LONG,
  LONG_WIDE,
} from './evidence.ts';
import { isNull } from './json-text.ts';
import { numberClass } from './numbers.ts';
import type { Evidence } from './type.ts';

const QUOTE = 34;
const COMMA = 44;
const OPEN = 91;
const BACKSLASH = 92;
const CLOSE = 93;
const LOWER_N = 110;
const LOWER_U = 117;

/** JSON white space. */
export function isSpace(c: number): boolean {
  return c === 32 || c === 10 || c === 13 || c === 9;
}

export function skipSpace(b: Uint8Array, start: number, end: number): number {
  let i = start;
  while (i < end && isSpace(b[i])) i++;
  return i;
}

/**
 * The LIST_ bits of a cell that is a JSON array of strings and nulls, or of numbers and nulls (longs and doubles by
 * their own rules); 0 for anything else: nested, mixed, broken, or a string that is no text (U+0000, half a surrogate).
 */
export function listClass(b: Uint8Array, start: number, end: number): Evidence {
  let i = skipSpace(b, start, end);
  if (i >= end || b[i] !== OPEN) return 0;
  i = skipSpace(b, i + 1, end);
  if (i < end && b[i] === CLOSE) return skipSpace(b, i + 1, end) === end ? LIST_EMPTY : 0;
  let seen = 0;
  for (;;) {
    const stop = elementEnd(b, i, end);
    if (stop < 0) return 0;
    seen |= elementClass(b, i, stop);
    i = skipSpace(b, stop, end);
    if (i >= end) return 0;
    if (b[i] === CLOSE) break;
    if (b[i] !== COMMA) return 0;
    i = skipSpace(b, i + 1, end);
  }
  return skipSpace(b, i + 1, end) === end ? listEvidence(seen) : 0;
}

const BAD_ELEMENT = 1 << 30;
const NUMBERS = LIST_LONG | LIST_LONG_WIDE | LIST_DOUBLE;

function listEvidence(seen: Evidence): Evidence {
  if ((seen & BAD_ELEMENT) !== 0) return 0;
  const real = seen & ~LIST_EMPTY;
  if (real === 0) return LIST_EMPTY;
  return (real & LIST_STRING) !== 0 && (real & NUMBERS) !== 0 ? 0 : real;
}

function elementClass(b: Uint8Array, start: number, end: number): Evidence {
  if (b[start] === QUOTE) return LIST_STRING;
  if (b[start] === LOWER_N) return LIST_EMPTY;
  const number = numberClass(b, start, end);
  if (number === LONG) return LIST_LONG;
  if (number === LONG_WIDE) return LIST_LONG_WIDE;
  return number === DOUBLE ? LIST_DOUBLE : BAD_ELEMENT;
}

/** Where the string, the `null` or the number-like text at `start` ends; -1 when none is there. */
export function elementEnd(b: Uint8Array, start: number, end: number): number {
  if (start >= end) return -1;
  const c = b[start];
  if (c === QUOTE) return stringEnd(b, start + 1, end);
  if (c === LOWER_N) return start + 4 <= end && isNull(b, start, start + 4) ? start + 4 : -1;
  let i = start;
  while (i < end && b[i] !== COMMA && b[i] !== CLOSE && !isSpace(b[i])) i++;
  return i === start ? -1 : i;
}

function stringEnd(b: Uint8Array, start: number, end: number): number {
  let i = start;
  while (i < end) {
    const c = b[i];
    if (c === QUOTE) return i + 1;
    if (c < 32) return -1;
    if (c === BACKSLASH) {
      i = escapeEnd(b, i + 1, end);
      if (i < 0) return -1;
    } else i++;
  }
  return -1;
}

/** `"`, `\`, `/`, b, f, n, r, t. */
const PLAIN_ESCAPES = new Set([QUOTE, BACKSLASH, 47, 98, 102, 110, 114, 116]);

function escapeEnd(b: Uint8Array, at: number, end: number): number {
  if (at >= end) return -1;
  if (PLAIN_ESCAPES.has(b[at])) return at + 1;
  if (b[at] !== LOWER_U) return -1;
  const unit = hex4(b, at + 1, end);
  if (unit <= 0 || (unit >= 0xdc00 && unit <= 0xdfff)) return -1;
  if (unit < 0xd800 || unit > 0xdbff) return at + 5;
  if (at + 6 >= end || b[at + 5] !== BACKSLASH || b[at + 6] !== LOWER_U) return -1;
  const low = hex4(b, at + 7, end);
  return low >= 0xdc00 && low <= 0xdfff ? at + 11 : -1;
}

function hex4(b: Uint8Array, at: number, end: number): number {
  if (at + 4 > end) return -1;
  let unit = 0;
  for (let i = at; i < at + 4; i++) {
    const digit = hexDigit(b[i]);
    if (digit < 0) return -1;
    unit = unit * 16 + digit;
  }
  return unit;
}

function hexDigit(c: number): number {
  if (c >= 48 && c <= 57) return c - 48;
  const lower = c | 32;
  return lower >= 97 && lower <= 102 ? lower - 87 : -1;
}
