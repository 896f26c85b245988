// Takes in plain cells of columns whose kind is known, in AssemblyScript: `npm run wasm` compiles this file into
// src/cells/csv/csv.wasm. A cell that may tell something new, or is not plain, is left to the code in TypeScript:
// src/cells/columns/columns.ts says what is collected from a cell, src/types what it is.

import {
  BACKSLASH,
  CLOSE_BRACKET,
  COMMA,
  DOT,
  HYPHEN,
  LOWER_E,
  OPEN_BRACKET,
  QUOTE,
  SPACE,
  UPPER_E,
  ZERO,
} from '../src/base/ascii';
import {
  CELLS_AT,
  COLUMN_SHIFT,
  COLUMN_WORDS,
  COLUMNS_AT,
  COUNTED,
  DOUBLED,
  EXAMINED,
  FILLED,
  FIRST_MICRO,
  FIRST_SECOND,
  KNOWN,
  LAST_MICRO,
  LAST_SECOND,
  MODE,
  STRIDE,
} from '../src/cells/csv/layout';
import {
  BOOL_LOWER,
  BOOL_UPPER,
  DATE,
  DATETIME_DASH,
  DATETIME_DOT,
  DOUBLE,
  LIST_DOUBLE,
  LIST_EMPTY,
  LIST_LONG,
  LIST_STRING,
  LONG,
  NULL_TEXT,
} from '../src/cells/types/evidence';
import { byteAt, isDigit } from './bytes';
import { DASH_FORM, DAY_FORM, DOT_FORM, isKnownHour, micro, NO_TIME, parseTime, seconds } from './times';

const TIMES: i32 = DATE | DATETIME_DOT | DATETIME_DASH;

/** Words as four bytes read from memory are a number. */
const NULL: u32 = 0x6c6c756e;
const TRUE_UPPER: u32 = 0x45555254;
const TRUE_LOWER: u32 = 0x65757274;
const FALS_UPPER: u32 = 0x534c4146;
const FALS_LOWER: u32 = 0x736c6166;

const EXACT_DIGITS: i32 = 15;
const SHORTEST_TIME: i32 = 10;

/**
 * Counts cells [k, used) of a row and takes them in while they are plain and of a kind that is known of their column.
 * With `hasZone` a time is plain only in an hour that is cached. Returns the first cell that is not, or `used`.
 */
export function observeCells(k: i32, used: i32, hasZone: bool): i32 {
  for (; k < used; k += STRIDE) {
    const cell = <usize>CELLS_AT + ((<usize>k) << 2);
    const head = load<i32>(cell);
    const column = <usize>COLUMNS_AT + <usize>(head >> COLUMN_SHIFT) * (COLUMN_WORDS << 2);
    const mode = load<i32>(column, MODE << 2);
    if (mode === EXAMINED) {
      const from = <usize>load<i32>(cell, 4);
      const length = load<i32>(cell, 8) - load<i32>(cell, 4);
      const isList = byteAt(from) === OPEN_BRACKET;
      if ((head & DOUBLED) !== 0 && !isList) break;
      const bits = isList ? listClass(from, length) : classify(from, length);
      if (bits === 0 || (bits & ~load<i32>(column, KNOWN << 2)) !== 0) break;
      if ((bits & TIMES) !== 0) {
        if (hasZone && !isKnownHour()) break;
        addTime(column);
      }
    } else if (mode !== COUNTED) break;
    store<i32>(column, load<i32>(column, FILLED << 2) + 1, FILLED << 2);
  }
  return k;
}

/** Extends the range of a column to the last time read. */
function addTime(column: usize): void {
  const second = seconds();
  const first = load<f64>(column, FIRST_SECOND << 2);
  if (second < first || (second === first && micro < load<i32>(column, FIRST_MICRO << 2))) {
    store<f64>(column, second, FIRST_SECOND << 2);
    store<i32>(column, micro, FIRST_MICRO << 2);
  }
  const last = load<f64>(column, LAST_SECOND << 2);
  if (second > last || (second === last && micro > load<i32>(column, LAST_MICRO << 2))) {
    store<f64>(column, second, LAST_SECOND << 2);
    store<i32>(column, micro, LAST_MICRO << 2);
  }
}

