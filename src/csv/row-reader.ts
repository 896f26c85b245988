import { defect } from '../base/errors.ts';
import { RowBuffer } from './row-buffer.ts';
import { INCOMPLETE, RowTokenizer, SENTINEL } from './tokenizer.ts';

/**
 * Walks the rows of a normalised file (LF, valid UTF-8, checked when it was written), chunk after chunk:
 * `push`, then `next` until it is false; at the end `finish`, and `next` again. `tokenizer` lists the cells of the
 * current row as positions in `bytes`; both are good until the next call.
 */
export class RowReader {
  readonly tokenizer = new RowTokenizer();
  /** Where the current row starts in `bytes`. */
  start = 0;
  readonly #buffer = new RowBuffer();
  #last = false;
  /** Bytes without which another look at an unfinished row is not worth it. */
  #need = 0;

  get bytes(): Uint8Array {
    return this.#buffer.bytes;
  }

  push(chunk: Uint8Array): void {
    this.#buffer.append(chunk);
    this.#buffer.bytes[this.#buffer.end] = SENTINEL;
  }

  /** No more chunks: the last row may lack its line end. */
  finish(): void {
    this.#last = true;
  }

  /** Goes to the next whole row; false when there is none yet. */
  next(): boolean {
    const buffer = this.#buffer;
    if (buffer.length === 0 || (buffer.length < this.#need && !this.#last)) return false;
    const next = this.tokenizer.next(buffer.bytes, buffer.start, buffer.end, this.#last);
    if (next === INCOMPLETE) {
      this.#need = buffer.length * 2;
      return false;
    }
    if (next < 0) throw defect('A verified file can no longer be read as CSV: it was changed after it was written.');
    this.#need = 0;
    this.start = buffer.start;
    buffer.start = next;
    return true;
  }
}
