import { CsvMemory } from './csv-memory.ts';

/** Bytes kept free behind the data: for the tokenizer's sentinel and one line end. */
const MARGIN = 8;
const START_BYTES = 1 << 20;

/**
 * Collects bytes until they are whole rows: chunks of any size become one contiguous run. `bytes` is a plain Uint8Array
 * (never a Buffer: a single hidden class keeps the loops over it fast), and `append` may replace it.
 */
export class RowBuffer {
  /** Number of bytes in front of the rows that this class does not use. */
  readonly front: number;
  /** The memory that holds `bytes`; undefined if they are on the heap. */
  memory: CsvMemory | undefined;
  bytes: Uint8Array<ArrayBuffer>;
  start: number;
  end: number;

  constructor(front = 0) {
    this.front = front;
    this.memory = CsvMemory.open(front + START_BYTES);
    this.bytes = this.memory?.bytes ?? new Uint8Array(front + START_BYTES);
    this.start = front;
    this.end = front;
  }

  get length(): number {
    return this.end - this.start;
  }

  /** Copies a chunk behind the remaining bytes, which it first moves to the front; earlier positions are void. */
  append(chunk: Uint8Array): void {
    if (this.start > this.front) this.#toFront();
    this.reserve(chunk.length);
    this.bytes.set(chunk, this.end);
    this.end += chunk.length;
  }

  /** Makes room for `more` bytes behind `end`; positions stay valid. */
  reserve(more: number): void {
    const needed = this.end + more + MARGIN;
    if (needed <= this.bytes.length) return;
    if (this.memory !== undefined) {
      this.memory.grow(Math.max(needed, this.bytes.length * 2));
      this.bytes = this.memory.bytes;
      return;
    }
    const larger = new Uint8Array(Math.max(needed, this.bytes.length * 2));
    larger.set(this.bytes.subarray(0, this.end));
    this.bytes = larger;
  }

  /** Gives the memory back; the buffer must not be used any more. */
  release(): void {
    this.bytes = new Uint8Array(MARGIN);
    this.memory?.release();
    this.memory = undefined;
  }

  #toFront(): void {
    this.bytes.copyWithin(this.front, this.start, this.end);
    this.end -= this.start - this.front;
    this.start = this.front;
  }
}
