import { COMMA, isNullText, LF, QUOTE } from '../../base/ascii.ts';
import { ByteBuffer } from '../../base/byte-buffer.ts';
import type { HashKey } from '../../base/hash-key.ts';
import { BARE_CR, CellText, type CsvRow, QUOTED } from '../csv/row.ts';
import type { EditedColumns } from './column-edits.ts';

/** Length of a hash, which is ASCII without a character that is special in CSV (bytes). */
const HASH_BYTES = 64;

/**
 * Writes kept rows with LF ends, without dropped columns, and with hashes in place of hashed values. Rows that need no
 * change are a range of the input. It is copied only if a row between them is changed or left out.
 */
export class RowWriter {
  /** Length of the longest row written, with its line end (bytes). */
  longestRowBytes = 0;
  readonly #columns: EditedColumns;
  readonly #hashKey: HashKey | undefined;
  readonly #cell = new CellText();
  /** For each column its index in the written row, which is the number of commas before its cell. */
  readonly #commasBefore: Int32Array;
  #width = 0;
  readonly #hasEdits: boolean;
  /** The array that has the rows since the last `take`. It may change only after a `take`, which empties the range. */
  #input: Buffer = Buffer.alloc(0);
  /** [rangeStart, rangeEnd) of the input are unchanged rows that are not copied yet. */
  #rangeStart = 0;
  #rangeEnd = 0;
  readonly #out = new ByteBuffer();

  constructor(columns: EditedColumns, hashKey: HashKey | undefined) {
    this.#columns = columns;
    this.#hashKey = hashKey;
    this.#commasBefore = Int32Array.from(columns, (column) => (column === undefined ? this.#width : this.#width++));
    this.#hasEdits = columns.some((column) => column === undefined || column.isHashed);
  }

  /** Writes the header, whose names are not hashed, or a row below it. */
  write(row: CsvRow, kind: 'header' | 'data'): void {
    this.#input = row.bytes;
    const length = this.#hasEdits || row.hasBareCr ? this.#edit(row, kind) : this.#keep(row);
    if (length > this.longestRowBytes) this.longestRowBytes = length;
  }

  /** The bytes of all rows since the last call, valid until the input changes, or the next row is written. */
  take(): Uint8Array {
    if (this.#out.end > 0) this.#flush();
    const bytes = this.#out.end > 0 ? this.#out.take() : this.#input.subarray(this.#rangeStart, this.#rangeEnd);
    this.#rangeStart = 0;
    this.#rangeEnd = 0;
    return bytes;
  }

  /** Adds a row to the range of unchanged rows; returns its length. */
  #keep({ bytes, start, contentEnd }: CsvRow): number {
    if (start !== this.#rangeEnd) {
      this.#flush();
      this.#rangeStart = start;
    }
    this.#rangeEnd = contentEnd;
    if (bytes[contentEnd] === LF) this.#rangeEnd++;
    else {
      this.#flush();
      this.#out.reserve(1);
      this.#out.appendByte(LF);
    }
    return contentEnd - start + 1;
  }

  /** Copies the range of unchanged rows. */
  #flush(): void {
    this.#out.reserve(this.#rangeEnd - this.#rangeStart);
    this.#copy(this.#rangeStart, this.#rangeEnd);
    this.#rangeStart = this.#rangeEnd;
  }

  /** Writes a row with dropped or hashed cells, or with a CR that ends no line; returns its length. */
  #edit(row: CsvRow, kind: 'header' | 'data'): number {
    const { filledCount, columnNumbers, start, contentEnd } = row;
    this.#flush();
    // Room for the row with its commas, for a hash or two quotes a cell, and for the line end.
    this.#out.reserve(contentEnd - start + HASH_BYTES * filledCount + 3);
    const rowStart = this.#out.end;
    let commas = 0;
    for (let k = 0; k < filledCount; k++) {
      const column = this.#columns[columnNumbers[k]];
      if (column === undefined) continue;
      for (; commas < this.#commasBefore[columnNumbers[k]]; commas++) this.#out.appendByte(COMMA);
      this.#writeCell(row, k, column.isHashed && kind === 'data');
    }
    for (; commas < this.#width - 1; commas++) this.#out.appendByte(COMMA);
    // A row of one empty cell must not become a blank line.
    if (this.#width === 1 && this.#out.end === rowStart) this.#writeText('""');
    this.#out.appendByte(LF);
    return this.#out.end - rowStart;
  }

  #writeCell(row: CsvRow, k: number, isHashed: boolean): void {
    const [start, end, flags] = [row.starts[k], row.ends[k], row.flags[k]];
    if (isHashed && !isNullText(row.bytes, start, end)) {
      if (this.#hashKey === undefined) throw new TypeError('a hash without a key');
      this.#cell.read(row, k);
      this.#writeText(this.#hashKey.hashOf(this.#cell.content));
    } else if ((flags & BARE_CR) !== 0) {
      // A CR alone ends a row for many readers, so that its cell gets quotes.
      this.#out.appendByte(QUOTE);
      this.#copy(start, end);
      this.#out.appendByte(QUOTE);
    } else this.#copy(start - (flags & QUOTED), end + (flags & QUOTED));
  }

  /** Writes ASCII. */
  #writeText(text: string): void {
    this.#out.end += this.#out.bytes.write(text, this.#out.end, 'latin1');
  }

  /** Copies [start, end) of the input. */
  #copy(start: number, end: number): void {
    this.#out.end += this.#input.copy(this.#out.bytes, this.#out.end, start, end);
  }
}
