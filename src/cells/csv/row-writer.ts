import { LF, QUOTE } from '../../base/ascii.ts';
import { BARE_CR, type RowTokenizer, STRIDE } from './tokenizer.ts';

/** Writes the rows that are kept. */
export interface RowOutput {
  /** Starts with the rows in `bytes`, from `at` on; the bytes before it are no longer needed. */
  begin(bytes: Buffer, at: number): void;
  /** Keeps the row that the tokenizer just read at `start`, and returns its written length (bytes). */
  keep(tokenizer: RowTokenizer, start: number): number;
  /** The bytes of all rows that were kept since `begin`. */
  finish(): Uint8Array[];
}

/**
 * Writes kept rows with LF ends over the bytes that they came from. Unchanged rows are never copied. What `finish`
 * returns are views of the buffer, and a copy of each row that had to grow.
 */
export class RowWriter implements RowOutput {
  #parts: Uint8Array[] = [];
  #bytes: Buffer = Buffer.alloc(0);
  #from = 0;
  #to = 0;

  begin(bytes: Buffer, at: number): void {
    this.#parts = [];
    this.#bytes = bytes;
    this.#from = at;
    this.#to = at;
  }

  keep(tokenizer: RowTokenizer, start: number): number {
    if ((tokenizer.flags & BARE_CR) !== 0) return this.#rewrite(tokenizer, start);
    const bytes = this.#bytes;
    const length = tokenizer.contentEnd - start;
    if (this.#to !== start) bytes.copyWithin(this.#to, start, tokenizer.contentEnd);
    this.#to += length;
    bytes[this.#to++] = LF;
    return length + 1;
  }

  finish(): Uint8Array[] {
    this.#flush();
    return this.#parts;
  }

  #flush(): void {
    if (this.#to > this.#from) this.#parts.push(this.#bytes.subarray(this.#from, this.#to));
  }

  /** Rewrites a row with a CR that ends no line: many readers would end the row there, so that its cell gets quotes. */
  #rewrite(tokenizer: RowTokenizer, start: number): number {
    const { cells, used, contentEnd } = tokenizer;
    const out = new Uint8Array(contentEnd - start + used + 1);
    let from = start;
    let to = 0;
    const copy = (end: number) => {
      out.set(this.#bytes.subarray(from, end), to);
      to += end - from;
      from = end;
    };
    for (let k = 0; k < used; k += STRIDE) {
      if ((cells[k] & BARE_CR) === 0) continue;
      copy(cells[k + 1]);
      out[to++] = QUOTE;
      copy(cells[k + 2]);
      out[to++] = QUOTE;
    }
    copy(contentEnd);
    out[to++] = LF;
    this.#flush();
    this.#parts.push(out.subarray(0, to));
    this.#from = contentEnd;
    this.#to = contentEnd;
    return to;
  }
}
