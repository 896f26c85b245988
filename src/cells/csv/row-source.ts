// This folder: from the bytes of CSV to rows and cells; nothing about types.
//
// Rows and cells are positions in one array of bytes, which hold until the next chunk. For each body, in this order:
//
//   chunk   RowBuffer      copies it behind the bytes of the last, incomplete row, and replaces invalid UTF-8
//   row     RowTokenizer   lists the filled cells of the row; reads the bytes, writes none
//   cell    CellText       the bytes of one cell, which a pair of quotes makes a copy
//   row     RowEditor      only if columns are dropped or hashed: writes the edited row into an array of its own, and
//                          replaces the list by that of the cells that stay
//   row     RowWriter      if no column is: writes the row over the bytes that it came from, with LF
//
// Of the row `a,"b""c"` and LF at byte 0, `next` returns 9, where the next row starts, and leaves width 2 (cells),
// contentEnd 8 (the LF), used 6 (entries of `cells`), and three entries for each filled cell:
//
//   column << COLUMN_SHIFT | flags        start   end
//   0 << 3                                  0      1     a
//   1 << 3 | QUOTED | DOUBLED               3      7     b""c, of which CellText makes b"c

import { CR, LF, QUOTE } from '../../base/ascii.ts';
import { bodyStart } from './body-start.ts';
import {
  AT_MOST_COLUMNS,
  BROKEN_ROW,
  MalformedCsv,
  type MalformedReason,
  otherEncoding,
  otherLineEnds,
} from './malformed.ts';
import { RowBuffer } from './row-buffer.ts';
import type { RowEditor } from './row-editor.ts';
import { type RowOutput, RowWriter } from './row-writer.ts';
import { BARE_CR, INCOMPLETE, MAX_COLUMNS, RowTokenizer, SENTINEL } from './tokenizer.ts';

/** Number of bytes with which work starts, so that small chunks cost no more than large ones. */
const GATHERED_BYTES = 256 * 1024;
const MAX_ROW_BYTES = 64 * 1024 * 1024;
/** A malformed row that starts with this byte is a JSON message of the service about a failed export. */
const BRACE = 0x7b;
const JSON_MESSAGE = 'text that starts with {, as a JSON message does';

export interface RowLimits {
  /** Longest row accepted, its line end included, in bytes; default 64 MiB. */
  readonly maxRowBytes?: number | undefined;
  /** Number of bytes that are gathered before work starts; default 256 KiB. It affects nothing but speed. */
  readonly gatheredBytes?: number | undefined;
}

/** Receives the rows one after another; the first is the header. */
export interface RowHandler {
  /**
   * Called with one whole row of the right width, from byte `start` of `bytes`; `source.tokenizer` lists its cells.
   * Returns false to leave the row out of what is written. Nothing of it may be kept, since the bytes are overwritten.
   */
  row(bytes: Buffer, start: number, source: RowSource): boolean;
}

/**
 * Splits a body, cut into chunks anywhere, into whole rows, checks their form, and returns the bytes to keep: with LF
 * ends, valid UTF-8, no BOM, no blank lines at the end, and quotes around a cell with a bare CR. Otherwise the bytes
 * are unchanged, except by an editor.
 */
export class RowSource {
  /** Number of whole rows so far, with the header; during `RowHandler.row` without the current one. */
  rows = 0;
  /** Length of the longest row written, with its line end (bytes). */
  longestRow = 0;
  /** Number of bytes of all rows written. */
  outLength = 0;
  /** False if the last row had no line end. */
  finalNewline = false;
  readonly #handler: RowHandler;
  readonly #maxRowBytes: number;
  readonly #gatheredBytes: number;
  readonly #buffer = new RowBuffer();
  readonly tokenizer: RowTokenizer = new RowTokenizer();
  readonly #output: RowOutput;
  /**
   * Must have edited each row that the handler keeps: the returned bytes are its own. Undefined if nothing is edited.
   */
  readonly editor: RowEditor | undefined;
  #width = 0;
  #started = false;
  #need = 0;
  #blankAt = -1;
  #headerHasCr = false;
  /** True if the incomplete header ends inside a quoted name. */
  #isQuoted = false;

