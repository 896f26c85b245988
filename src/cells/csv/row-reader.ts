// This folder: from the bytes of CSV to its rows and cells, and what its header says of its columns.
//
// Rows and cells are positions in one array of bytes, which hold until the next chunk:
//
//   chunk   RowBuffer      has the array: copies a chunk behind the last, incomplete row, and replaces invalid UTF-8
//   row     RowReader      goes from one row to the next, and checks its width
//   row     CsvRow         lists the filled cells of the row; reads the bytes, writes none
//   cell    CellText       the bytes of one cell, which a pair of quotes makes a copy
//
// Of the row `a,"b""c"` and LF at byte 0, `read` returns 9, where the next row starts, and leaves width 2, contentEnd 8
// (the LF) and filledCells 2:
//
//   k   columnNumbers   starts   ends   flags
//   0   0               0        1      0                  a
//   1   1               3        7      QUOTED | DOUBLED   b""c, of which CellText makes b"c
//
// Before you change it: no object is made for a row or a cell, since an export has millions. The result must not depend
// on how a body is cut into chunks: `test/property/csv` cuts it anywhere and compares it with csv-parse. All cases of a
// body are in `spec/vectors/documents.json`. Measure with `npm run bench` before and after.

import { LF, OPEN_BRACE } from '../../base/ascii.ts';
import { bodyStart, JSON_OBJECT, MAX_SEARCHED_BYTES } from './body-start.ts';
import { EXPECTED_AND_FOUND, MalformedCsv, type MalformedReason, otherEncodingError } from './malformed.ts';
import { CsvRow, INCOMPLETE } from './row.ts';
import { RowBuffer } from './row-buffer.ts';

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
 * the last (`finish`), `next` goes to one row after the other: `reader.push(chunk); while (reader.next()) …`
 */
export class RowReader {
  /** The current row. */
  readonly row = new CsvRow();
  /** Number of whole rows so far, with the header; so also the number of the current row. */
  rows = 0;
  /** False if the current row has no line end. */
  hasLineEnd = false;
  /** The indices at which U+FFFD replaces invalid UTF-8 in the current row. */
  repairs: readonly number[] = [];
  readonly #maxRowBytes: number;
  readonly #gatheredBytes: number;
  readonly #buffer = new RowBuffer();
  #width = 0;
  /** True once it is clear that the body is no other format. */
  #isStarted = false;
  #isFinished = false;
  /** Index behind the last whole character, up to which rows are read; undefined in a pause. */
  #end: number | undefined;
  /** Number of bytes with which reading begins again. */
  #bytesToResume = 0;
  /** The failure that the first blank line is, unless only blank lines follow. */
  #blankLineFault: MalformedCsv | undefined;

  constructor(limits: RowLimits = {}) {
    this.#maxRowBytes = limits.maxRowBytes ?? MAX_ROW_BYTES;
    this.#gatheredBytes = limits.gatheredBytes ?? GATHERED_BYTES;
  }

  /** Takes a chunk, once `next` has read all rows of the last one. */
  push(chunk: Uint8Array): void {
    this.#buffer.append(chunk);
  }

  /** Takes the end of the body. */
  finish(): void {
    this.#isFinished = true;
  }

