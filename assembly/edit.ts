// Rows without dropped columns and with hashes for values, with 128-bit SIMD, in AssemblyScript: `npm run wasm`
// compiles this file into src/cells/csv/csv.wasm. It handles the plain case and hands every other one back to the code in
// TypeScript. src/cells/csv/layout.ts says what lies where in the memory.

import { COMMA } from '../src/base/ascii';
import {
  ACTIONS_AT,
  BARE_CR,
  BLOCKS_AT,
  CELLS_AT,
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
  SHA_BLOCK_BYTES,
  STRIDE,
  TABLES_AT,
  USED,
} from '../src/cells/csv/layout';
import { copy, getInfo, NOT_PLAIN, setInfo } from './bytes';

const HASH_BYTES: usize = 64;
/** A value with its padding is four blocks of SHA-256. */
const LONGEST_VALUE: i32 = 247;

function commas(count: i32, to: usize): usize {
  for (let i = 0; i < count; i++) store<u8>(to++, COMMA);
  return to;
}

/**
 * Writes the row [start, contentEnd), of which `used` numbers of cells are listed, to `out`, without its line end: room
 * is left for each hash, and a job for it stored behind the others. The cells that stay get their new columns in place.
 * Sets USED and JOBS_END. Returns where the row ends; NOT_PLAIN for one with a value that is too long or is not as it is
 * written. Up to fifteen bytes more may be overwritten.
 */
