import { COMMA, CR, LF, QUOTE, SPACE } from '../../base/ascii.ts';

/** Flags of a cell. QUOTED: it is written in quotes. The flag is also the length of a quote, added to an index. */
export const QUOTED = 1;
/** It has doubled quotes inside, so that its text is not its bytes. */
const DOUBLED = 2;
/** It is written without quotes, and has a CR inside that ends no line. */
export const BARE_CR = 4;

/** Maximum number of columns of a header, which bounds the memory of every reader; no service has so many. */
export const MAX_COLUMNS = 20_000;

/** The result of `read` without a whole row. */
export const NO_ROW = -1;

/** The byte at `bytes[end]` while rows are read: it ends both inner loops, so that they need not compare with `end`. */
export const SENTINEL = QUOTE;

/** Why and where the bytes of a row are no CSV. */
export interface RowFailure {
  readonly reason: 'quote_in_cell' | 'after_quote' | 'too_many_columns';
  readonly index: number;
}

/**
 * A row of RFC 4180 in a byte buffer. One object serves all rows, and no cell has one. Line ends are LF or CRLF; a CR
 * elsewhere is data. Only cells that are not empty are listed, since most cells of an export are empty.
 *
 * The states of `read`, and the bytes that change them:
 *
 *   cell begins ──"──▶ in quotes ──"──▶ behind the quote      (`""` stays in quotes; any text behind a quote fails)
 *    ▲  │                                   │
 *    │  └─other─▶ without quotes            ├──,──▶ cell begins
 *    └──,──────────────┴────────────────────┴──LF, CRLF──▶ row ends   (a quote in a cell without quotes fails)
 */
export class CsvRow {
  /** The row's bytes begin at `start`; they hold until the next chunk comes. */
  bytes: Buffer = Buffer.alloc(0);
  start = 0;
  /** Number of filled cells. Everywhere `k` is the number of one of them, from 0. */
  filledCount = 0;
  /** Number of cells, the empty ones too. */
  width = 0;
  /** End of the row's text, where its line end begins. */
  contentEnd = 0;
  hasBareCr = false;
  failure: RowFailure | undefined;
  /** Of each filled cell the number of its column, the start and the end (without quotes), and the flags. */
  readonly columnNumbers = new Uint16Array(MAX_COLUMNS);
  readonly starts = new Int32Array(MAX_COLUMNS);
  readonly ends = new Int32Array(MAX_COLUMNS);
  readonly flags = new Uint8Array(MAX_COLUMNS);

  /**
   * Reads the row of `bytes` that begins at `start`, and returns the index behind its line end. NO_ROW if that does
   * not come before `end`, or with a `failure` if it is no CSV. The byte at `end` must be SENTINEL. Its loops stay in
   * one function, since they run for every byte.
   */
  read(bytes: Buffer, start: number, end: number): number {
    const { columnNumbers, starts, ends, flags } = this;
    this.bytes = bytes;
    this.start = start;
    let filledCount = 0;
    let columnNumber = 0;
    let hasBareCr = false;
    let i = start;
    for (;;) {
      let c = bytes[i];
      while (c === COMMA) {
        columnNumber++;
        c = bytes[++i];
      }
      if (c !== LF) {
        let cellStart = i;
        let cellEnd: number;
        let cellFlags = 0;
        if (c === QUOTE && i !== end) {
          cellFlags = QUOTED;
          cellStart = ++i;
          for (;;) {
            while (bytes[i] !== QUOTE) i++;
            if (bytes[i + 1] !== QUOTE || i + 1 >= end) break;
            cellFlags = QUOTED | DOUBLED;
            i += 2;
          }
          cellEnd = i++;
          if (i >= end) return NO_ROW;
          c = bytes[i];
          if (c !== COMMA && c !== LF) {
            if (c === CR && i + 1 === end) return NO_ROW;
            if (c !== CR || bytes[i + 1] !== LF) return this.#fail('after_quote', i);
          }
        } else {
          // LF, CR, SPACE, QUOTE and COMMA follow each other in this order.
          while (c > COMMA) c = bytes[++i];
          while (c !== COMMA && c !== LF) {
            if (c <= QUOTE && c !== SPACE) {
              if (i === end) return NO_ROW;
              if (c === QUOTE) return this.#fail('quote_in_cell', i);
              if (c === CR) {
                if (bytes[i + 1] === LF) break;
                cellFlags = BARE_CR;
                hasBareCr = true;
              }
            }
            do c = bytes[++i];
            while (c > COMMA);
          }
          cellEnd = i;
        }
        if (cellEnd > cellStart) {
          // A store behind the end of these arrays has no effect. Such a row is refused at its end.
          columnNumbers[filledCount] = columnNumber;
          starts[filledCount] = cellStart;
          ends[filledCount] = cellEnd;
          flags[filledCount++] = cellFlags;
        }
        if (c === COMMA) {
          columnNumber++;
          i++;
          continue;
        }
      }
      if (columnNumber >= MAX_COLUMNS) return this.#fail('too_many_columns', start);
      this.filledCount = filledCount;
      this.hasBareCr = hasBareCr;
      this.width = columnNumber + 1;
      this.contentEnd = i;
      return c === LF ? i + 1 : i + 2;
    }
  }

  /** The number `k` of a column's cell; -1 if that is empty. */
  cellOf(columnNumber: number): number {
    const { filledCount, columnNumbers } = this;
    let k = 0;
    while (k < filledCount && columnNumbers[k] < columnNumber) k++;
    return k < filledCount && columnNumbers[k] === columnNumber ? k : -1;
  }

  /** The texts of all cells, the empty ones too. */
  texts(): string[] {
    const texts = new Array<string>(this.width).fill('');
    const cell = new CellText();
    for (let k = 0; k < this.filledCount; k++) {
      cell.read(this, k);
      texts[this.columnNumbers[k]] = cell.content.toString();
    }
    return texts;
  }

  #fail(reason: RowFailure['reason'], index: number): number {
    this.failure = { reason, index };
    return NO_ROW;
  }
}

/** The text of a cell, each pair of quotes in it as one: [start, end) of `bytes`. One object serves all rows. */
export class CellText {
  bytes: Buffer = Buffer.alloc(0);
  start = 0;
  end = 0;
  #unquoted = Buffer.alloc(1024);

  /** Reads the filled cell `k`: bytes of the row, which must stay, or a copy until the next call. */
  read({ bytes, starts, ends, flags }: CsvRow, k: number): void {
    this.bytes = bytes;
    this.start = starts[k];
    this.end = ends[k];
    if ((flags[k] & DOUBLED) !== 0) this.#unquote();
  }

  /** Takes a text that is no cell. */
  set(bytes: Buffer): void {
    this.bytes = bytes;
    this.start = 0;
    this.end = bytes.length;
  }

  get content(): Buffer {
    return this.bytes.subarray(this.start, this.end);
  }

  /** The bytes as a string of as many characters: a key of a Map that costs no decoding. */
  get latin1(): string {
    return this.bytes.toString('latin1', this.start, this.end);
  }

  #unquote(): void {
    const { bytes, start, end } = this;
    if (this.#unquoted.length < end - start) this.#unquoted = Buffer.alloc((end - start) * 2);
    const to = this.#unquoted;
    let length = 0;
    for (let i = start; i < end; i++) {
      to[length++] = bytes[i];
      if (bytes[i] === QUOTE) i++;
    }
    this.bytes = to;
    this.start = 0;
    this.end = length;
  }
}
