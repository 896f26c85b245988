import { readSync } from 'node:fs';
import { defect } from '../../base/errors.ts';
import { SENTINEL } from '../../csv/tokenizer.ts';
import { CsvMemory } from '../../csv/wasm/csv-memory.ts';

/** The tokenizer's sentinel, and what vector loads may touch behind the last row. */
export const BLOCK_MARGIN = 64;
const FIRST_INPUT_BYTES = 1 << 19;

/** Where the current block of a file lies. */
export interface RowMemory {
  /** Undefined where there is no SIMD: then TypeScript reads the rows. */
  readonly simd: CsvMemory | undefined;
  /** May be another array after each call of a method. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Where the block starts in `bytes`. */
  readonly start: number;
  /** Reads bytes [from, to) of a file, with the tokenizer's sentinel behind them, and returns where they end. */
  read(file: number, from: number, to: number): number;
}

/** With SIMD the block lies behind other things in one memory, without it alone on the heap. */
export class BlockMemory implements RowMemory {
  readonly simd: CsvMemory | undefined;
  bytes: Uint8Array<ArrayBuffer>;
  readonly start: number;

  /** `reserved`: bytes that are kept free in front of the block where there is SIMD. */
  constructor(reserved: number) {
    const start = reserved + BLOCK_MARGIN;
    this.simd = CsvMemory.open(start + FIRST_INPUT_BYTES);
    this.start = this.simd === undefined ? 0 : start;
    this.bytes = this.simd?.bytes ?? new Uint8Array(FIRST_INPUT_BYTES);
  }

  read(file: number, from: number, to: number): number {
    const end = this.start + to - from;
    this.#reserve(end + BLOCK_MARGIN);
    return readBlock(file, this.bytes, this.start, from, to);
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

/** Reads bytes [from, to) of a file to `start` of `bytes`, sets the sentinel behind them and returns its place. */
function readBlock(file: number, bytes: Uint8Array, start: number, from: number, to: number): number {
  const end = start + to - from;
  for (let at = start; at < end; ) {
    const read = readSync(file, bytes, at, end - at, from + at - start);
    if (read === 0) throw defect('A verified export became shorter while it was read.');
    at += read;
  }
  bytes[end] = SENTINEL;
  return end;
}
