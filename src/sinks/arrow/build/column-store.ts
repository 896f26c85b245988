import {
  BITS,
  BYTES,
  CODE_SLOTS,
  CODE_WORDS,
  CODES,
  type ColumnMemory,
  END,
  ENDED,
  FILLED,
  OFFSETS,
  ROOM,
  TEXT_MARGIN,
  VALUES,
} from './column-memory.ts';
import { bitBytes, nodeAt, type Shape } from './packed.ts';
import { hashOf, TextCodes } from './text-codes.ts';

const FIRST_ROWS = 64;
const FIRST_TEXT_BYTES = 256;
const WORD_BYTES = 4;

/** Values of one column of the current batch. Rows are appended in rising order; those left out are null. */
export class ColumnStore {
  readonly shape: Shape;
  /** The elements of lists, or the distinct texts of a dictionary. */
  readonly items: ColumnStore | undefined;
  readonly memory: ColumnMemory;
  /** Where its state is among the words of the memory. */
  readonly state: number;
  /** Values, of a column of `items` alone. */
  length = 0;
  readonly #codes: TextCodes | undefined;
  #capacity = 0;

  constructor(shape: Shape, memory: ColumnMemory) {
    this.shape = shape;
    this.memory = memory;
    this.state = memory.newState();
    this.items = shape.item && new ColumnStore(shape.item, memory);
    if (shape.kind !== 'dictionary') return;
    this.#codes = new TextCodes();
    this.#set(CODES, memory.allocate(CODE_SLOTS * CODE_WORDS * WORD_BYTES));
  }

