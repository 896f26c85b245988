import { readSync } from 'node:fs';
import { internalError } from '../../base/errors.ts';
import { CsvMemory } from '../../cells/csv/csv-memory.ts';
import { DATA_AT } from '../../cells/csv/layout.ts';
import { SENTINEL } from '../../cells/csv/tokenizer.ts';

/** Bytes behind the last row for the tokenizer's sentinel and for reads of vector loads. */
const BLOCK_MARGIN = 64;
/** First size of block and lines, and the unit of the buffers in which lines are handed on. */
const FIRST_BYTES = 1 << 20;

/**
 * The memory in which the blocks of a file become lines: tables, the current block, and behind it its lines. `read` and
 * `reserve` may replace the arrays of `csv`.
 */
export class RecordMemory {
  readonly csv: CsvMemory;
  /** The current block is in [start, end), with the tokenizer's sentinel behind it. */
  readonly start: number;
  end = 0;
  /** Index of the next byte of a line. */
  at = 0;

  constructor(tableBytes: number) {
    this.start = DATA_AT + tableBytes;
    this.csv = CsvMemory.open(tableBytes + 2 * FIRST_BYTES);
  }

  /** Reads bytes [from, to) of a file as the current block, and begins its lines. */
  read(file: number, from: number, to: number): void {
    this.end = this.start + to - from;
    this.at = this.end + BLOCK_MARGIN;
    this.csv.grow(this.at);
    const { bytes } = this.csv;
    for (let at = this.start; at < this.end; ) {
      const read = readSync(file, bytes, at, this.end - at, from + at - this.start);
      if (read === 0) throw internalError('A verified export became shorter while it was read.');
      at += read;
    }
    bytes[this.end] = SENTINEL;
  }

  /** Makes room for `more` bytes behind `at`. */
  reserve(more: number): void {
    this.csv.grow(this.at + more);
  }

  /** Returns the lines, from byte 0 of `buffer` on: the given one, which nothing else uses, if it is large enough. */
  finish(given: ArrayBuffer | undefined): { readonly buffer: ArrayBuffer; readonly length: number } {
    const lines = this.csv.bytes.subarray(this.end + BLOCK_MARGIN, this.at);
    const { length } = lines;
    const isLarge = given !== undefined && given.byteLength >= length;
    const buffer = isLarge ? given : new ArrayBuffer(Math.ceil(length / FIRST_BYTES) * FIRST_BYTES);
    new Uint8Array(buffer).set(lines);
    return { buffer, length };
  }
}