  constructor(handler: RowHandler, limits: RowLimits = {}, editor?: RowEditor) {
    this.#handler = handler;
    this.editor = editor;
    this.#output = editor ?? new RowWriter();
    this.#maxRowBytes = limits.maxRowBytes ?? MAX_ROW_BYTES;
    this.#gatheredBytes = limits.gatheredBytes ?? GATHERED_BYTES;
  }

  /** Takes a chunk; returns the bytes to keep, valid until the next call. Throws MalformedCsv. */
  push(chunk: Uint8Array): Uint8Array[] {
    this.#buffer.append(chunk);
    const endsHeader = this.rows === 0 && this.#endsHeader(chunk);
    return endsHeader || this.#buffer.length >= this.#need ? this.#read(false) : [];
  }

  /** Ends the body; returns the last bytes to keep, as copies. Throws MalformedCsv when it is not whole. */
  finish(): Uint8Array[] {
    const parts = this.#read(true).map((part) => Buffer.from(part));
    if (this.rows === 0) {
      const isEmpty = this.#buffer.offsetOf(this.#buffer.end) === 0;
      throw this.malformed(isEmpty ? 'empty_body' : 'no_header', this.#buffer.start, 'a header line', 'nothing');
    }
    // Rows that end in CR alone look like one long header, and must not be taken for an empty day.
    if (this.rows === 1 && this.#headerHasCr) throw otherLineEnds();
    return parts;
  }

  /** A failure at byte `index` of the buffer, in the current row. */
  malformed(reason: MalformedReason, index: number, expected: string, found: string): MalformedCsv {
    return new MalformedCsv(reason, { row: this.rows + 1, byte: this.#buffer.offsetOf(index), expected, found });
  }

  /** True if some of the current text was not valid UTF-8. */
  get isRepaired(): boolean {
    return this.#buffer.isRepaired;
  }

  /** Calls `each` with every position of the row at `start` where U+FFFD replaces invalid bytes. */
  repairedIn(start: number, each: (index: number) => void): void {
    this.#buffer.repairedIn(start, this.tokenizer.contentEnd, each);
  }

  /**
   * True if a chunk ends the header, as far as its quotes show. A header that comes in many chunks is read again only
   * when it is twice as long as the last time. So each byte is read a few times, and not once for each chunk.
   */
  #endsHeader(chunk: Uint8Array): boolean {
    for (const byte of chunk) {
      if (byte === QUOTE) this.#isQuoted = !this.#isQuoted;
      else if (byte === LF && !this.#isQuoted) return true;
    }
    return false;
  }

  #read(last: boolean): Uint8Array[] {
    const buffer = this.#buffer;
    this.#need = Math.min(buffer.length * 2, this.#maxRowBytes + 1);
    if (!this.#started && !this.#start(last)) return [];
    const end = buffer.check(last);
    if (buffer.isInvalid) throw this.malformed('not_csv', buffer.start, 'UTF-8 text', 'other bytes');
    const { bytes } = buffer;
    const kept = bytes[end];
    bytes[end] = SENTINEL;
    this.#output.begin(bytes, buffer.start);
    buffer.start = this.#readRows(bytes, buffer.start, end, last);
    if (!last) bytes[end] = kept;
    buffer.removeBefore(buffer.start);
    this.#checkLength(buffer.start, buffer.end);
    const twice = Math.min(buffer.length * 2, this.#maxRowBytes + 1);
    this.#need = this.rows === 0 ? twice : Math.max(this.#gatheredBytes, twice);
    return this.#output.finish();
  }

  /** Checks the first bytes once there are enough of them. */
  #start(last: boolean): boolean {
    const { start, end } = this.#buffer;
    const begin = bodyStart(this.#buffer.bytes, start, end, last);
    if (begin === undefined) return false;
    if (typeof begin === 'object' && begin.kind === 'utf16') throw otherEncoding();
    if (typeof begin === 'object') throw this.malformed('not_csv', start, 'a header line', begin.found);
    this.#buffer.start = begin;
    this.#started = true;
    return true;
  }

  /** Reads all whole rows of [start, end); returns the index behind them. */
  #readRows(bytes: Buffer, start: number, end: number, last: boolean): number {
    const tokenizer = this.tokenizer;
    let rowStart = start;
    while (rowStart < end) {
      const next = tokenizer.next(bytes, rowStart, end, last);
      if (next === INCOMPLETE) break;
      if (next < 0) throw this.#broken(bytes, rowStart);
      if (tokenizer.contentEnd === rowStart) this.#blank(rowStart);
      else this.#row(bytes, rowStart, next);
      rowStart = next;
    }
    return rowStart;
  }

  #row(bytes: Buffer, start: number, next: number): void {
    const tokenizer = this.tokenizer;
    if (this.#blankAt >= 0) throw this.#blankLine();
    this.finalNewline = next > tokenizer.contentEnd && bytes[next - 1] === LF;
    if (this.rows === 0) this.#openHeader(bytes, next);
    else if (tokenizer.width !== this.#width) throw this.#wrongWidth(bytes, start);
    this.#checkLength(start, next);
    if (this.#handler.row(bytes, start, this)) {
      const length = this.#output.keep(tokenizer, start);
      if (length > this.longestRow) this.longestRow = length;
      this.outLength += length;
    }
    this.rows++;
  }

  #openHeader(bytes: Buffer, next: number): void {
    const { width, contentEnd, flags } = this.tokenizer;
    if (width > MAX_COLUMNS) throw this.malformed('too_many_columns', next, AT_MOST_COLUMNS, `${width}`);
    this.#width = width;
    this.#headerHasCr = (flags & BARE_CR) !== 0;
    this.tokenizer.crlf = this.finalNewline && next - contentEnd === 2 && bytes[contentEnd] !== LF;
  }

  #blank(start: number): void {
    if (this.rows === 0) throw this.malformed('no_header', start, 'column names', 'a blank line');
    if (this.#blankAt < 0) this.#blankAt = this.#buffer.offsetOf(start);
  }

  #blankLine(): MalformedCsv {
    const expected = `${this.#width} cells`;
    return new MalformedCsv('blank_line', { row: this.rows + 1, byte: this.#blankAt, expected, found: 'a blank line' });
  }

  #checkLength(from: number, to: number): void {
    if (to - from <= this.#maxRowBytes) return;
    throw this.malformed('row_too_long', from, `at most ${this.#maxRowBytes} bytes`, `${to - from} or more`);
  }

  #wrongWidth(bytes: Uint8Array, start: number): MalformedCsv {
    const { width } = this.tokenizer;
    const expected = `${this.#width} cells`;
    if (bytes[start] === BRACE) return this.malformed('not_csv', start, expected, JSON_MESSAGE);
    if (width > this.#width) return this.malformed('long_row', start, expected, `${width} cells`);
    const reason = this.finalNewline ? 'short_row' : 'cut_in_row';
    return this.malformed(reason, start, expected, `${width} cells`);
  }

  #broken(bytes: Uint8Array, start: number): MalformedCsv {
    const { reason, brokenAt } = this.tokenizer;
    if (reason === 'too_many_columns' && this.rows === 0 && bytes.subarray(start, brokenAt).includes(CR))
      throw otherLineEnds();
    if (bytes[start] === BRACE) return this.malformed('not_csv', start, `${this.#width} cells`, JSON_MESSAGE);
    const { expected, found } = BROKEN_ROW[reason];
    return this.malformed(reason, brokenAt, expected, found);
  }
}
