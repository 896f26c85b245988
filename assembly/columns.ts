// Writes plain cells into the columns of a record batch, in AssemblyScript: `npm run wasm` compiles this file into
// src/csv/wasm/columns-module.ts. Every cell is known to fit its column. What is not plain is left to the code in
// TypeScript: src/sinks/arrow/build/column-writer.ts says what the value of a cell is.

import { copy } from './bytes';
import { DASH_FORM, DAY_FORM, DOT_FORM, day, knownOffset, micros, parseTime } from './times';

const DASH: i32 = 45;
const DOT: i32 = 46;
const ZERO: i32 = 48;
const UPPER_E: i32 = 69;
const LOWER_CASE: i32 = 32;
const LOWER_T: i32 = 0x74;
/** `null`, as four bytes read from memory are a number. */
const NULL: u32 = 0x6c6c756e;

const DOUBLED: i32 = 2;
const COLUMN_SHIFT: i32 = 3;
const STRIDE: i32 = 3;
const LANES: i32 = 16;

/** How the cells of a column become values; NULLS is added where the text `null` is no value. */
const SKIP: i32 = 0;
const TEXT: i32 = 1;
const LONG: i32 = 2;
const DOUBLE: i32 = 3;
const BOOLEAN: i32 = 4;
const DATE: i32 = 5;
const DATETIME: i32 = 6;
const CODE: i32 = 7;
const OTHER: i32 = 8;
const NULLS: i32 = 16;

/** The state of a column: positions, then numbers. src/sinks/arrow/build/column-memory.ts has the same list. */
const BITS: usize = 0;
const VALUES: usize = 4;
const OFFSETS: usize = 8;
const BYTES: usize = 12;
const END: usize = 16;
const ROOM: usize = 20;
const ENDED: usize = 24;
const FILLED: usize = 28;
const CODES: usize = 32;

/** The known texts of a dictionary: position, length and code each, at the place that the hash of the text gives. */
const CODE_SLOTS: u32 = 64;
const CODE_BYTES: usize = 12;
const FNV_OFFSET: u32 = 0x811c9dc5;
const FNV_PRIME: u32 = 0x01000193;

/** Every integer of so many digits is exact as a double. */
const EXACT_DIGITS: i32 = 15;
const MILLION: i64 = 1_000_000;

/**
 * Writes cells [k, used) of a row as values of row `row` while they are plain. `ways`: a byte a column; `states`: the
 * position of its state; `hours`: those that are known of the zone, 0 where none is configured. Returns the first cell that
 * is not plain, or `used`. Positions in states count from `base`.
 */
export function addCells(
  base: usize,
  cells: usize,
  k: i32,
  used: i32,
  row: i32,
  ways: usize,
  states: usize,
  hours: usize,
): i32 {
  while (k < used) {
    const cell = cells + ((<usize>k) << 2);
    const head = load<i32>(cell);
    const column = <usize>(head >> COLUMN_SHIFT);
    const way = <i32>load<u8>(ways + column);
    if (way !== SKIP) {
      if (way === OTHER || (head & DOUBLED) !== 0) return k;
      const from = base + <usize>load<i32>(cell, 4);
      const length = load<i32>(cell, 8) - load<i32>(cell, 4);
      if ((way & NULLS) === 0 || length !== 4 || load<u32>(from) !== NULL) {
        const state = base + <usize>load<i32>(states + (column << 2));
        if (!addCell(way & ~NULLS, base, state, row, from, length, hours)) return k;
      }
    }
    k += STRIDE;
  }
  return k;
}

/** Writes one text as the value of a row; false where there is no room for it. */
export function addText(base: usize, state: usize, row: i32, from: usize, length: i32): bool {
  const at = load<i32>(state, END);
  const end = at + length;
  if (end + LANES > load<i32>(state, ROOM)) return false;
  const offsets = base + <usize>load<i32>(state, OFFSETS);
  for (let i = load<i32>(state, ENDED); i <= row; i++) store<i32>(offsets + ((<usize>i) << 2), at);
  store<i32>(state, row + 1, ENDED);
  copy(from, length, base + <usize>load<i32>(state, BYTES) + <usize>at);
  store<i32>(state, end, END);
  setValid(base, state, row);
  return true;
}

