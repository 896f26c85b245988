import { COMMA, isNullText, LF, QUOTE } from '../../base/ascii.ts';
import { ByteBuffer } from '../../base/byte-buffer.ts';
import type { HashKey } from '../../base/hash-key.ts';
import { BARE_CR, CellText, type CsvRow, QUOTED } from '../csv/row.ts';
import type { EditedColumns } from './column-edits.ts';

/** Length of a hash, which is ASCII without a character that is special in CSV (bytes). */
const HASH_BYTES = 64;

/** Writes kept rows with LF ends, without dropped columns, and with hashes in place of hashed values. */
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
  readonly #out = new ByteBuffer();

  constructor(columns: EditedColumns, hashKey: HashKey | undefined) {
    this.#columns = columns;
    this.#hashKey = hashKey;
    this.#commasBefore = Int32Array.from(columns, (column) => (column === undefined ? this.#width : this.#width++));
    this.#hasEdits = columns.some((column) => column === undefined || column.isHashed);
  }

  /** Writes the header, whose names are not hashed, or a row below it. */
  write(row: CsvRow, kind: 'header' | 'data'): void {
    const { start, contentEnd, filledCount } = row;
    // Room for the row with its commas, for a hash or two quotes a cell, and for the line end.
    this.#out.reserve(contentEnd - start + HASH_BYTES * filledCount + 3);
    const rowStart = this.#out.end;
    if (this.#hasEdits || row.hasBareCr) this.#writeCells(row, kind);
    else this.#copy(row, start, contentEnd);
    // A row of one empty cell must not become a blank line.
    if (this.#out.end === rowStart) this.#writeText('""');
    this.#out.appendByte(LF);
    this.longestRowBytes = Math.max(this.longestRowBytes, this.#out.end - rowStart);
  }

  /** The bytes of all rows since the last call, valid until the next row is written. */
  take(): Uint8Array {
    return this.#out.take();
  }

  /** Writes the cells of a row, some of which are dropped or hashed, or have a CR that ends no line. */
  #writeCells(row: CsvRow, kind: 'header' | 'data'): void {
    const { filledCount, columnNumbers } = row;
    let commas = 0;
    for (let k = 0; k < filledCount; k++) {
      const column = this.#columns[columnNumbers[k]];
      if (column === undefined) continue;
      for (; commas < this.#commasBefore[columnNumbers[k]]; commas++) this.#out.appendByte(COMMA);
      this.#writeCell(row, k, column.isHashed && kind === 'data');
    }
    for (; commas < this.#width - 1; commas++) this.#out.appendByte(COMMA);
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
      this.#copy(row, start, end);
      this.#out.appendByte(QUOTE);
    } else this.#copy(row, start - (flags & QUOTED), end + (flags & QUOTED));
  }

  /** Writes ASCII. */
  #writeText(text: string): void {
    this.#out.end += this.#out.bytes.write(text, this.#out.end, 'latin1');
  }

  /** Copies [start, end) of the row's bytes. */
  #copy({ bytes }: CsvRow, start: number, end: number): void {
    this.#out.end += bytes.copy(this.#out.bytes, this.#out.end, start, end);
  }
}
