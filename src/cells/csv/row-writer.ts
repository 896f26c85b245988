import { COMMA, isNull, LF, QUOTE } from '../../base/ascii.ts';
import { BARE_CR, CellText, COLUMN_SHIFT, type RowTokenizer, STRIDE } from './tokenizer.ts';

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
  readonly #hasher: ValueHash | undefined;
  readonly #text = new CellText();
  #actions: Uint8Array = new Uint8Array(0);
  /** For each column its index in the written row: the number of kept columns before it. */
  #positions = new Int32Array(0);
  #width = 0;
  /** Number of columns that are hashed. */
  #hashedColumns = 0;
  /** True if all columns stay as they are. */
  #isPlain = true;
  #source: Buffer = Buffer.alloc(0);
  /** The bytes [from, until) of the source come next. */
  #from = 0;
  #until = 0;
  #out: Buffer = Buffer.alloc(1 << 16);
  /** The index behind the written bytes of `out`. */
  #to = 0;

  constructor(hasher: ValueHash | undefined) {
    this.#hasher = hasher;
  }

  /** Sets the action for each column, before the first row: a header, whose names are not hashed. */
  open(actions: Uint8Array): void {
    this.#actions = actions;
    this.#positions = new Int32Array(actions.length);
    this.#width = 0;
    for (let i = 0; i < actions.length; i++) {
      this.#positions[i] = this.#width;
      if (actions[i] !== DROP) this.#width++;
    }
    this.#hashedColumns = actions.filter((action) => action === HASH).length;
    this.#isPlain = actions.every((action) => action === KEEP);
  }

  /** Starts with rows in `bytes`. */
  begin(bytes: Buffer): void {
    this.#source = bytes;
    this.#from = 0;
    this.#until = 0;
    this.#to = 0;
  }

  /** Writes the row that the tokenizer just read at `start`; returns its written length. */
  write(tokenizer: RowTokenizer, start: number, isHeader: boolean): number {
    if (!this.#isPlain || (tokenizer.flags & BARE_CR) !== 0) return this.#edit(tokenizer, start, isHeader);
    const { contentEnd } = tokenizer;
    if (start !== this.#until) {
      this.#flush();
      this.#from = start;
    }
    this.#until = contentEnd;
    if (this.#source[contentEnd] === LF) this.#until++;
    else {
      this.#flush();
      this.#out[this.#to++] = LF;
    }
    return contentEnd - start + 1;
  }

  /** The bytes of all rows since `begin`, valid until the next one. */
  finish(): Uint8Array[] {
    if (this.#to === 0) return this.#until > this.#from ? [this.#source.subarray(this.#from, this.#until)] : [];
    this.#flush();
    return [this.#out.subarray(0, this.#to)];
  }

  /** Copies the range of unchanged rows; afterwards there is room for one byte more. */
  #flush(): void {
    this.#reserve(this.#until - this.#from + 1);
    this.#copyTo(this.#until);
  }

  /** Writes a row with dropped or hashed cells, or with a CR that ends no line. */
  #edit(tokenizer: RowTokenizer, start: number, isHeader: boolean): number {
    const { cells, used, contentEnd, width } = tokenizer;
    this.#flush();
    // Room for the row, hashes, quotes around each cell, all commas and the line end.
    this.#reserve(contentEnd - start + this.#hashedColumns * HASH_BYTES + used + width + 3);
    const begin = this.#to;
    this.#from = start;
    // `position`: index in the written row of the last written cell; `dropped`: number of dropped columns before it.
    // `sourceEnd`: the end in the source of the last cell, written or dropped.
    let [position, dropped, sourceEnd] = [0, 0, start];
    for (let k = 0; k < used; k += STRIDE) {
      const column = cells[k] >> COLUMN_SHIFT;
      const action = this.#actions[column];
      const rawEnd = tokenizer.rawEnd(k);
      if (action === DROP) {
        this.#copyTo(sourceEnd);
        this.#from = rawEnd;
        sourceEnd = rawEnd;
        continue;
      }
      const nextPosition = this.#positions[column];
      if (column - nextPosition !== dropped) {
        this.#copyTo(sourceEnd);
        this.#writeCommas(nextPosition - position);
        this.#from = tokenizer.rawStart(k);
      }
      this.#writeCell(tokenizer, k, isHeader ? KEEP : action);
      [position, dropped, sourceEnd] = [nextPosition, column - nextPosition, rawEnd];
    }
    const isWhole = width - this.#width === dropped;
    this.#copyTo(isWhole ? contentEnd : sourceEnd);
    if (!isWhole) this.#writeCommas(this.#width - 1 - position);
    // A row of one empty cell must not become a blank line.
    if (this.#width === 1 && this.#to === begin) this.#writeText('""');
    this.#out[this.#to++] = LF;
    this.#from = contentEnd;
    this.#until = contentEnd;
    return this.#to - begin;
  }

  /** Writes the cell whose entries begin at `k`, if it may not be copied as it is. */
  #writeCell(tokenizer: RowTokenizer, k: number, action: number): void {
    const { cells } = tokenizer;
    const [columnAndFlags, start, end] = [cells[k], cells[k + 1], cells[k + 2]];
    if (action === HASH && !isNull(this.#source, start, end)) {
      if (this.#hasher === undefined) throw new TypeError('a hash without a key');
      this.#text.read(this.#source, cells, k);
      this.#copyTo(tokenizer.rawStart(k));
      this.#writeText(this.#hasher.hashOf(this.#text.text));
      this.#from = tokenizer.rawEnd(k);
    } else if ((columnAndFlags & BARE_CR) !== 0) {
      // A CR alone ends a row for many readers, so that its cell gets quotes.
      this.#copyTo(start);
      this.#out[this.#to++] = QUOTE;
      this.#copyTo(end);
      this.#out[this.#to++] = QUOTE;
    }
  }

  /** Writes ASCII. */
  #writeText(text: string): void {
    this.#to += this.#out.write(text, this.#to, 'latin1');
  }

  #writeCommas(count: number): void {
    for (let i = 0; i < count; i++) this.#out[this.#to++] = COMMA;
  }

  /** Copies the source from the end of the last copy up to `end`. */
  #copyTo(end: number): void {
    if (end > this.#from) {
      this.#out.set(this.#source.subarray(this.#from, end), this.#to);
      this.#to += end - this.#from;
    }
    this.#from = end;
  }

  #reserve(bytes: number): void {
    if (this.#to + bytes <= this.#out.length) return;
    const larger = Buffer.alloc(2 * (this.#to + bytes));
    larger.set(this.#out.subarray(0, this.#to));
    this.#out = larger;
  }
}
