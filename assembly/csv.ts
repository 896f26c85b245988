// The byte loops of the CSV path with 128-bit SIMD, in AssemblyScript: `npm run wasm` compiles this file into
// src/cells/csv/csv.wasm. Each function handles the plain case alone and hands every other one back to the code in
// TypeScript, which decides what a row or a cell is. src/cells/csv/layout.ts says what lies where in the memory.

import { BACKSLASH, COMMA, CR, DOT, HYPHEN, LF, LOWER_E, QUOTE, SPACE, UPPER_T } from '../src/base/ascii';
import {
  BOOLEAN,
  CELLS_AT,
  COLUMN_SHIFT,
  CONTENT_END,
  COPY,
  DATETIME,
  DOUBLED,
  FLAGS,
  LIST,
  MAX_COLUMNS,
  OUT_END,
  QUOTED,
  SKIP,
  STRIDE,
  TEXT,
  USED,
  WIDTH,
} from '../src/cells/csv/layout';
import { copy, NOT_PLAIN, setInfo } from './bytes';

/** Maximum of numbers in the cells before sixteen bytes, which can add eight unquoted cells, and one in quotes. */
const LAST_STEP: i32 = STRIDE * (MAX_COLUMNS - 9);
const LANES: i32 = 16;

function maskOf(v: v128, byte: i32): i32 {
  return i8x16.bitmask(i8x16.eq(v, i8x16.splat(<i8>byte)));
}

function putCell(used: i32, head: i32, start: i32, end: i32): void {
  const to = <usize>CELLS_AT + ((<usize>used) << 2);
  store<i32>(to, head);
  store<i32>(to, start, 4);
  store<i32>(to, end, 8);
}

/**
 * Reads the row at `at`, as RowTokenizer.next does: its filled cells, and the rest into the results. Returns where the
 * next row starts; NOT_PLAIN for a row that does not end in LF or CRLF before `end`, has a CR of its own outside of
 * quotes, is broken, or has too many cells.
 */
export function nextRow(at: i32, end: i32): i32 {
  let i = at;
  let used = 0;
  let flags = 0;
  /** Column of the byte at `i`, shifted as a cell's head is. */
  let head = 0;
  let openHead = 0;
  /**
   * Start of the unquoted cell that the byte before `i` belongs to; -1: that byte is a comma, a quote or before the
   * row.
   */
  let open = -1;
  while (i < end && used <= LAST_STEP) {
    const v = v128.load(<usize>i);
    const commas = maskOf(v, COMMA);
    const others = maskOf(v, LF) | maskOf(v, QUOTE) | maskOf(v, CR);
    const stop = ctz(others | (1 << LANES));
    const before = (1 << stop) - 1;
    // Of each byte: whether the one before it ends a cell or precedes the row.
    const isFirst = (commas << 1) | (open >= 0 ? 0 : 1);
    const texts = ~commas & isFirst & before;
    let marks = texts | (commas & ~isFirst & before);
    while (marks !== 0) {
      const j = ctz(marks);
      if ((texts & (1 << j)) !== 0) {
        open = i + j;
        openHead = head + (popcnt(commas & ((1 << j) - 1)) << COLUMN_SHIFT);
      } else {
        putCell(used, openHead, open, i + j);
        used += STRIDE;
        open = -1;
      }
      marks &= marks - 1;
    }
    head += popcnt(commas & before) << COLUMN_SHIFT;
    i += stop;
    if (stop === LANES) continue;
    if (i >= end) return NOT_PLAIN;
    const c = <i32>load<u8>(<usize>i);
    const isCrLf = c === CR && i + 1 < end && <i32>load<u8>(<usize>i, 1) === LF;
    if (c === LF || isCrLf) {
      if (open >= 0) {
        putCell(used, openHead, open, i);
        used += STRIDE;
      }
      setInfo(USED, used);
      setInfo(WIDTH, (head >> COLUMN_SHIFT) + 1);
      setInfo(CONTENT_END, i);
      setInfo(FLAGS, flags);
      return i + 1 + i32(isCrLf);
    }
    if (c === CR || open >= 0) return NOT_PLAIN;
    const start = i + 1;
    let cellFlags = QUOTED;
    let close = start;
    for (;;) {
      close = nextQuote(close, end);
      if (close + 1 >= end) return NOT_PLAIN;
      if (<i32>load<u8>(<usize>close, 1) !== QUOTE) break;
      cellFlags = QUOTED | DOUBLED;
      close += 2;
    }
    const after = <i32>load<u8>(<usize>close, 1);
    if (after !== COMMA && after !== LF && after !== CR) return NOT_PLAIN;
    if (close > start) {
      putCell(used, head | cellFlags, start, close);
      used += STRIDE;
      flags |= cellFlags;
    }
    i = close + 1;
  }
  return NOT_PLAIN;
}

/** The first quote at or behind `from`, or something at or behind `end`. */
function nextQuote(from: i32, end: i32): i32 {
  let i = from;
  while (i < end) {
    const quotes = maskOf(v128.load(<usize>i), QUOTE);
    if (quotes !== 0) return i + ctz(quotes);
    i += LANES;
  }
  return i;
}

const DATETIME_BYTES: i32 = 23;
const LOWER_CASE: i32 = 32;
/** `true` and `fals`, as four bytes read from memory are a number. */
const TRUE: u32 = 0x65757274;
const FALS: u32 = 0x736c6166;

/**
 * Writes cells [k, used) of a row as `,"name":value` to `out` while they are plain: text, numbers, columns that are
 * left out, booleans, datetimes of 23 bytes, and lists without escapes or white space between items. Returns the first
 * cell that is not, or `used`; OUT_END is behind what was written. Up to fifteen bytes more may be overwritten.
 */