  /** Goes to the next row; false if more bytes must come first, or none will. Throws MalformedCsv, UnusableCsv. */
  next(): boolean {
    const { row } = this;
    const buffer = this.#buffer;
    this.#end ??= this.#resume();
    const end = this.#end;
    if (end === undefined) return false;
    const { bytes } = buffer;
    while (buffer.start < end) {
      const { start } = buffer;
      const next = row.read(bytes, start, end, this.#isFinished);
      if (next === INCOMPLETE) break;
      if (row.broken !== undefined) {
        const { reason, at } = row.broken;
        const { expected, found } = EXPECTED_AND_FOUND[reason];
        throw this.#notARow(reason, at, expected, found);
      }
      buffer.start = next;
      if (row.contentEnd === start) this.#passBlank(start);
      else {
        this.#checkRow(next);
        this.rows++;
        this.repairs = buffer.takeRepairs(row.contentEnd);
        return true;
      }
    }
    this.#pause();
    return false;
  }

  /** A failure of the current row, which `next` has counted. */
  malformedRow(reason: MalformedReason, expected: string, found: string): MalformedCsv {
    return new MalformedCsv(reason, { row: this.rows, byte: this.#buffer.offsetOf(this.row.start), expected, found });
  }

  /** Begins to read, and returns the end of what is whole; undefined if there is too little. */
  #resume(): number | undefined {
    const buffer = this.#buffer;
    if (buffer.length < this.#bytesToResume && !this.#isFinished) return undefined;
    if (!this.#isStarted && !this.#passBodyStart()) return undefined;
    return buffer.makeValid(this.#isFinished);
  }

  /** Ends reading until more has come. */
  #pause(): void {
    const buffer = this.#buffer;
    buffer.release();
    this.#end = undefined;
    this.#checkLength(buffer.start, buffer.end);
    if (this.#isFinished && this.rows === 0) {
      const isEmpty = buffer.offsetOf(buffer.end) === 0;
      throw this.#malformedNext(isEmpty ? 'empty_body' : 'no_header', buffer.start, 'a header line', 'nothing');
    }
    // A header is wanted at once. A long row that comes in many chunks is read again when it is twice as long.
    if (this.rows > 0 || buffer.length > MAX_SEARCHED_BYTES) {
      this.#bytesToResume = Math.max(this.#gatheredBytes, Math.min(buffer.length * 2, this.#maxRowBytes + 1));
    }
  }

  /** Checks the first bytes; false if there are too few of them. */
  #passBodyStart(): boolean {
    const { bytes, start, end } = this.#buffer;
    const begin = bodyStart(bytes.subarray(start, end), this.#isFinished);
    if (begin === undefined) return false;
    if (typeof begin === 'object')
      throw begin.kind === 'utf16'
        ? otherEncodingError()
        : this.#malformedNext('not_csv', start, 'a header line', begin.found);
    this.#buffer.start = start + begin;
    this.#isStarted = true;
    return true;
  }

  #checkRow(next: number): void {
    const { bytes, start, contentEnd, width } = this.row;
    if (this.#blankLineFault !== undefined) throw this.#blankLineFault;
    this.hasLineEnd = next > contentEnd && bytes[next - 1] === LF;
    if (this.rows === 0) this.#width = width;
    else if (width !== this.#width) {
      const reason = width > this.#width ? 'long_row' : this.hasLineEnd ? 'short_row' : 'cut_in_row';
      throw this.#notARow(reason, start, `${this.#width} cells`, `${width} cells`);
    }
    this.#checkLength(start, next);
  }

  /** A blank line is an error if a row comes behind it. */
  #passBlank(start: number): void {
    if (this.rows === 0) throw this.#malformedNext('no_header', start, 'column names', 'a blank line');
    this.#blankLineFault ??= this.#malformedNext('blank_line', start, `${this.#width} cells`, 'a blank line');
  }

  #checkLength(from: number, to: number): void {
    if (to - from <= this.#maxRowBytes) return;
    throw this.#malformedNext('row_too_long', from, `at most ${this.#maxRowBytes} bytes`, `${to - from} or more`);
  }

  /** The failure of the row that was read last. One that starts with a brace is a message about a failed export. */
  #notARow(reason: MalformedReason, index: number, expected: string, found: string): MalformedCsv {
    const { bytes, start } = this.row;
    if (bytes[start] !== OPEN_BRACE) return this.#malformedNext(reason, index, expected, found);
    return this.#malformedNext('not_csv', start, `${this.#width} cells`, JSON_OBJECT.found);
  }

  /** A failure at byte `index` of the row that comes next, which is not counted yet. */
  #malformedNext(reason: MalformedReason, index: number, expected: string, found: string): MalformedCsv {
    return new MalformedCsv(reason, { row: this.rows + 1, byte: this.#buffer.offsetOf(index), expected, found });
  }
}
