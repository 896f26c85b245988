import { CsvMemory } from './csv-memory.ts';
import { DATA_AT } from './layout.ts';

/** Bytes kept free behind the data: for the tokenizer's sentinel and one line end. */
const MARGIN = 8;
const START_BYTES = 1 << 20;

/** Collects bytes in a memory until they are whole rows: chunks of any size become one contiguous run. */
export class RowBuffer {
  readonly memory: CsvMemory;
  /** Index of the first byte for rows. */
  readonly front: number;
  start: number;
  end: number;

  constructor(front: number) {
    this.memory = CsvMemory.open(front - DATA_AT + START_BYTES);
    this.front = front;
    this.start = front;
    this.end = front;
  }

  get length(): number {
    return this.end - this.start;
  }

  /** Copies a chunk behind the remaining bytes, which it first moves to the front; earlier positions are void. */
  append(chunk: Uint8Array): void {
    if (this.start > this.front) {
      this.memory.bytes.copyWithin(this.front, this.start, this.end);
      this.end -= this.start - this.front;
      this.start = this.front;
    }
    this.reserve(chunk.length);
    this.memory.bytes.set(chunk, this.end);
    this.end += chunk.length;
  }

  /** Makes room for `more` bytes behind `end`; positions stay valid. */
  reserve(more: number): void {
    this.memory.grow(this.end + more + MARGIN);
  }
}
