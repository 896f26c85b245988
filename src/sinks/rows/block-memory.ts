import { readSync } from 'node:fs';
import { defect } from '../../base/errors.ts';
import { SENTINEL } from '../../csv/tokenizer.ts';
import { CsvMemory } from '../../csv/wasm/csv-memory.ts';

/** The tokenizer's sentinel, and what vector loads may touch behind the last row. */
const MARGIN = 64;
const FIRST_INPUT_BYTES = 1 << 19;

/** Where the current block lies: with SIMD behind other things in one memory, without it alone on the heap. */
export class BlockMemory {
  readonly simd: CsvMemory | undefined;
  bytes: Uint8Array<ArrayBuffer>;
  /** Where the block starts in `bytes`. */
  readonly start: number;

  /** `reserved`: bytes that are kept free in front of the block where there is SIMD. */
  constructor(reserved = 0) {
    const start = reserved === 0 ? 0 : reserved + MARGIN;
    this.simd = CsvMemory.open(start + FIRST_INPUT_BYTES);
    this.start = this.simd === undefined ? 0 : start;
    this.bytes = this.simd?.bytes ?? new Uint8Array(FIRST_INPUT_BYTES);
  }

  /** Reads bytes [from, to) of a file and returns where they end in `bytes`, which may be another array from then on. */
  read(file: number, from: number, to: number): number {
    const end = this.start + to - from;
    this.#reserve(end + MARGIN);
    for (let at = this.start; at < end; ) {
      const read = readSync(file, this.bytes, at, end - at, from + at - this.start);
      if (read === 0) throw defect('A verified export became shorter while it was read.');
      at += read;
    }
    this.bytes[end] = SENTINEL;
    return end;
  }

  /** The memory must not be used any more. */
  release(): void {
    this.simd?.release();
  }

  #reserve(bytes: number): void {
    if (this.simd !== undefined) {
      this.simd.grow(bytes);
      this.bytes = this.simd.bytes;
    } else if (this.bytes.length < bytes) this.bytes = new Uint8Array(bytes);
  }
}
