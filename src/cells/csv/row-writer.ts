import { COMMA, isNull, LF, QUOTE } from '../../base/ascii.ts';
import { BARE_CR, CellText, type CsvRow, STRIDE } from './row.ts';

// Actions on the cells of a column: they stay, each value but `null` is replaced by its hash, or all are dropped.

export const KEEP = 0;
export const HASH = 1;
export const DROP = 2;

/** Hashes values; a hash is 64 ASCII characters, none of them special in CSV. */
interface ValueHash {
  hashOf(value: Uint8Array): string;
}

const HASH_BYTES = 64;

/**
 * Writes kept rows with LF ends, without dropped columns, and with hashes in place of hashed values. Rows that need no
 * change are a range of the source. It is copied only if another row does need one.
 */
export class RowWriter {
  readonly #actions: Uint8Array;
  readonly #hasher: ValueHash | undefined;
  readonly #text = new CellText();
  /** For each column its index in the written row: the number of kept columns before it. */
  readonly #positions: Int32Array;
  #width = 0;
  /** Number of columns that are hashed. */
  readonly #hashedColumns: number;
  /** True if all columns stay as they are. */
  readonly #isPlain: boolean;
  #source: Buffer = Buffer.alloc(0);
  /** The bytes [from, until) of the source come next. */
  #from = 0;
  #until = 0;
  #out: Buffer = Buffer.alloc(1 << 16);
  /** The index behind the written bytes of `out`. */
  #to = 0;

  /** `actions`: one for each column. */
  constructor(actions: Uint8Array, hasher: ValueHash | undefined) {
    this.#actions = actions;
    this.#hasher = hasher;
    this.#positions = Int32Array.from(actions, (action) => (action === DROP ? this.#width : this.#width++));
    this.#hashedColumns = actions.filter((action) => action === HASH).length;
    this.#isPlain = actions.every((action) => action === KEEP);
  }

  /** Writes a row, of a header without hashes; returns its written length. */
  write(row: CsvRow, isHeader: boolean): number {
    const { bytes, start, contentEnd } = row;
    this.#source = bytes;
    if (!this.#isPlain || (row.flags & BARE_CR) !== 0) return this.#edit(row, isHeader);
    if (start !== this.#until) {
      this.#flush();
      this.#from = start;
    }
    this.#until = contentEnd;
    if (bytes[contentEnd] === LF) this.#until++;
    else {
      this.#flush();
      this.#out[this.#to++] = LF;
    }
    return contentEnd - start + 1;
  }

  /** The bytes of all rows since the last call, valid until the source changes, or the next row is written. */
  take(): Uint8Array {
    if (this.#to > 0) this.#flush();
    const written = this.#to > 0 ? this.#out.subarray(0, this.#to) : this.#source.subarray(this.#from, this.#until);
    this.#from = 0;
    this.#until = 0;
    this.#to = 0;
    return written;
  }

  /** Copies the range of unchanged rows; afterwards there is room for one byte more. */
  #flush(): void {
    this.#reserve(this.#until - this.#from + 1);
    this.#copy(this.#from, this.#until);
    this.#from = this.#until;
  }

  /** Writes a row, cell by cell, with dropped or hashed cells, or with a CR that ends no line. */
  #edit(row: CsvRow, isHeader: boolean): number {
    const { used, start, contentEnd } = row;
    this.#flush();
    // Room for the row with its commas, hashes, quotes around each cell, and the end of the line.
    this.#reserve(contentEnd - start + this.#hashedColumns * HASH_BYTES + used + 3);
    const begin = this.#to;
    let commas = 0;
    for (let k = 0; k < used; k += STRIDE) {
      const column = row.columnOf(k);
      const action = this.#actions[column];
      if (action === DROP) continue;
      for (; commas < this.#positions[column]; commas++) this.#out[this.#to++] = COMMA;
      this.#writeCell(row, k, isHeader ? KEEP : action);
    }
    for (; commas < this.#width - 1; commas++) this.#out[this.#to++] = COMMA;
    // A row of one empty cell must not become a blank line.
    if (this.#width === 1 && this.#to === begin) this.#writeText('""');
    this.#out[this.#to++] = LF;
    return this.#to - begin;
  }

  /** Writes the cell whose entries begin at `k`. */
  #writeCell(row: CsvRow, k: number, action: number): void {
    const [start, end] = [row.startOf(k), row.endOf(k)];
    if (action === HASH && !isNull(row.bytes, start, end)) {
      if (this.#hasher === undefined) throw new TypeError('a hash without a key');
      this.#text.read(row, k);
      this.#writeText(this.#hasher.hashOf(this.#text.text));
    } else if ((row.cells[k] & BARE_CR) !== 0) {
      // A CR alone ends a row for many readers, so that its cell gets quotes.
      this.#out[this.#to++] = QUOTE;
      this.#copy(start, end);
      this.#out[this.#to++] = QUOTE;
    } else this.#copy(start - row.quotesOf(k), end + row.quotesOf(k));
  }

  /** Writes ASCII. */
  #writeText(text: string): void {
    this.#to += this.#out.write(text, this.#to, 'latin1');
  }

  /** Copies [start, end) of the source. */
  #copy(start: number, end: number): void {
    this.#to += this.#source.copy(this.#out, this.#to, start, end);
  }

  #reserve(bytes: number): void {
    if (this.#to + bytes <= this.#out.length) return;
    const larger = Buffer.alloc(2 * (this.#to + bytes));
    larger.set(this.#out.subarray(0, this.#to));
    this.#out = larger;
  }
}