  /** Makes room for `rows` rows; what is there stays. */
  reserve(rows: number): void {
    if (rows <= this.#capacity) return;
    const before = this.#capacity;
    const capacity = Math.max(rows, before * 2, FIRST_ROWS);
    const { kind, width } = this.shape;
    this.#capacity = capacity;
    this.#move(BITS, bitBytes(before), bitBytes(capacity));
    if (kind === 'text' || kind === 'list')
      this.#move(OFFSETS, this.#get(ENDED) * WORD_BYTES, (capacity + 1) * WORD_BYTES);
    else if (kind === 'bit') this.#move(VALUES, bitBytes(before), bitBytes(capacity));
    else this.#move(VALUES, before * width, capacity * width);
  }

  /** Where the value of a row is among the words or doubles of the memory, counted in values of its width. */
  placeOf(row: number): number {
    return this.#get(VALUES) / this.shape.width + row;
  }

  /** Row `row` has a value; that of a fixed width is written by the caller. */
  setValid(row: number): void {
    this.memory.bytes[this.#get(BITS) + (row >> 3)] |= 1 << (row & 7);
    this.#set(FILLED, this.#get(FILLED) + 1);
  }

  setTrue(row: number): void {
    this.memory.bytes[this.#get(VALUES) + (row >> 3)] |= 1 << (row & 7);
  }

  /** Row `row` is the text [start, end) of valid UTF-8; `b` may be the memory's bytes. */
  setText(row: number, b: Uint8Array, start: number, end: number): void {
    if (this.#codes !== undefined) this.#setCode(this.#codes, row, b, start, end);
    else if (b !== this.memory.bytes || !this.memory.addText(this.state, row, start, end)) {
      this.setValid(row);
      this.#endRows(row);
      this.#append(b, start, end);
    }
  }

  /** Appends bytes to the text of the row that `setText` was last called for. */
  appendText(b: Uint8Array): void {
    this.#append(b, 0, b.length);
  }

  /** Row `row` is the list of what is appended to `items` from now on. */
  beginList(row: number): void {
    this.setValid(row);
    this.#endRows(row);
  }

  /** The list is complete. */
  endList(): void {
    // Stryker disable next-line OptionalChaining: a list has items
    this.#set(END, this.items?.length ?? 0);
  }

  /** Makes room for one more element and returns its row. */
  addItem(): number {
    this.reserve(this.length + 1);
    return this.length++;
  }

  /** Collects the numbers that `pack` needs, for `rows` rows, and returns the bytes it writes behind `at`. */
  measure(rows: number, nodes: number[], at: number): number {
    const length = rows;
    const bytes = this.#get(END);
    nodes.push(length, length - this.#get(FILLED), this.shape.kind === 'text' ? bytes : 0);
    const { end } = nodeAt(this.shape, at, length, bytes);
    return this.items?.measure(this.items.length, nodes, end) ?? end;
  }

  /** Copies `rows` rows to `at` of `out`, which is zeroed, and empties the column; returns where the next one begins. */
  pack(rows: number, out: Uint8Array, at: number): number {
    const { bits, offsets, data, dataBytes, end } = nodeAt(this.shape, at, rows, this.#get(END));
    const { kind } = this.shape;
    if (this.#get(FILLED) > 0) {
      this.#copy(BITS, bitBytes(rows), out, bits);
      if (kind === 'text') this.#copy(BYTES, dataBytes, out, data);
      else if (kind !== 'list') this.#copy(VALUES, dataBytes, out, data);
      if (kind === 'text' || kind === 'list') {
        this.#endRows(rows);
        this.#copy(OFFSETS, (rows + 1) * WORD_BYTES, out, offsets);
      }
    }
    const { items } = this;
    const next = items?.pack(items.length, out, end) ?? end;
    this.#clear(rows);
    return next;
  }

  #clear(rows: number): void {
    this.length = 0;
    if (this.#codes !== undefined) {
      this.#codes.clear();
      this.#zero(CODES, CODE_SLOTS * CODE_WORDS * WORD_BYTES);
    }
    if (this.#get(FILLED) === 0) return;
    const { kind, width } = this.shape;
    this.#zero(BITS, bitBytes(rows));
    // A null value is zero: nothing of an earlier row may get into the stream.
    if (kind !== 'text' && kind !== 'list') this.#zero(VALUES, kind === 'bit' ? bitBytes(rows) : rows * width);
    for (const word of [FILLED, ENDED, END]) this.#set(word, 0);
  }

  /** Appends bytes to the last text. */
  #append(b: Uint8Array, start: number, end: number): void {
    const { memory } = this;
    const isOwn = b === memory.bytes;
    const at = this.#get(END);
    const after = at + end - start;
    if (after + TEXT_MARGIN > this.#get(ROOM)) {
      const room = Math.max(after + TEXT_MARGIN, this.#get(ROOM) * 2, FIRST_TEXT_BYTES);
      this.#move(BYTES, at, room);
      this.#set(ROOM, room);
    }
    const to = this.#get(BYTES) + at;
    // Making room may have replaced the memory's bytes.
    if (isOwn) memory.bytes.copyWithin(to, start, end);
    else memory.bytes.set(b.subarray(start, end), to);
    this.#set(END, after);
  }

  #setCode(codes: TextCodes, row: number, b: Uint8Array, start: number, end: number): void {
    const code = codes.codeOf(b, start, end);
    if (code === this.items?.length) this.#addCode(this.items, b.slice(start, end), code);
    this.memory.words[this.placeOf(row)] = code;
    this.setValid(row);
  }

  /** Takes a new text into the dictionary, and into the list of those that SIMD knows. */
  #addCode(items: ColumnStore, text: Uint8Array, code: number): void {
    items.setText(items.addItem(), text, 0, text.length);
    const slot = (hashOf(text, 0, text.length) >>> 0) % CODE_SLOTS;
    // Stryker disable next-line ArithmeticOperator: a text that SIMD does not find there is looked up by TypeScript
    const known = items.#get(BYTES) + items.#get(END) - text.length;
    this.memory.words.set([known, text.length, code], this.#get(CODES) / WORD_BYTES + slot * CODE_WORDS);
  }

  /** The rows before `row` end here at the latest, where it begins. */
  #endRows(row: number): void {
    const end = this.#get(END);
    const { words } = this.memory;
    const offsets = this.#get(OFFSETS) / WORD_BYTES;
    words.fill(end, offsets + this.#get(ENDED), offsets + row + 1);
    this.#set(ENDED, row + 1);
  }

  #get(word: number): number {
    return this.memory.words[this.state + word];
  }

  #set(word: number, value: number): void {
    this.memory.words[this.state + word] = value;
  }

  /** Gives a part of the column a larger place; `used` bytes of it are kept. */
  #move(part: number, used: number, size: number): void {
    const to = this.memory.allocate(size);
    const from = this.#get(part);
    this.memory.bytes.copyWithin(to, from, from + used);
    this.#set(part, to);
  }

  #copy(part: number, bytes: number, out: Uint8Array, at: number): void {
    const from = this.#get(part);
    out.set(this.memory.bytes.subarray(from, from + bytes), at);
  }

  #zero(part: number, bytes: number): void {
    const from = this.#get(part);
    this.memory.bytes.fill(0, from, from + bytes);
  }
}
