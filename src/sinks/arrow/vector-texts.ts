import { INLINE_AT, INLINE_BYTES, maskOf, type RawVector, TEXT_BYTES, textAt, valuesOf } from './duckdb-vectors.ts';
import { isSet } from './validity.ts';

/** Of each string in a vector, as 32-bit words: its length, itself or its first bytes, where it is. */
const WORDS = TEXT_BYTES / 4;
const POINTER_LOW = 2;
const POINTER_HIGH = 3;
const HIGH = 2 ** 32;

/** Takes the text of one row after another: [start, end) of `bytes`, valid during the call. */
export type TakeText = (row: number, bytes: Uint8Array, start: number, end: number) => void;

/**
 * Hands over the strings of rows [from, from + count) that have a value. Asking DuckDB for one string costs more than
 * copying a hundred, so strings that lie one behind the other in its memory are asked for together, and never a byte
 * beyond them.
 */
export function readTexts(vector: RawVector, from: number, count: number, take: TakeText): Uint8Array | null {
  const end = from + count;
  const mask = maskOf(vector, end);
  const values = valuesOf(vector, end * TEXT_BYTES);
  const words = new Uint32Array(values.buffer, values.byteOffset, end * WORDS);
  let run = values;
  let at = 0;
  let left = 0;
  for (let row = from; row < end; row++) {
    if (mask !== null && !isSet(mask, row)) continue;
    const length = words[row * WORDS];
    if (length <= INLINE_BYTES) {
      const start = row * TEXT_BYTES + INLINE_AT;
      take(row, values, start, start + length);
      continue;
    }
    if (left === 0) {
      left = runLength(words, mask, row, end);
      run = textAt(values, row, left);
      at = 0;
    }
    take(row, run, at, at + length);
    at += length;
    left -= length;
  }
  return mask;
}

/** Bytes from the long string in `row` on that belong to it and the long strings right behind it in memory. */
function runLength(words: Uint32Array, mask: Uint8Array | null, first: number, end: number): number {
  const start = words[first * WORDS + POINTER_HIGH] * HIGH + words[first * WORDS + POINTER_LOW];
  let bytes = 0;
  for (let row = first; row < end; row++) {
    const at = row * WORDS;
    const length = words[at];
    if (length <= INLINE_BYTES || (mask !== null && !isSet(mask, row))) continue;
    if (words[at + POINTER_HIGH] * HIGH + words[at + POINTER_LOW] !== start + bytes) break;
    bytes += length;
  }
  return bytes;
}
