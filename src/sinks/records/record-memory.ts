import { readSync } from 'node:fs';
import { internalError } from '../../base/errors.ts';
import { CsvMemory } from '../../csv/csv-memory.ts';
import { SENTINEL } from '../../csv/tokenizer.ts';

/** Bytes behind the last row for the tokenizer's sentinel and for reads of vector loads. */
const BLOCK_MARGIN = 64;
const FIRST_BLOCK_BYTES = 1 << 19;
const FIRST_LINES_BYTES = 1 << 20;

/**
 * The memory in which the blocks of a file become lines. With SIMD one memory holds tables, a part of the lines, and
 * the current block; without it, block and lines are on the heap. Lines are collected in a buffer that can be sent to
 * another thread. `read` and `reserve` may replace the arrays.
 */
export class RecordMemory {
  /** The memory for SIMD; undefined without SIMD: then TypeScript reads and writes the rows. */
  readonly simd: CsvMemory | undefined;
  /** The array that holds the current block in [start, end), with the tokenizer's sentinel behind it. */
  bytes: Uint8Array<ArrayBuffer>;
  readonly start: number;
  end = 0;
  /** The next byte of a line goes to index `at` of `out`; `reserve` sets both. */
  out: Uint8Array<ArrayBuffer>;
  at = 0;
  /** The lines in `simd` are in [tableBytes, linesEnd). */
  readonly #tableBytes: number;
  readonly #linesEnd: number;
  #lines = new Uint8Array(0);
  /** Number of bytes collected in `#lines`. */
  #length = 0;

  constructor(tableBytes: number, lineBytes: number) {
    this.#tableBytes = tableBytes;
    this.#linesEnd = tableBytes + lineBytes;
    const start = this.#linesEnd + BLOCK_MARGIN;
    this.simd = CsvMemory.open(start + FIRST_BLOCK_BYTES);
    this.start = this.simd === undefined ? 0 : start;
    this.bytes = this.simd?.bytes ?? new Uint8Array(FIRST_BLOCK_BYTES);
    this.out = this.#lines;
  }

  /** Reads bytes [from, to) of a file as the current block. */
  read(file: number, from: number, to: number): void {
    this.end = this.start + to - from;
    this.#growBlock(this.end + BLOCK_MARGIN);
    for (let at = this.start; at < this.end; ) {
      const read = readSync(file, this.bytes, at, this.end - at, from + at - this.start);
      if (read === 0) throw internalError('A verified export became shorter while it was read.');
      at += read;
    }
    this.bytes[this.end] = SENTINEL;
  }

  /** Begins new lines, after the last `read`. `buffer` is memory for them that nothing else uses. */
  begin(buffer: ArrayBuffer | undefined): void {
    this.#lines = new Uint8Array(buffer ?? new ArrayBuffer(FIRST_LINES_BYTES));
    this.#length = 0;
    this.out = this.#lines;
    this.at = 0;
  }

  /** Makes room for `more` bytes behind `at`. */
  reserve(more: number): void {
    const { simd } = this;
    if (this.out === simd?.bytes && this.at + more <= this.#linesEnd) return;
    this.#collect();
    if (simd !== undefined && more <= this.#linesEnd - this.#tableBytes) {
      this.out = simd.bytes;
      this.at = this.#tableBytes;
      return;
    }
    this.#growLines(this.#length + more);
    this.out = this.#lines;
    this.at = this.#length;
  }

  /** Returns all lines, from byte 0 of `buffer` on. */
  finish(): { readonly buffer: ArrayBuffer; readonly length: number } {
    this.#collect();
    const { buffer } = this.#lines;
    this.out = this.#lines = new Uint8Array(0);
    return { buffer, length: this.#length };
  }

  release(): void {
    this.simd?.release();
  }

  #collect(): void {
    if (this.out !== this.simd?.bytes) {
      this.#length = this.at;
      return;
    }
    const length = this.at - this.#tableBytes;
    this.#growLines(this.#length + length);
    this.#lines.set(this.out.subarray(this.#tableBytes, this.at), this.#length);
    this.#length += length;
    this.at = this.#tableBytes;
  }

  #growLines(needed: number): void {
    if (needed <= this.#lines.length) return;
    const larger = new Uint8Array(Math.max(needed, this.#lines.length * 2));
    larger.set(this.#lines.subarray(0, this.#length));
    this.#lines = larger;
  }

  #growBlock(bytes: number): void {
    if (this.simd !== undefined) {
      this.simd.grow(bytes);
      this.bytes = this.simd.bytes;
    } else if (this.bytes.length < bytes) this.bytes = new Uint8Array(bytes);
  }
}
