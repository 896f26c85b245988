// Rows without dropped columns and with hashes for values, with 128-bit SIMD, in AssemblyScript: `npm run wasm`
// compiles this file into src/csv/csv.wasm. It handles the plain case and hands every other one back to the code in
// TypeScript. All memory is the caller's: see src/csv/csv-memory.ts.

import { COMMA } from '../src/base/ascii';
import {
  ACTIONS_AT,
  BARE_CR,
  BLOCK_BYTES,
  BLOCKS_AT,
  COLUMN_SHIFT,
  DOUBLED,
  DROP,
  FLAG_BITS,
  HASH,
  INNER_AT,
  JOB_BYTES,
  JOBS_AT,
  JOBS_END,
  KEEP,
  OUTER_AT,
  POSITIONS_AT,
  QUOTED,
  STRIDE,
  USED,
} from '../src/csv/layout';
import { copy, getInfo, NOT_PLAIN, setInfo } from './bytes';

const HASH_BYTES: usize = 64;
/** A value with its padding is four blocks of SHA-256. */
const LONGEST_VALUE: i32 = 247;

function commas(count: i32, to: usize): usize {
  for (let i = 0; i < count; i++) store<u8>(to++, COMMA);
  return to;
}

/**
 * Writes the row [start, contentEnd), whose `used` numbers of cells are at `cells`, to `out`, without its line end:
 * room is left for each hash, and a job for it stored behind the others. The cells that stay get their new columns in
 * place. Sets USED and JOBS_END. Returns where the row ends; NOT_PLAIN for one with a value that is too long or is not
 * as it is written. Up to fifteen bytes more may be overwritten.
 */
export function editRow(
  base: usize,
  cells: usize,
  used: i32,
  start: i32,
  contentEnd: i32,
  width: i32,
  newWidth: i32,
  out: usize,
): i32 {
  if (width === newWidth) return hashCells(base, cells, used, start, contentEnd, out);
  const actions = base + ACTIONS_AT;
  const positions = base + POSITIONS_AT;
  for (let k = 0; k < used; k += STRIDE) {
    const cell = cells + ((<usize>k) << 2);
    const head = load<i32>(cell);
    const action = <i32>load<u8>(actions + <usize>(head >> COLUMN_SHIFT));
    if (action === KEEP ? (head & BARE_CR) !== 0 : action !== DROP && !isShort(cell, head, action)) return NOT_PLAIN;
  }
  let jobs = base + <usize>getInfo(JOBS_END);
  let to = out;
  let from = start;
  let kept = cells;
  let column = 0;
  let position = 0;
  let ended = start;
  for (let k = 0; k < used; k += STRIDE) {
    const cell = cells + ((<usize>k) << 2);
    const head = load<i32>(cell);
    const next = head >> COLUMN_SHIFT;
    const action = <i32>load<u8>(actions + <usize>next);
    const valueStart = load<i32>(cell, 4);
    const valueEnd = load<i32>(cell, 8);
    const quote = head & QUOTED;
    if (action === DROP) {
      to = copy(base + <usize>from, ended - from, to);
      from = valueEnd + quote;
      ended = from;
      continue;
    }
    const nextPosition = load<i32>(positions + ((<usize>next) << 2));
    if (nextPosition - position !== next - column) {
      to = copy(base + <usize>from, ended - from, to);
      to = commas(nextPosition - position, to);
      from = valueStart - quote;
    }
    if (action !== KEEP) {
      to = copy(base + <usize>from, valueStart - quote - from, to);
      jobs = addJob(jobs, valueStart, valueEnd, <i32>(to - base));
      to += HASH_BYTES;
      from = valueEnd + quote;
    }
    store<i32>(kept, (nextPosition << COLUMN_SHIFT) | (head & FLAG_BITS));
    store<i32>(kept, valueStart, 4);
    store<i32>(kept, valueEnd, 8);
    kept += STRIDE << 2;
    column = next;
    position = nextPosition;
    ended = valueEnd + quote;
  }
  const isWhole = newWidth - position === width - column;
  to = copy(base + <usize>from, (isWhole ? contentEnd : ended) - from, to);
  if (!isWhole) to = commas(newWidth - 1 - position, to);
  setInfo(USED, <i32>(kept - cells) >> 2);
  setInfo(JOBS_END, <i32>(jobs - base));
  return <i32>(to - base);
}

