// This folder: from the bytes of CSV to rows and cells; nothing about types.
//
// Rows and cells are positions in one array of bytes, which hold until the next chunk:
//
//   chunk   RowBuffer      has the array: copies a chunk behind the last, incomplete row, and replaces invalid UTF-8
//   row     RowSource      asks for one row after the other, and checks its width
//   row     RowTokenizer   lists the filled cells of a row; reads the bytes, writes none
//   cell    CellText       the bytes of one cell, which a pair of quotes makes a copy
//   row     RowWriter      the kept rows with LF: ranges of the array, or edited in an array of its own
//
// Of the row `a,"b""c"` and LF at byte 0, `next` returns 9, where the next row starts, and leaves width 2 (cells),
// contentEnd 8 (the LF), used 6 (entries of `cells`), and three entries for each filled cell:
//
//   column << COLUMN_SHIFT | flags        start   end
//   0 << 3                                  0      1     a
//   1 << 3 | QUOTED | DOUBLED               3      7     b""c, of which CellText makes b"c
//
// Before you change it: no object is made for a row or a cell, since an export has millions. The result must not depend
// on how a body is cut into chunks: `test/property/csv` cuts it anywhere and compares it with csv-parse. All cases of a
// body are in `spec/vectors/documents.json`. Measure with `npm run bench` before and after.

import { LF, OPEN_BRACE } from '../../base/ascii.ts';
import { bodyStart } from './body-start.ts';
import { AT_MOST_COLUMNS, BROKEN_ROW, MalformedCsv, type MalformedReason, otherEncoding } from './malformed.ts';
import { RowBuffer } from './row-buffer.ts';
import { INCOMPLETE, MAX_COLUMNS, RowTokenizer, SENTINEL } from './tokenizer.ts';

/** Number of bytes with which work starts, so that small chunks cost no more than large ones. */
const GATHERED_BYTES = 256 * 1024;
const MAX_ROW_BYTES = 64 * 1024 * 1024;

export interface RowLimits {
  /** Longest row accepted, its line end included, in bytes; default 64 MiB. */
  readonly maxRowBytes?: number | undefined;
  /** Number of bytes that are gathered before work starts; default 256 KiB. It affects nothing but speed. */
  readonly gatheredBytes?: number | undefined;
}

/**
 * Splits a body, cut into chunks anywhere, into whole rows, and checks their form. After each chunk (`push`), and after
 * the last (`finish`), `begin` says whether there is work. Then `next` goes to one row after the other:
 * `if (source.begin()) while (source.next()) …`
 */
export class RowSource {
  /** Number of whole rows so far, with the header; so also the number of the current row. */
  rows = 0;
  /** First byte of the current row in `bytes`; `tokenizer` lists its cells. They hold until the next call. */
  start = 0;
  /** False if the current row has no line end. */
  hasLineEnd = false;
  readonly tokenizer: RowTokenizer = new RowTokenizer();
  readonly #maxRowBytes: number;
  readonly #gatheredBytes: number;
  readonly #buffer = new RowBuffer();
  #width = 0;
  /** True once it is clear that the body is no other format. */
  #isStarted = false;
  #isFinished = false;
  /** True once all rows were read. */
  #isRead = false;
  /** Index behind the last whole character, and the byte that stood there before the sentinel. */
  #end = 0;
  #behind = 0;
  /** Number of bytes with which reading begins again. */
  #need = 0;
  /** The failure that the first blank line is, unless only blank lines follow. */
  #blank: MalformedCsv | undefined;

  constructor(limits: RowLimits = {}) {
    this.#maxRowBytes = limits.maxRowBytes ?? MAX_ROW_BYTES;
    this.#gatheredBytes = limits.gatheredBytes ?? GATHERED_BYTES;
  }

  /** Takes a chunk. */
  push(chunk: Uint8Array): void {
    this.#buffer.append(chunk);
  }

  /** Takes the end of the body. */
  finish(): void {
    this.#isFinished = true;
  }

  get bytes(): Buffer {
    return this.#buffer.bytes;
  }

