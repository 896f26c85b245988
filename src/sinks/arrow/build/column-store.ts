import { bitBytes, nodeAt, type Shape } from './packed.ts';
import { TextCodes } from './text-codes.ts';

const FIRST_ROWS = 64;
/** Up to this length a loop copies faster than `TypedArray.set`. */
const SHORT_BYTES = 256;
/** What the loop copies at a time: it may read and write so much behind a text. */
const STEP = 4;
/** Only the memory of a block is so large, and has a margin behind its rows. */
const BLOCK_BYTES = 1 << 19;
const NO_BYTES = new Uint8Array(0);

/** Values of one column of the current batch. Rows are appended in rising order; those left out are null. */
export class ColumnStore {
  readonly shape: Shape;
  /** The elements of lists, or the distinct texts of a dictionary. */
  readonly items: ColumnStore | undefined;
  /** 64-bit values as pairs of words, the low one first, or 32-bit ones. */
  words = new Int32Array(0);
  /** The same memory as 64-bit floating point numbers. */
  doubles = new Float64Array(0);
  /** Values, of a column of `items` alone. */
  length = 0;
  readonly #codes: TextCodes | undefined;
  #capacity = 0;
  #bits = NO_BYTES;
  #values = NO_BYTES;
  #offsets = new Int32Array(0);
  /** Rows whose end is in `#offsets`. */
  #ended = 0;
  #text = NO_BYTES;
  #textView = viewOf(NO_BYTES);
  /** Where the last text came from. */
  #source: Uint8Array = NO_BYTES;
  #sourceView = viewOf(NO_BYTES);
  /** Bytes of `#text`, or elements. */
  #end = 0;
  #filled = 0;

  constructor(shape: Shape) {
    this.shape = shape;
    this.items = shape.item && new ColumnStore(shape.item);
    this.#codes = shape.kind === 'dictionary' ? new TextCodes() : undefined;
  }