export function writeCells(k: i32, used: i32, modes: usize, labels: usize, offsets: usize, out: usize): i32 {
  let to = out;
  while (k < used) {
    const cell = <usize>CELLS_AT + ((<usize>k) << 2);
    const head = load<i32>(cell);
    const column = <usize>(head >> COLUMN_SHIFT);
    const mode = <i32>load<u8>(modes + column);
    if (mode === SKIP) {
      k += STRIDE;
      continue;
    }
    const from = <usize>load<i32>(cell, 4);
    const length = load<i32>(cell, 8) - load<i32>(cell, 4);
    if (!isPlain(mode, from, length)) break;
    const label = load<i32>(offsets + (column << 2));
    const before = to;
    to = copy(labels + <usize>label, load<i32>(offsets + (column << 2), 4) - label, to);
    if (mode === TEXT) to = writeString(from, length, (head & DOUBLED) !== 0, to);
    else if (mode === COPY) to = copy(from, length, to);
    else if (mode === DATETIME) to = writeDatetime(from, to);
    else if (mode === BOOLEAN) to = writeBoolean(from, to);
    else {
      to = writeList(from, length, to);
      if (to === 0) {
        to = before;
        break;
      }
    }
    k += STRIDE;
  }
  setInfo(OUT_END, <i32>to);
  return k;
}

function isPlain(mode: i32, from: usize, length: i32): bool {
  if (mode !== DATETIME) return mode <= LIST;
  if (length !== DATETIME_BYTES) return false;
  return <i32>load<u8>(from, 4) === HYPHEN && <i32>load<u8>(from, 19) === DOT;
}

/** `yyyy-MM-dd HH:mm:ss.SSS` with a T in the middle, in quotes. */
function writeDatetime(from: usize, to: usize): usize {
  store<u8>(to, QUOTE);
  v128.store(to, v128.load(from), 1);
  store<u64>(to, load<u64>(from, 15), 16);
  store<u8>(to, UPPER_T, 11);
  store<u8>(to, QUOTE, 24);
  return to + 25;
}

/** `true` or `false`, whichever case the cell has. */
function writeBoolean(from: usize, to: usize): usize {
  const isTrue = (<i32>load<u8>(from) | LOWER_CASE) === (<i32>TRUE & 0xff);
  store<u32>(to, isTrue ? TRUE : FALS);
  store<u8>(to, LOWER_E, 4);
  return to + 4 + usize(!isTrue);
}

/**
 * Copies a JSON list, each pair of quotes as one, and returns where it ends; 0 for one with an escape, or white space
 * between items.
 */
function writeList(from: usize, length: i32, out: usize): usize {
  let to = out;
  let inString = false;
  for (let i = 0; i < length; ) {
    const v = v128.load(from + <usize>i);
    v128.store(to, v);
    const left = length - i;
    const end = left < LANES ? left : LANES;
    const stop = ctz(maskOf(v, QUOTE) | (1 << end));
    const other = inString ? maskOf(v, BACKSLASH) : i8x16.bitmask(i8x16.le_u(v, i8x16.splat(<i8>SPACE)));
    if ((other & ((1 << stop) - 1)) !== 0) return 0;
    const isQuote = stop < end;
    if (isQuote) inString = !inString;
    to += <usize>(stop + i32(isQuote));
    i += stop + (isQuote ? 2 : 0);
  }
  return to;
}

/** The lanes with bytes that JSON escapes: controls, quotes, backslashes. */
function escapes(v: v128): i32 {
  return i8x16.bitmask(i8x16.lt_u(v, i8x16.splat(<i8>SPACE))) | maskOf(v, QUOTE) | maskOf(v, BACKSLASH);
}

/** Copies `length` bytes and returns where they end; up to fifteen bytes more may be overwritten. */
export function copyBytes(from: usize, length: i32, to: usize): usize {
  return copy(from, length, to);
}

/** Writes text as a JSON string and returns where it ends; up to fifteen bytes more may be overwritten. */
export function writeText(from: usize, length: i32, to: usize): usize {
  return writeString(from, length, false, to);
}

function writeString(from: usize, length: i32, isDoubled: bool, out: usize): usize {
  let to = out;
  store<u8>(to++, QUOTE);
  let i = 0;
  while (i < length) {
    const v = v128.load(from + <usize>i);
    v128.store(to, v);
    const left = length - i;
    const step = ctz(escapes(v) | (1 << (left < LANES ? left : LANES)));
    to += <usize>step;
    i += step;
    if (step === LANES || i === length) continue;
    const byte = <i32>load<u8>(from + <usize>i);
    to = writeEscape(byte, to);
    i += isDoubled && byte === QUOTE ? 2 : 1;
  }
  store<u8>(to++, QUOTE);
  return to;
}

function hex(digit: i32): i32 {
  return digit < 10 ? 48 + digit : 87 + digit;
}

/** Writes an escape as JSON.stringify does. */
function writeEscape(byte: i32, to: usize): usize {
  store<u8>(to, BACKSLASH);
  let letter = byte;
  if (byte === 8) letter = 98;
  else if (byte === 9) letter = 116;
  else if (byte === LF) letter = 110;
  else if (byte === 12) letter = 102;
  else if (byte === CR) letter = 114;
  else if (byte < SPACE) {
    store<u32>(to, 0x30303075, 1);
    store<u8>(to, 48 + (byte >> 4), 4);
    store<u8>(to, hex(byte & 15), 5);
    return to + 6;
  }
  store<u8>(to, letter, 1);
  return to + 2;
}