/** One bit, or 0 for a cell that TypeScript must classify. */
function classify(from: usize, length: i32): i32 {
  const c = byteAt(from);
  if (!isDigit(c) && c !== HYPHEN) return wordClass(from, length);
  const after = byteAt(from + 4);
  if (length >= SHORTEST_TIME && (after === HYPHEN || after === DOT)) {
    const form = parseTime(from, length);
    if (form === DASH_FORM) return DATETIME_DASH;
    if (form === DOT_FORM) return DATETIME_DOT;
    if (form === DAY_FORM) return DATE;
    if (form !== NO_TIME) return 0;
  }
  return numberClass(from, length, c === HYPHEN);
}

/** The class of an integer or of a number with a dot, of few enough digits. */
function numberClass(from: usize, length: i32, isNegative: bool): i32 {
  const first = i32(isNegative);
  let i = first;
  while (i < length && isDigit(byteAt(from + <usize>i))) i++;
  const digits = i - first;
  const startsWithZero = byteAt(from + <usize>first) === ZERO;
  if (digits === 0 || digits > EXACT_DIGITS || (startsWithZero && digits > 1)) return 0;
  if (i === length) return startsWithZero && isNegative ? 0 : LONG;
  if (byteAt(from + <usize>i) !== DOT || length - first - 1 > EXACT_DIGITS || i + 1 === length) return 0;
  for (i++; i < length; i++) if (!isDigit(byteAt(from + <usize>i))) return 0;
  return DOUBLE;
}

function wordClass(from: usize, length: i32): i32 {
  const word = load<u32>(from);
  if (length === 4) {
    if (word === TRUE_UPPER) return BOOL_UPPER;
    if (word === TRUE_LOWER) return BOOL_LOWER;
    return word === NULL ? NULL_TEXT : 0;
  }
  if (length !== 5) return 0;
  const last = byteAt(from + 4);
  if (word === FALS_UPPER && last === UPPER_E) return BOOL_UPPER;
  return word === FALS_LOWER && last === LOWER_E ? BOOL_LOWER : 0;
}

/**
 * The bits of a JSON list without white space between its items and without escapes, its quotes doubled as in the cell.
 */
function listClass(from: usize, length: i32): i32 {
  const last = length - 1;
  if (byteAt(from + <usize>last) !== CLOSE_BRACKET) return 0;
  if (last === 1) return LIST_EMPTY;
  let seen = 0;
  let start = 1;
  for (;;) {
    const isString = byteAt(from + <usize>start) === QUOTE;
    const end = isString ? stringEnd(from, start + 2, last) : commaFrom(from, start, last);
    const bits = isString ? LIST_STRING : itemClass(from + <usize>start, end - start);
    if (bits === 0 || end > last) return 0;
    seen |= bits;
    if (end === last) break;
    if (byteAt(from + <usize>end) !== COMMA) return 0;
    start = end + 1;
  }
  const isMixed = (seen & LIST_STRING) !== 0 && (seen & (LIST_LONG | LIST_DOUBLE)) !== 0;
  if (isMixed) return 0;
  return seen === LIST_EMPTY ? seen : seen & ~LIST_EMPTY;
}

function commaFrom(from: usize, start: i32, last: i32): i32 {
  let i = start;
  while (i < last && byteAt(from + <usize>i) !== COMMA) i++;
  return i;
}

/**
 * Behind the string whose text begins at `start`; more than `last` where it has an escape or a control, or does not
 * end.
 */
function stringEnd(from: usize, start: i32, last: i32): i32 {
  for (let i = start; i < last; i++) {
    const c = byteAt(from + <usize>i);
    if (c === QUOTE) return i + 2;
    if (c === BACKSLASH || c < SPACE) break;
  }
  return last + 1;
}

function itemClass(from: usize, length: i32): i32 {
  if (length === 4 && load<u32>(from) === NULL) return LIST_EMPTY;
  const bits = numberClass(from, length, byteAt(from) === HYPHEN);
  if (bits === LONG) return LIST_LONG;
  return bits === DOUBLE ? LIST_DOUBLE : 0;
}
