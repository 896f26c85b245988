import { readSync } from 'node:fs';
import { defect } from '../../../base/errors.ts';
import { SENTINEL } from '../../../csv/tokenizer.ts';
import { CsvMemory } from '../../../csv/wasm/csv-memory.ts';
import type { Staging } from '../encode/line-buffer.ts';
import type { RecordEncoder } from '../encode/record-encoder.ts';

/** The tokenizer's sentinel, and what vector loads may touch behind the last row. */
const MARGIN = 64;
const FIRST_INPUT_BYTES = 1 << 19;
const STAGING_BYTES = 1 << 18;
/** Small rows that the staging memory holds at least, however much room each is given for a wide header. */
const STAGING_ROWS = 4;

/**
 * Where the block at hand lies. With SIMD one memory holds, one behind the other, the tables of the streams, the staging
 * memory of the lines, and the block; without it the block alone is on the heap.
 */
export class BlockMemory {
  readonly simd: CsvMemory | undefined;
  bytes: Uint8Array<ArrayBuffer>;
  /** Where the block starts in `bytes`. */
  readonly start: number;
  readonly #stagingAt: number;
  readonly #stagingBytes: number;

  constructor(encoders: readonly RecordEncoder[]) {
    this.#stagingAt = encoders.reduce((sum, encoder) => sum + encoder.tableBytes, 0);
    this.#stagingBytes = Math.max(STAGING_BYTES, ...encoders.map(({ room }) => room * STAGING_ROWS));
    const start = this.#stagingAt + this.#stagingBytes + MARGIN;
    this.simd = CsvMemory.open(start + FIRST_INPUT_BYTES);
    this.start = this.simd === undefined ? 0 : start;
    this.bytes = this.simd?.bytes ?? new Uint8Array(FIRST_INPUT_BYTES);
    let at = 0;
    for (const encoder of encoders) {
      if (this.simd !== undefined) encoder.useMemory(this.simd, at);
      at += encoder.tableBytes;
    }
  }

  get staging(): Staging | undefined {
    if (this.simd === undefined) return undefined;
    return { bytes: this.bytes, from: this.#stagingAt, to: this.#stagingAt + this.#stagingBytes };
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