/** `editRow` where no column is dropped: the cells keep their columns. */
function hashCells(base: usize, cells: usize, used: i32, start: i32, contentEnd: i32, out: usize): i32 {
  const actions = base + ACTIONS_AT;
  let jobs = base + <usize>getInfo(JOBS_END);
  let to = out;
  let from = start;
  const end = cells + ((<usize>used) << 2);
  for (let cell = cells; cell < end; cell += STRIDE << 2) {
    const head = load<i32>(cell);
    const column = head >> COLUMN_SHIFT;
    const action = <i32>load<u8>(actions + <usize>column);
    if (action === KEEP) {
      if ((head & BARE_CR) !== 0) return NOT_PLAIN;
      continue;
    }
    if (!isShort(cell, head, action)) return NOT_PLAIN;
    const valueStart = load<i32>(cell, 4);
    const valueEnd = load<i32>(cell, 8);
    const quote = head & QUOTED;
    to = copy(base + <usize>from, valueStart - quote - from, to);
    jobs = addJob(jobs, valueStart, valueEnd, <i32>(to - base));
    to += HASH_BYTES;
    from = valueEnd + quote;
  }
  to = copy(base + <usize>from, contentEnd - from, to);
  setInfo(USED, used);
  setInfo(JOBS_END, <i32>(jobs - base));
  return <i32>(to - base);
}

/** Stores a job and returns where the next one belongs. */
function addJob(jobs: usize, valueStart: i32, valueEnd: i32, out: i32): usize {
  store<i32>(jobs, valueStart);
  store<i32>(jobs, valueEnd - valueStart, 4);
  store<i32>(jobs, out, 8);
  return jobs + JOB_BYTES;
}

/** A value to hash as it stands: not quoted twice inside, of few blocks, and no `null` where that is no value. */
function isShort(cell: usize, head: i32, action: i32): bool {
  if ((head & DOUBLED) !== 0 || load<i32>(cell, 8) - load<i32>(cell, 4) > LONGEST_VALUE) return false;
  return action === HASH || load<i32>(cell, 8) - load<i32>(cell, 4) !== 4;
}

// SHA-256 of four values at once: each 32-bit lane is one of them.

/** Places in the tables, behind the constants of the rounds; src/csv/layout.ts has those of the key and of blocks. */
const WORDS_AT: usize = 256;
const STATE_AT: usize = 1_280;
/** For each lane all bits if it takes part in `compress`, or none. */
const ACTIVE_AT: usize = 1_728;
/** Least number of bytes of padding: one bit, and the length. */
const PADDING_BYTES: i32 = 9;
/** Bits of the block of the key, and of the digest behind it. */
const KEY_BITS: i32 = 512;
const OUTER_BITS: i32 = 768;

function rotate(x: v128, n: i32): v128 {
  return v128.or(i32x4.shr_u(x, n), i32x4.shl(x, 32 - n));
}

function add(a: v128, b: v128): v128 {
  return i32x4.add(a, b);
}

/** Σ0 and Σ1: three rotations. */
function sigma(x: v128, n1: i32, n2: i32, n3: i32): v128 {
  return v128.xor(v128.xor(rotate(x, n1), rotate(x, n2)), rotate(x, n3));
}

/** Stores the word that follows the sixteen from `at` on. */
function extend(at: usize): void {
  const w2 = v128.load(at, 224);
  const w15 = v128.load(at, 16);
  const s1 = v128.xor(v128.xor(rotate(w2, 17), rotate(w2, 19)), i32x4.shr_u(w2, 10));
  const s0 = v128.xor(v128.xor(rotate(w15, 7), rotate(w15, 18)), i32x4.shr_u(w15, 3));
  v128.store(at, add(add(v128.load(at), s0), add(v128.load(at, 144), s1)), 256);
}