  /** Makes room for `rows` rows; what is there stays. */
  reserve(rows: number): void {
    if (rows <= this.#capacity) return;
    const capacity = Math.max(rows, this.#capacity * 2, FIRST_ROWS);
    this.#capacity = capacity;
    this.#bits = grown(this.#bits, bitBytes(capacity));
    const { kind, width } = this.shape;
    if (kind === 'text' || kind === 'list') {
      const offsets = new Int32Array(capacity + 1);
      offsets.set(this.#offsets);
      this.#offsets = offsets;
      return;
    }
    this.#values = grown(this.#values, kind === 'bit' ? bitBytes(capacity) : Math.ceil((capacity * width) / 8) * 8);
    if (kind === 'bit') return;
    this.words = new Int32Array(this.#values.buffer);
    this.doubles = width === 8 ? new Float64Array(this.#values.buffer) : this.doubles;
  }

  /** Row `row` has a value; that of a fixed width is written by the caller. */
  setValid(row: number): void {
    this.#bits[row >> 3] |= 1 << (row & 7);
    this.#filled++;
  }

  setTrue(row: number): void {
    this.#values[row >> 3] |= 1 << (row & 7);
  }

  /** Row `row` is the text [start, end) of valid UTF-8. */
  setText(row: number, b: Uint8Array, start: number, end: number): void {
    this.setValid(row);
    if (this.#codes === undefined) this.#addText(row, b, start, end);
    else this.#setCode(this.#codes, row, b, start, end);
  }

  /** Appends bytes to the text of the row that `setText` was last called for. */
  appendText(b: Uint8Array): void {
    const to = this.#end;
    this.#end = to + b.length;
    this.#reserveText();
    this.#text.set(b, to);
  }

  /** Row `row` is the list of what is appended to `items` from now on. */
  beginList(row: number): void {
    this.setValid(row);
    this.#endRows(row);
  }

  /** The list is complete. */
  endList(): void {
    this.#end = this.items?.length ?? 0;
  }

  /** Makes room for one more element and returns its row. */
  addItem(): number {
    this.reserve(this.length + 1);
    return this.length++;
  }

  /** Collects the numbers that `pack` needs, for `rows` rows, and returns the bytes it writes behind `at`. */
  measure(rows: number, nodes: number[], at: number): number {
    const length = rows;
    nodes.push(length, length - this.#filled, this.shape.kind === 'text' ? this.#end : 0);
    const { end } = nodeAt(this.shape, at, length, this.#end);
    return this.items?.measure(this.items.length, nodes, end) ?? end;
  }

  /** Copies `rows` rows to `at` of `out`, which is zeroed, and empties the column; returns where the next one begins. */
  pack(rows: number, out: Uint8Array, at: number): number {
    const { bits, offsets, data, dataBytes, end } = nodeAt(this.shape, at, rows, this.#end);
    const { kind } = this.shape;
    if (this.#filled > 0) {
      out.set(this.#bits.subarray(0, bitBytes(rows)), bits);
      if (kind === 'text') out.set(this.#text.subarray(0, dataBytes), data);
      else if (kind !== 'list') out.set(this.#values.subarray(0, dataBytes), data);
      if (kind === 'text' || kind === 'list') this.#packOffsets(rows, out, offsets);
    }
    const { items } = this;
    const next = items?.pack(items.length, out, end) ?? end;
    this.#clear(rows);
    return next;
  }

  #packOffsets(rows: number, out: Uint8Array, at: number): void {
    this.#endRows(rows);
    const { buffer } = this.#offsets;
    out.set(new Uint8Array(buffer, 0, (rows + 1) * this.#offsets.BYTES_PER_ELEMENT), at);
  }

  #clear(rows: number): void {
    this.length = 0;
    this.#codes?.clear();
    if (this.#filled === 0) return;
    this.#bits.fill(0, 0, bitBytes(rows));
    // A null value is zero: nothing of an earlier row may get into the stream.
    this.#values.fill(0, 0, this.shape.kind === 'bit' ? bitBytes(rows) : rows * this.shape.width);
    this.#filled = 0;
    this.#ended = 0;
    this.#end = 0;
  }

  #addText(row: number, b: Uint8Array, start: number, end: number): void {
    const to = this.#end;
    const length = end - start;
    this.#endRows(row);
    this.#end = to + length;
    this.#reserveText();
    if (length > SHORT_BYTES || b.length < BLOCK_BYTES) {
      this.#text.set(b.subarray(start, end), to);
      return;
    }
    if (this.#source !== b) {
      this.#source = b;
      this.#sourceView = viewOf(b);
    }
    const source = this.#sourceView;
    const text = this.#textView;
    for (let i = 0; i < length; i += STEP) text.setInt32(to + i, source.getInt32(start + i, true), true);
  }

  #setCode(codes: TextCodes, row: number, b: Uint8Array, start: number, end: number): void {
    const code = codes.codeOf(b, start, end);
    this.words[row] = code;
    if (code === this.items?.length) this.items.setText(this.items.addItem(), b, start, end);
  }

  #reserveText(): void {
    if (this.#end + STEP <= this.#text.length) return;
    this.#text = grown(this.#text, Math.max(this.#end + STEP, this.#text.length * 2));
    this.#textView = viewOf(this.#text);
  }

  /** The rows before `row` end here at the latest, where it begins. */
  #endRows(row: number): void {
    const end = this.#end;
    const offsets = this.#offsets;
    for (let i = this.#ended; i <= row; i++) offsets[i] = end;
    this.#ended = row + 1;
  }
}

const viewOf = ({ buffer, byteOffset, byteLength }: Uint8Array): DataView =>
  new DataView(buffer, byteOffset, byteLength);

function grown(bytes: Uint8Array<ArrayBuffer>, length: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(length);
  larger.set(bytes);
  return larger;
}