export function editRow(used: i32, start: i32, contentEnd: i32, width: i32, newWidth: i32, out: usize): i32 {
  const cells: usize = CELLS_AT;
  for (let k = 0; k < used; k += STRIDE) {
    const cell = cells + ((<usize>k) << 2);
    const head = load<i32>(cell);
    const action = <i32>load<u8>(<usize>ACTIONS_AT + <usize>(head >> COLUMN_SHIFT));
    if (action === KEEP ? (head & BARE_CR) !== 0 : action !== DROP && !isShort(cell, head, action)) return NOT_PLAIN;
  }
  let jobs = <usize>getInfo(JOBS_END);
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
    const action = <i32>load<u8>(<usize>ACTIONS_AT + <usize>next);
    const valueStart = load<i32>(cell, 4);
    const valueEnd = load<i32>(cell, 8);
    const quote = head & QUOTED;
    if (action === DROP) {
      to = copy(<usize>from, ended - from, to);
      from = valueEnd + quote;
      ended = from;
      continue;
    }
    const nextPosition = load<i32>(<usize>POSITIONS_AT + ((<usize>next) << 2));
    if (nextPosition - position !== next - column) {
      to = copy(<usize>from, ended - from, to);
      to = commas(nextPosition - position, to);
      from = valueStart - quote;
    }
    if (action !== KEEP) {
      to = copy(<usize>from, valueStart - quote - from, to);
      jobs = addJob(jobs, valueStart, valueEnd, <i32>to);
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
  to = copy(<usize>from, (isWhole ? contentEnd : ended) - from, to);
  if (!isWhole) to = commas(newWidth - 1 - position, to);
  setInfo(USED, <i32>(kept - cells) >> 2);
  setInfo(JOBS_END, <i32>jobs);
  return <i32>to;
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

/** Places of words and states, behind the constants of the rounds; src/cells/csv/layout.ts has those of the key and of blocks. */
const WORDS_AT: usize = TABLES_AT + 256;
const STATE_AT: usize = TABLES_AT + 1_280;
/** For each lane all bits if it takes part in `compress`, or none. */
const ACTIVE_AT: usize = TABLES_AT + 1_728;
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
function compress(): void {
  const state = STATE_AT;
  let a = v128.load(state);
  let b = v128.load(state, 16);
  let c = v128.load(state, 32);
  let d = v128.load(state, 48);
  let e = v128.load(state, 64);
  let f = v128.load(state, 80);
  let g = v128.load(state, 96);
  let h = v128.load(state, 112);
  for (let t: usize = 0; t < 64; t++) {
    const word = WORDS_AT + (t << 4);
    if (t < 48) extend(word);
    const kw = add(v128.load32_splat(<usize>TABLES_AT + (t << 2)), v128.load(word));
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
  const active = v128.load(ACTIVE_AT);
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

function setState(from: usize): void {
  for (let i: usize = 0; i < 8; i++) v128.store(STATE_AT + (i << 4), v128.load32_splat(from + (i << 2)));
}

/** Reverses the bytes of each word. */
function swapped(v: v128): v128 {
  return i8x16.shuffle(v, v, 3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12);
}

/** Four rows of four words become four columns; they lie 64 bytes apart at `from`, and 16 at `to`. */
function transpose(from: usize, to: usize): void {
  const a = swapped(v128.load(from));
  const b = swapped(v128.load(from + SHA_BLOCK_BYTES));
  const c = swapped(v128.load(from + 2 * SHA_BLOCK_BYTES));
  const d = swapped(v128.load(from + 3 * SHA_BLOCK_BYTES));
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
function loadWords(): void {
  for (let i: usize = 0; i < 4; i++) transpose(<usize>BLOCKS_AT + (i << 4), WORDS_AT + (i << 6));
}

/**
 * Makes the state of a key of `INNER_AT` or `OUTER_AT` from the initial one there, and its block in the first of the
 * blocks.
 */
export function prepareKey(isOuter: bool): void {
  const at: usize = isOuter ? OUTER_AT : INNER_AT;
  loadWords();
  setState(at);
  v128.store(ACTIVE_AT, i32x4.splat(-1));
  compress();
  for (let i: usize = 0; i < 8; i++) store<i32>(at + (i << 2), load<i32>(STATE_AT + (i << 4)));
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
  const here = min(rest, <i32>SHA_BLOCK_BYTES);
  v128.store(block, textPart(text, here, 0));
  v128.store(block, textPart(text, here, 16), 16);
  v128.store(block, textPart(text, here, 32), 32);
  v128.store(block, textPart(text, here, 48), 48);
  if (<u32>rest < <u32>SHA_BLOCK_BYTES) store<u8>(block + <usize>rest, 0x80);
  if (rest + PADDING_BYTES <= <i32>SHA_BLOCK_BYTES) store<u32>(block, bswap<u32>(<u32>(KEY_BITS + length * 8)), 60);
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
function loadBlocks(jobs: usize, end: usize, done: i32): bool {
  let isAny = false;
  for (let lane: usize = 0; lane < 4; lane++) {
    const job = jobAt(jobs, end, lane);
    const length = load<i32>(job, 4);
    const isActive = length + PADDING_BYTES > done;
    store<i32>(ACTIVE_AT + (lane << 2), -i32(isActive));
    if (!isActive) continue;
    putBlock(<usize>BLOCKS_AT + lane * SHA_BLOCK_BYTES, <usize>load<i32>(job), length, done);
    isAny = true;
  }
  if (isAny) loadWords();
  return isAny;
}

/** Writes the hashes of all jobs; none is left then. */
export function hashJobs(): void {
  const end = <usize>getInfo(JOBS_END);
  for (let jobs: usize = JOBS_AT; jobs < end; jobs += 4 * JOB_BYTES) {
    setState(INNER_AT);
    for (let done = 0; loadBlocks(jobs, end, done); done += <i32>SHA_BLOCK_BYTES) compress();
    for (let i: usize = 0; i < 8; i++) v128.store(WORDS_AT + (i << 4), v128.load(STATE_AT + (i << 4)));
    v128.store(WORDS_AT, i32x4.splat(<i32>0x80000000), 128);
    for (let i: usize = 9; i < 15; i++) v128.store(WORDS_AT + (i << 4), i32x4.splat(0));
    v128.store(WORDS_AT, i32x4.splat(OUTER_BITS), 240);
    setState(OUTER_AT);
    v128.store(ACTIVE_AT, i32x4.splat(-1));
    compress();
    for (let lane: usize = 0; lane < 4; lane++) {
      const job = jobAt(jobs, end, lane);
      const out = <usize>load<i32>(job, 8);
      putHex(digestPart(STATE_AT, lane), out);
      putHex(digestPart(STATE_AT + 64, lane), out + 32);
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