/** Takes the sixteen words into the state. One round at a time: the variables of several need more registers. */
function compress(tables: usize): void {
  const state = tables + STATE_AT;
  let a = v128.load(state);
  let b = v128.load(state, 16);
  let c = v128.load(state, 32);
  let d = v128.load(state, 48);
  let e = v128.load(state, 64);
  let f = v128.load(state, 80);
  let g = v128.load(state, 96);
  let h = v128.load(state, 112);
  for (let t: usize = 0; t < 64; t++) {
    const word = tables + WORDS_AT + (t << 4);
    if (t < 48) extend(word);
    const kw = add(v128.load32_splat(tables + (t << 2)), v128.load(word));
    const first = add(add(add(h, kw), sigma(e, 6, 11, 25)), v128.bitselect(f, g, e));
    const second = add(sigma(a, 2, 13, 22), v128.bitselect(c, a, v128.xor(a, b)));
    h = g;
    g = f;
    f = e;
    e = add(d, first);
    d = c;
    c = b;
    b = a;
    a = add(first, second);
  }
  const active = v128.load(tables + ACTIVE_AT);
  addTo(state, a, active);
  addTo(state + 16, b, active);
  addTo(state + 32, c, active);
  addTo(state + 48, d, active);
  addTo(state + 64, e, active);
  addTo(state + 80, f, active);
  addTo(state + 96, g, active);
  addTo(state + 112, h, active);
}

/** Adds `v` in the lanes that take part. */
function addTo(at: usize, v: v128, active: v128): void {
  v128.store(at, add(v128.load(at), v128.and(v, active)));
}

function setState(tables: usize, from: usize): void {
  for (let i: usize = 0; i < 8; i++) v128.store(tables + STATE_AT + (i << 4), v128.load32_splat(from + (i << 2)));
}

/** Reverses the bytes of each word. */
function swapped(v: v128): v128 {
  return i8x16.shuffle(v, v, 3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
}

/** Four rows of four words become four columns; they lie 64 bytes apart at `from`, and 16 at `to`. */
function transpose(from: usize, to: usize): void {
  const a = swapped(v128.load(from));
  const b = swapped(v128.load(from + BLOCK_BYTES));
  const c = swapped(v128.load(from + 2 * BLOCK_BYTES));
  const d = swapped(v128.load(from + 3 * BLOCK_BYTES));
  const ab = i32x4.shuffle(a, b, 0, 4, 1, 5);
  const cd = i32x4.shuffle(c, d, 0, 4, 1, 5);
  const ab2 = i32x4.shuffle(a, b, 2, 6, 3, 7);
  const cd2 = i32x4.shuffle(c, d, 2, 6, 3, 7);
  v128.store(to, i64x2.shuffle(ab, cd, 0, 2));
  v128.store(to, i64x2.shuffle(ab, cd, 1, 3), 16);
  v128.store(to, i64x2.shuffle(ab2, cd2, 0, 2), 32);
  v128.store(to, i64x2.shuffle(ab2, cd2, 1, 3), 48);
}

/** The words of the four blocks. */
function loadWords(tables: usize): void {
  for (let i: usize = 0; i < 4; i++) transpose(tables + BLOCKS_AT + (i << 4), tables + WORDS_AT + (i << 6));
}

/**
 * Makes the state of a key of `INNER_AT` or `OUTER_AT` from the initial one there, and its block in the first of the
 * blocks.
 */
export function prepareKey(tables: usize, isOuter: bool): void {
  const at = tables + (isOuter ? OUTER_AT : INNER_AT);
  loadWords(tables);
  setState(tables, at);
  v128.store(tables + ACTIVE_AT, i32x4.splat(-1));
  compress(tables);
  for (let i: usize = 0; i < 8; i++) store<i32>(at + (i << 2), load<i32>(tables + STATE_AT + (i << 4)));
}

/** Sixteen bytes of a text from `at` on; zeros behind its `length`. */
function textPart(text: usize, length: i32, at: i32): v128 {
  const positions = i8x16.add(i8x16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), i8x16.splat(<i8>at));
  return v128.and(v128.load(text + <usize>at), i8x16.lt_s(positions, i8x16.splat(<i8>length)));
}

