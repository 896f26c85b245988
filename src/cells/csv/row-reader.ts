// This folder: from the bytes of CSV to its rows and cells.
//
// Rows and cells are positions in one array of bytes, which hold until the next chunk:
//
//   chunk   RowBuffer      has the array: copies a chunk behind the last, incomplete row. Replaces invalid UTF-8, and
//                          adds a line end that the body lacks at its end
//   row     RowReader      goes from one row to the next, and checks its width
//   row     CsvRow         lists the filled cells of the row; reads the bytes, writes none
//   cell    CellText       the bytes of one cell, which a pair of quotes makes a copy
//
// Of the row `a,"b""c"` and LF at byte 0, `read` returns 9, where the row ends, and leaves width 2, contentEnd 8
// (the LF) and filledCount 2:
//
//   k   columnNumbers   starts   ends   flags
//   0   0               0        1      0                  a
//   1   1               3        7      QUOTED | DOUBLED   b""c, of which CellText makes b"c
//
// Before you change it: no object is made for a row or a cell, since an export has millions. The result must not depend
// on how a body is cut into chunks: `test/property/csv` cuts it anywhere and compares it with csv-parse. All cases of a
// body are in `spec/vectors/documents.json`. Measure with `npm run bench` before and after.

import { OPEN_BRACE } from '../../base/ascii.ts';
import { JSON_OBJECT, MAX_SEARCHED_BYTES, readBodyStart } from './body-start.ts';
import { MalformedCsv, otherEncodingError, type UnusableCsv } from './malformed.ts';
import { CsvRow, MAX_COLUMNS, NO_ROW, type RowFailure } from './row.ts';
import { RowBuffer } from './row-buffer.ts';

/** Rows are read once so many bytes have come. Without it chunks of 16 KiB take a third more processor time. */
const MIN_READ_BYTES = 256 * 1024;
/** Length of the longest row that is accepted, its line end included. */
const MAX_ROW_BYTES = 64 * 1024 * 1024;

/** What a row needs where it stops being CSV, and what stands there. */
const EXPECTED_AND_FOUND: Readonly<Record<RowFailure['reason'], readonly [string, string]>> = {
  quote_in_cell: ['a comma or a line end', 'a quote in a cell that does not begin with one'],
  after_quote: ['a comma or a line end', 'text behind a closing quote'],
  too_many_columns: [`at most ${MAX_COLUMNS} columns`, 'more columns'],
};

/**
 * Splits a body, cut into chunks anywhere, into whole rows, and checks their form. After each chunk (`push`), and after
 * the last (`finish`), `next` goes to one row after the other: `reader.push(chunk); while (reader.next()) …`
 */
export class RowReader {
  readonly row = new CsvRow();
  /** Number of the current row: 1 for the header, 0 before it. */
  rowNumber = 0;
  /** False if the current row has no line end. */
  hasLineEnd = false;
  /** The indices at which U+FFFD replaces invalid UTF-8 in the current row. */
  replacementIndices: readonly number[] = [];
  readonly #minReadBytes: number;
  readonly #buffer = new RowBuffer();
  #width = 0;
  /** True once it is clear that the body is no other format. */
  #hasPassedStart = false;
  #isFinished = false;
  /** Rows are read again once the body has come up to this offset: enough to read, or twice a long row that goes on. */
  #readAgainOffset = 0;
  /** The error of the first blank line, which is thrown if a row follows. */
  #blankLineError: MalformedCsv | undefined;

  /** `minReadBytes`: as MIN_READ_BYTES; it affects nothing but speed. */
  constructor(minReadBytes = MIN_READ_BYTES) {
    this.#minReadBytes = minReadBytes;
  }

  /** Takes a chunk, once `next` has read all rows of the last one. */
  push(chunk: Uint8Array): void {
    this.#buffer.push(chunk);
  }

  finish(): void {
    this.#isFinished = true;
    this.#buffer.finish();
  }

