import { BARE_CR, COLUMN_SHIFT, DOUBLED, QUOTED, type RowTokenizer, STRIDE } from './tokenizer.ts';
import { Unquoter } from './unquote.ts';

/** What becomes of the cells of a column: they stay, a hash takes the place of each value, or they go with the column. */
export const KEEP = 0;
export const HASH = 1;
export const DROP = 2;
/** As HASH, but the text `null` stays: it is no value there. */
export const HASH_BUT_NULL = 3;

/** Bytes of the text that stands for a value. */
export const HASH_BYTES = 64;
/** Writes the text that stands for the value [start, end) to `out` at `at`: `HASH_BYTES` bytes, none of them special in CSV. */
export type WriteHash = (b: Uint8Array, start: number, end: number, out: Uint8Array, at: number) => void;

const LF = 10;
const QUOTE = 34;
const COMMA = 44;
const FLAGS = (1 << COLUMN_SHIFT) - 1;
const START_BYTES = 1 << 16;
/** Shorter runs are copied by a loop. */
const SHORT_BYTES = 24;

/**
 * Writes rows without the columns that are dropped and with hashes for the values of others, LF-ended, into memory of
 * its own. `edit` also rewrites the tokenizer's list of cells, so that whoever looks at the row sees what is written.
 */
export class RowEditor {
  bytes: Uint8Array = new Uint8Array(START_BYTES);
  readonly #writeHash: WriteHash;
  readonly #unquoter = new Unquoter();
  #actions: Uint8Array = new Uint8Array(0);
  /** For each column the number of columns before it that are not dropped. */
  #places = new Int32Array(0);
  #width = 0;
  #hashes = 0;
  /** Where the rows that are kept end, and the last edited one. */
  #end = 0;
  #to = 0;
  /** Where the next bytes of the source row to copy begin. */
  #from = 0;
  #source: Uint8Array = new Uint8Array(0);

  constructor(writeHash: WriteHash) {
    this.#writeHash = writeHash;
  }

  /** What becomes of each column, before the first row is edited: a header, of which nothing is hashed. */
  open(actions: Uint8Array): void {
    this.#actions = actions;
    this.#places = new Int32Array(actions.length);
    this.#width = 0;
    for (let i = 0; i < actions.length; i++) {
      this.#places[i] = this.#width;
      if (actions[i] !== DROP) this.#width++;
    }
    this.#hashes = actions.filter((action) => action === HASH || action === HASH_BUT_NULL).length;
  }

  begin(): void {
    this.#end = 0;
  }

  /** Writes the row that the tokenizer read at `start` of `source`, and makes the tokenizer's cells positions in `bytes`. */
  edit(source: Uint8Array, start: number, tokenizer: RowTokenizer, isHeader = false): void {
    const { cells, used, contentEnd, width } = tokenizer;
    this.#reserve(contentEnd - start + this.#hashes * HASH_BYTES + used + width + STRIDE);
    this.#source = source;
    this.#from = start;
    this.#to = this.#end;
    let kept = 0;
    // Commas of the source row and of the written one up to `ended`, where the last cell ends.
    let column = 0;
    let place = 0;
    let ended = start;
    for (let k = 0; k < used; k += STRIDE) {
      const next = cells[k] >> COLUMN_SHIFT;
      const action = this.#actions[next];
      const flags = cells[k] & FLAGS;
      const rawStart = cells[k + 1] - (flags & QUOTED);
      const rawEnd = cells[k + 2] + (flags & QUOTED);
      if (action === DROP) {
        this.#copyTo(ended);
        this.#from = rawEnd;
        ended = rawEnd;
        continue;
      }
      const nextPlace = this.#places[next];
      if (nextPlace - place !== next - column) {
        this.#copyTo(ended);
        this.#commas(nextPlace - place);
        this.#from = rawStart;
      }
      this.#cell(cells, k, kept, isHeader ? KEEP : action);
      kept += STRIDE;
      column = next;
      place = nextPlace;
      ended = rawEnd;
    }
    if (this.#width - place === width - column) this.#copyTo(contentEnd);
    else {
      this.#copyTo(ended);
      this.#commas(this.#width - 1 - place);
    }
    this.#endRow();
    tokenizer.used = kept;
  }

  /** Keeps the row that was edited last and returns its written length. */
  keep(): number {
    const length = this.#to - this.#end;
    this.#end = this.#to;
    return length;
  }

  finish(): Uint8Array[] {
    return this.#end === 0 ? [] : [this.bytes.subarray(0, this.#end)];
  }

  /** Takes in cell `k`, which is the one at `kept` of what is written; its bytes are copied later where they stay. */
  #cell(cells: Int32Array, k: number, kept: number, action: number): void {
    const head = cells[k];
    const start = cells[k + 1];
    const end = cells[k + 2];
    const flags = head & FLAGS;
    const place = this.#places[head >> COLUMN_SHIFT] << COLUMN_SHIFT;
    const isHashed = action === HASH || (action === HASH_BUT_NULL && !isNull(this.#source, start, end));
    if (isHashed) {
      this.#copyTo(start - (flags & QUOTED));
      cells[kept] = place;
      cells[kept + 1] = this.#to;
      this.#hash(start, end, flags);
      this.#from = end + (flags & QUOTED);
    } else if ((flags & BARE_CR) !== 0) {
      // A CR alone ends a row for many readers: its cell gets quotes.
      this.#copyTo(start);
      this.bytes[this.#to++] = QUOTE;
      cells[kept] = place | QUOTED;
      cells[kept + 1] = this.#to;
      this.#copyTo(end);
      this.bytes[this.#to++] = QUOTE;
    } else {
      const moved = this.#to - this.#from;
      cells[kept] = place | flags;
      cells[kept + 1] = start + moved;
      cells[kept + 2] = end + moved;
      return;
    }
    cells[kept + 2] = isHashed ? this.#to : this.#to - 1;
  }

  #hash(start: number, end: number, flags: number): void {
    if ((flags & DOUBLED) === 0) this.#writeHash(this.#source, start, end, this.bytes, this.#to);
    else {
      const length = this.#unquoter.unquote(this.#source, start, end);
      this.#writeHash(this.#unquoter.text, 0, length, this.bytes, this.#to);
    }
    this.#to += HASH_BYTES;
  }

  #endRow(): void {
    if (this.#width === 1 && this.#to === this.#end) {
      // One empty cell is not to be a blank line.
      this.bytes[this.#to++] = QUOTE;
      this.bytes[this.#to++] = QUOTE;
    }
    this.bytes[this.#to++] = LF;
  }

  #commas(count: number): void {
    for (let i = 0; i < count; i++) this.bytes[this.#to++] = COMMA;
  }

  /** Copies the source from where the last copy ended. */
  #copyTo(end: number): void {
    const { bytes } = this;
    const source = this.#source;
    const length = end - this.#from;
    if (length < SHORT_BYTES) {
      let to = this.#to;
      for (let i = this.#from; i < end; i++) bytes[to++] = source[i];
    } else bytes.set(source.subarray(this.#from, end), this.#to);
    if (length > 0) this.#to += length;
    this.#from = end;
  }

  #reserve(more: number): void {
    const needed = this.#end + more;
    if (needed <= this.bytes.length) return;
    const larger = new Uint8Array(Math.max(needed, this.bytes.length * 2));
    larger.set(this.bytes.subarray(0, this.#end));
    this.bytes = larger;
  }
}

const isNull = (b: Uint8Array, start: number, end: number): boolean =>
  end - start === 4 && b[start] === 0x6e && b[start + 1] === 0x75 && b[start + 2] === 0x6c && b[start + 3] === 0x6c;