/** The bytes of a value from `done` on, and its padding, as a block. */
function putBlock(block: usize, value: usize, length: i32, done: i32): void {
  const text = value + <usize>min(done, length);
  const rest = length - done;
  const here = min(rest, <i32>BLOCK_BYTES);
  v128.store(block, textPart(text, here, 0));
  v128.store(block, textPart(text, here, 16), 16);
  v128.store(block, textPart(text, here, 32), 32);
  v128.store(block, textPart(text, here, 48), 48);
  if (<u32>rest < <u32>BLOCK_BYTES) store<u8>(block + <usize>rest, 0x80);
  if (rest + PADDING_BYTES <= <i32>BLOCK_BYTES) store<u32>(block, bswap<u32>(<u32>(KEY_BITS + length * 8)), 60);
}

/** Sixteen bytes as 32 hex digits. */
function putHex(v: v128, to: usize): void {
  const digits = i8x16(48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 97, 98, 99, 100, 101, 102);
  const high = i8x16.swizzle(digits, i8x16.shr_u(v, 4));
  const low = i8x16.swizzle(digits, v128.and(v, i8x16.splat(15)));
  v128.store(to, i8x16.shuffle(high, low, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23));
  v128.store(to, i8x16.shuffle(high, low, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31), 16);
}

function jobAt(jobs: usize, end: usize, lane: usize): usize {
  const job = jobs + lane * JOB_BYTES;
  return job < end ? job : end - JOB_BYTES;
}

/** Makes words of the values' bytes from `done` on; false if all values have ended. */
function loadBlocks(base: usize, jobs: usize, end: usize, done: i32): bool {
  let isAny = false;
  for (let lane: usize = 0; lane < 4; lane++) {
    const job = jobAt(jobs, end, lane);
    const length = load<i32>(job, 4);
    const isActive = length + PADDING_BYTES > done;
    store<i32>(base + ACTIVE_AT + (lane << 2), -i32(isActive));
    if (!isActive) continue;
    putBlock(base + BLOCKS_AT + lane * BLOCK_BYTES, base + <usize>load<i32>(job), length, done);
    isAny = true;
  }
  if (isAny) loadWords(base);
  return isAny;
}

/** Writes the hashes of all jobs; none is left then. */
export function hashJobs(base: usize): void {
  const end = base + <usize>getInfo(JOBS_END);
  const words = base + WORDS_AT;
  const state = base + STATE_AT;
  for (let jobs = base + JOBS_AT; jobs < end; jobs += 4 * JOB_BYTES) {
    setState(base, base + INNER_AT);
    for (let done = 0; loadBlocks(base, jobs, end, done); done += <i32>BLOCK_BYTES) compress(base);
    for (let i: usize = 0; i < 8; i++) v128.store(words + (i << 4), v128.load(state + (i << 4)));
    v128.store(words, i32x4.splat(<i32>0x80000000), 128);
    for (let i: usize = 9; i < 15; i++) v128.store(words + (i << 4), i32x4.splat(0));
    v128.store(words, i32x4.splat(OUTER_BITS), 240);
    setState(base, base + OUTER_AT);
    v128.store(base + ACTIVE_AT, i32x4.splat(-1));
    compress(base);
    for (let lane: usize = 0; lane < 4; lane++) {
      const job = jobAt(jobs, end, lane);
      const out = base + <usize>load<i32>(job, 8);
      putHex(digestPart(state, lane), out);
      putHex(digestPart(state + 64, lane), out + 32);
    }
  }
  setInfo(JOBS_END, JOBS_AT);
}

/** Four words of a lane, as the bytes of a digest. */
function digestPart(state: usize, lane: usize): v128 {
  const at = state + (lane << 2);
  const v = i32x4(load<i32>(at), load<i32>(at, 16), load<i32>(at, 32), load<i32>(at, 48));
  return swapped(v);
}
