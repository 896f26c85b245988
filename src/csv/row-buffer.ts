import { CsvMemory } from './csv-memory.ts';

/** Room kept beyond the data: the tokenizer's sentinel and one line end. */
const MARGIN = 8;
const START_BYTES = 1 << 20;

/**
 * Bytes waiting to become whole rows: chunks of any size go in, one contiguous run comes out, whatever the cuts.
 * `bytes` is a plain Uint8Array (never a Buffer: one hidden class keeps the loops over it fast) and may be replaced by
 * `append`.
 */
export class RowBuffer {
  /** Bytes in front of the rows that this class does not use. */
  readonly front: number;
  /** Undefined where there is none: then `bytes` is on the heap. */
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

  /** Copies a chunk behind the rest, first moving that to the front; positions taken earlier are void. */
  append(chunk: Uint8Array): void {
    if (this.start > this.front) this.#toFront();
    this.reserve(chunk.length);
    this.bytes.set(chunk, this.end);
    this.end += chunk.length;
  }

  /** Makes room for `more` bytes behind `end`; positions stay. */
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