  /** True if there may be rows to read. Throws MalformedCsv, UnusableCsv. */
  begin(): boolean {
    const buffer = this.#buffer;
    if (this.#isRead || (buffer.length < this.#need && !this.#isFinished)) return false;
    if (!this.#isStarted && !this.#readsStart()) return false;
    this.#end = buffer.check(this.#isFinished);
    this.#behind = buffer.bytes[this.#end];
    buffer.bytes[this.#end] = SENTINEL;
    return true;
  }

  /** Goes to the next whole row, after `begin`; false if more must come first. Throws MalformedCsv. */
  next(): boolean {
    const { tokenizer } = this;
    const buffer = this.#buffer;
    const { bytes } = buffer;
    while (buffer.start < this.#end) {
      const { start } = buffer;
      const next = tokenizer.next(bytes, start, this.#end, this.#isFinished);
      if (next === INCOMPLETE) break;
      if (next < 0) throw this.#notCsv(bytes, start);
      buffer.start = next;
      if (tokenizer.contentEnd === start) this.#passBlank(start);
      else {
        this.#checkRow(bytes, start, next);
        this.start = start;
        this.rows++;
        return true;
      }
    }
    if (!this.#isFinished) bytes[this.#end] = this.#behind;
    this.#pause();
    return false;
  }

  /** A failure of the current row. */
  malformed(reason: MalformedReason, expected: string, found: string): MalformedCsv {
    return new MalformedCsv(reason, { row: this.rows, byte: this.#buffer.offsetOf(this.start), expected, found });
  }

  /** The indices of the current row at which U+FFFD replaces invalid UTF-8; asked once for each row that is kept. */
  takeRepairs(): readonly number[] {
    return this.#buffer.takeRepairs(this.tokenizer.contentEnd);
  }

  /** Ends reading until more has come. */
  #pause(): void {
    const buffer = this.#buffer;
    this.#checkLength(buffer.start, buffer.end);
    this.#isRead = this.#isFinished;
    if (this.#isFinished && this.rows === 0) {
      const isEmpty = buffer.offsetOf(buffer.end) === 0;
      throw this.#broken(isEmpty ? 'empty_body' : 'no_header', buffer.start, 'a header line', 'nothing');
    }
    // A header is wanted at once. A long row that comes in many chunks is read again when it is twice as long.
    if (this.rows > 0) this.#need = Math.max(this.#gatheredBytes, Math.min(buffer.length * 2, this.#maxRowBytes + 1));
  }

  /** Checks the first bytes; false if there are too few of them. */
  #readsStart(): boolean {
    const { bytes, start, end } = this.#buffer;
    const begin = bodyStart(bytes.subarray(start, end), this.#isFinished);
    if (begin === undefined) return false;
    if (typeof begin === 'object' && begin.kind === 'utf16') throw otherEncoding();
    if (typeof begin === 'object') throw this.#broken('not_csv', start, 'a header line', begin.found);
    this.#buffer.start = start + begin;
    this.#isStarted = true;
    return true;
  }

  #checkRow(bytes: Buffer, start: number, next: number): void {
    const { contentEnd, width } = this.tokenizer;
    if (this.#blank !== undefined) throw this.#blank;
    this.hasLineEnd = next > contentEnd && bytes[next - 1] === LF;
    if (this.rows === 0) {
      if (width > MAX_COLUMNS) throw this.#broken('too_many_columns', next, AT_MOST_COLUMNS, `${width}`);
      this.#width = width;
    } else if (width !== this.#width) throw this.#wrongWidth(bytes, start);
    this.#checkLength(start, next);
  }

  /** A blank line is an error if a row comes behind it. */
  #passBlank(start: number): void {
    if (this.rows === 0) throw this.#broken('no_header', start, 'column names', 'a blank line');
    this.#blank ??= this.#broken('blank_line', start, `${this.#width} cells`, 'a blank line');
  }

  #checkLength(from: number, to: number): void {
    if (to - from <= this.#maxRowBytes) return;
    throw this.#broken('row_too_long', from, `at most ${this.#maxRowBytes} bytes`, `${to - from} or more`);
  }

  /** The failure of a row at `start` of another width than the header. */
  #wrongWidth(bytes: Uint8Array, start: number): MalformedCsv {
    const { width } = this.tokenizer;
    if (bytes[start] === OPEN_BRACE) return this.#jsonMessage(start);
    const cutReason = this.hasLineEnd ? 'short_row' : 'cut_in_row';
    const reason = width > this.#width ? 'long_row' : cutReason;
    return this.#broken(reason, start, `${this.#width} cells`, `${width} cells`);
  }

  /** The failure of a row at `start` that is no CSV. */
  #notCsv(bytes: Uint8Array, start: number): MalformedCsv {
    const { reason, brokenAt } = this.tokenizer;
    if (bytes[start] === OPEN_BRACE) return this.#jsonMessage(start);
    const { expected, found } = BROKEN_ROW[reason];
    return this.#broken(reason, brokenAt, expected, found);
  }

  /** A malformed row that starts with a brace is a message of the service about a failed export. */
  #jsonMessage(start: number): MalformedCsv {
    const found = 'text that starts with {, as a JSON message does';
    return this.#broken('not_csv', start, `${this.#width} cells`, found);
  }

  /** A failure at byte `index`, in the row behind the current one. */
  #broken(reason: MalformedReason, index: number, expected: string, found: string): MalformedCsv {
    return new MalformedCsv(reason, { row: this.rows + 1, byte: this.#buffer.offsetOf(index), expected, found });
  }
}