  /** Goes to the next row; false if more bytes must come first, or none will. Throws MalformedCsv, UnusableCsv. */
  next(): boolean {
    const buffer = this.#buffer;
    if (!this.#isFinished && buffer.offsetOf(buffer.end) < this.#readAgainOffset) return false;
    if (!this.#hasPassedStart && !this.#passBodyStart()) return false;
    while (this.#readLine()) {
      if (this.row.contentEnd > this.row.start) {
        this.#checkRow();
        this.rowNumber++;
        return true;
      }
      this.#passBlank();
    }
    // A row that is not whole yet may be too long already.
    this.#checkLength(buffer.start, buffer.end);
    if (this.#isFinished) this.#checkEnd();
    else this.#waitForMore();
    return false;
  }

  /** An error in the current row. */
  rowError(reason: string, expected: string, found: string): MalformedCsv {
    return new MalformedCsv(reason, this.rowNumber, this.#buffer.offsetOf(this.row.start), expected, found);
  }

  /** Checks the first bytes; false if there are too few of them. */
  #passBodyStart(): boolean {
    const { bytes, end } = this.#buffer;
    const bodyStart = readBodyStart(bytes.subarray(0, end), this.#isFinished);
    if (bodyStart === undefined) return false;
    const { textStart, otherFormat } = bodyStart;
    if (otherFormat !== undefined) throw this.#errorAt('not_csv', 0, 'a header line', otherFormat.found);
    this.#buffer.start = textStart;
    this.#hasPassedStart = true;
    return true;
  }

  /** Reads the next line as a row; false if it is not whole. The buffer then starts behind it. */
  #readLine(): boolean {
    const { row } = this;
    const { bytes, start, end } = this.#buffer;
    if (start === end) return false;
    const rowEnd = row.read(bytes, start, end);
    if (row.failure !== undefined) throw this.#failureError(row.failure);
    if (rowEnd === NO_ROW) return false;
    this.#buffer.start = rowEnd;
    return true;
  }

  #checkRow(): void {
    const { start, width, contentEnd } = this.row;
    const { start: rowEnd, end, isLineEndAdded } = this.#buffer;
    this.replacementIndices = this.#buffer.takeReplacementIndices(contentEnd);
    if (this.#blankLineError !== undefined) throw this.#blankLineError;
    this.hasLineEnd = rowEnd < end || !isLineEndAdded;
    if (this.rowNumber === 0) {
      if (this.replacementIndices.length > 0) throw otherEncodingError();
      this.#width = width;
    } else if (width !== this.#width) {
      const reason = width > this.#width ? 'long_row' : this.hasLineEnd ? 'short_row' : 'cut_in_row';
      throw this.#errorAt(reason, start, `${this.#width} cells`, `${width} cells`);
    }
    this.#checkLength(start, rowEnd);
  }

  /** A blank line is an error if a row comes behind it. */
  #passBlank(): void {
    const { start } = this.row;
    if (this.rowNumber === 0) throw this.#errorAt('no_header', start, 'column names', 'a blank line');
    this.#blankLineError ??= this.#errorAt('blank_line', start, `${this.#width} cells`, 'a blank line');
  }

  #checkLength(from: number, to: number): void {
    if (to - from <= MAX_ROW_BYTES) return;
    throw this.#errorAt('row_too_long', from, `at most ${MAX_ROW_BYTES} bytes`, `${to - from} bytes or more`);
  }

  /** Throws if the body ends within a row, or has none. */
  #checkEnd(): void {
    const { start, end, isLineEndAdded } = this.#buffer;
    const bodyEnd = isLineEndAdded ? end - 1 : end;
    // Each row has a line end now, so that one which does not end goes on within quotes.
    if (start < end)
      throw this.#errorAt('cut_in_quote', bodyEnd, 'a closing quote', 'the end of the body inside quotes');
    if (this.rowNumber === 0) throw this.#errorAt('empty_body', start, 'a header line', 'nothing');
  }

  /** Sets the offset up to which the body must come before rows are read again. */
  #waitForMore(): void {
    const { start, end } = this.#buffer;
    // A header is wanted at once. A long row that comes in many chunks is read again when it is twice as long.
    if (this.rowNumber > 0 || end - start > MAX_SEARCHED_BYTES) {
      const bytes = Math.max(this.#minReadBytes, Math.min((end - start) * 2, MAX_ROW_BYTES + 1));
      this.#readAgainOffset = this.#buffer.offsetOf(start) + bytes;
    }
  }

  /** The error of a row that is no CSV. In UTF-16 a header with quotes is none. */
  #failureError({ reason, index }: RowFailure): MalformedCsv | UnusableCsv {
    if (this.rowNumber === 0 && this.#buffer.takeReplacementIndices(index).length > 0) return otherEncodingError();
    return this.#errorAt(reason, index, ...EXPECTED_AND_FOUND[reason]);
  }

  /** An error at `index` in the row that is read: the one behind `rowNumber`. With a brace first it is a JSON message. */
  #errorAt(reason: string, index: number, expected: string, found: string): MalformedCsv {
    const { bytes, start } = this.row;
    const rowNumber = this.rowNumber + 1;
    const buffer = this.#buffer;
    if (bytes[start] !== OPEN_BRACE)
      return new MalformedCsv(reason, rowNumber, buffer.offsetOf(index), expected, found);
    return new MalformedCsv('not_csv', rowNumber, buffer.offsetOf(start), `${this.#width} cells`, JSON_OBJECT.found);
  }
}