function addCell(way: i32, base: usize, state: usize, row: i32, from: usize, length: i32, hours: usize): bool {
  if (way === TEXT) return addText(base, state, row, from, length);
  const values = base + <usize>load<i32>(state, VALUES);
  if (way === CODE) return addCode(base, state, values, row, from, length);
  const narrow = values + ((<usize>row) << 2);
  const wide = values + ((<usize>row) << 3);
  if (way === LONG) store<i64>(wide, longOf(from, length));
  else if (way === DOUBLE) {
    if (!writeDouble(from, length, wide)) return false;
  } else if (way === DATETIME) {
    if (!writeDatetime(from, length, hours, wide)) return false;
  } else if (way === DATE) {
    if (parseTime(from, length) !== DAY_FORM) return false;
    store<i32>(narrow, day);
  } else if (way === BOOLEAN && (<i32>load<u8>(from) | LOWER_CASE) === LOWER_T) setBit(values, row);
  setValid(base, state, row);
  return true;
}

function setBit(bits: usize, row: i32): void {
  const at = bits + <usize>(row >> 3);
  store<u8>(at, <i32>load<u8>(at) | (1 << (row & 7)));
}

function setValid(base: usize, state: usize, row: i32): void {
  setBit(base + <usize>load<i32>(state, BITS), row);
  store<i32>(state, load<i32>(state, FILLED) + 1, FILLED);
}

/** The code of a text that is known; false for another one. */
function addCode(base: usize, state: usize, values: usize, row: i32, from: usize, length: i32): bool {
  let hash = FNV_OFFSET;
  for (let i = 0; i < length; i++) hash = (hash ^ <u32>load<u8>(from + <usize>i)) * FNV_PRIME;
  const slot = base + <usize>load<i32>(state, CODES) + <usize>(hash % CODE_SLOTS) * CODE_BYTES;
  if (load<i32>(slot, 4) !== length) return false;
  const known = base + <usize>load<i32>(slot);
  for (let i = 0; i < length; i++) if (load<u8>(known + <usize>i) !== load<u8>(from + <usize>i)) return false;
  store<i32>(values + ((<usize>row) << 2), load<i32>(slot, 8));
  setValid(base, state, row);
  return true;
}

/** An integer of 64 bits. */
function longOf(from: usize, length: i32): i64 {
  const isNegative = <i32>load<u8>(from) === DASH;
  let value: i64 = 0;
  for (let i = i32(isNegative); i < length; i++) value = value * 10 + <i64>load<u8>(from + <usize>i) - ZERO;
  return isNegative ? -value : value;
}

/** A number without an exponent, of few enough digits: then both parts of the quotient are exact. */
function writeDouble(from: usize, length: i32, to: usize): bool {
  const isNegative = <i32>load<u8>(from) === DASH;
  let value: i64 = 0;
  let power: f64 = 1;
  let digits = 0;
  let hasDot = false;
  for (let i = i32(isNegative); i < length; i++) {
    const c = <i32>load<u8>(from + <usize>i);
    if (c === DOT) hasDot = true;
    else {
      if (c === UPPER_E || ++digits > EXACT_DIGITS) return false;
      value = value * 10 + <i64>(c - ZERO);
      if (hasDot) power *= 10;
    }
  }
  const quotient = <f64>value / power;
  store<f64>(to, isNegative ? -quotient : quotient);
  return true;
}

/** In the zone's hours an instant, else a time of the wall clock. */
function writeDatetime(from: usize, length: i32, hours: usize, to: usize): bool {
  const form = parseTime(from, length);
  if (form !== DASH_FORM && form !== DOT_FORM && form !== DAY_FORM) return false;
  let time = micros();
  if (hours !== 0) {
    const offset = knownOffset(hours);
    if (offset === 0) return false;
    time -= <i64>load<i32>(offset) * MILLION;
  }
  store<i64>(to, time);
  return true;
}
