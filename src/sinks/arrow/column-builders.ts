import {
  Bool,
  Data,
  type DataType,
  DateDay,
  Field,
  Float64,
  Int64,
  List,
  makeData,
  TimestampMicrosecond,
  Utf8,
} from 'apache-arrow';
import type { ArrowType } from '../../types/face.ts';
import { listAt, listsOf, maskOf, type RawVector, valuesOf } from './duckdb-vectors.ts';
import { withRoom, withRows } from './grow.ts';
import { isSet, Validity } from './validity.ts';
import { readTexts } from './vector-texts.ts';

/** Builds one column of an Arrow record batch from DuckDB's vectors. */
export interface ColumnBuilder {
  readonly type: DataType;
  /** Bytes held. */
  readonly bytes: number;
  /** Appends rows [from, from + count) of a vector. */
  append(vector: RawVector, from: number, count: number): void;
  /** The column so far; the next one starts empty. */
  take(): Data;
}

/** Rows that a builder has room for before it grows. */
export const FIRST_ROWS = 4_096;
/** Up to this length a loop copies faster than `TypedArray.set`. */
const SHORT_BYTES = 24;

/** The builder of a column of this type. */
export function builderOf(type: ArrowType): ColumnBuilder {
  switch (type.kind) {
    case 'bool':
      return new BoolBuilder();
    case 'int64':
      return fixedWidth(new Int64(), 8, (buffer, rows) => new BigInt64Array(buffer, 0, rows));
    case 'float64':
      return fixedWidth(new Float64(), 8, (buffer, rows) => new Float64Array(buffer, 0, rows));
    case 'date32':
      return fixedWidth(new DateDay(), 4, (buffer, rows) => new Int32Array(buffer, 0, rows));
    case 'timestamp':
      return fixedWidth(
        new TimestampMicrosecond(type.timezone),
        8,
        (buffer, rows) => new BigInt64Array(buffer, 0, rows),
      );
    case 'utf8':
      return new TextBuilder();
    case 'list':
      return new ListBuilder(builderOf(type.item));
  }
}

type FixedWidthType = Int64 | Float64 | DateDay | TimestampMicrosecond;
type Values = BigInt64Array | Float64Array | Int32Array;

function fixedWidth(
  type: FixedWidthType,
  width: number,
  view: (buffer: ArrayBuffer, rows: number) => Values,
): ColumnBuilder {
  return new FixedWidthBuilder(type, width, view);
}

/** Numbers, dates and times: DuckDB and Arrow have the same bytes for them. */
class FixedWidthBuilder implements ColumnBuilder {
  readonly type: FixedWidthType;
  readonly #width: number;
  readonly #view: (buffer: ArrayBuffer, rows: number) => Values;
  readonly #validity = new Validity(FIRST_ROWS);
  #values: Uint8Array<ArrayBuffer>;

  constructor(type: FixedWidthType, width: number, view: (buffer: ArrayBuffer, rows: number) => Values) {
    this.type = type;
    this.#width = width;
    this.#view = view;
    this.#values = new Uint8Array(FIRST_ROWS * width);
  }

  get bytes(): number {
    return this.#validity.length * this.#width;
  }

  append(vector: RawVector, from: number, count: number): void {
    const width = this.#width;
    const at = this.#validity.length * width;
    const mask = maskOf(vector, from + count);
    this.#values = withRoom(this.#values, at + count * width);
    this.#values.set(valuesOf(vector, (from + count) * width).subarray(from * width), at);
    this.#validity.append(mask, from, count);
    if (mask !== null) this.#blank(mask, from, count, at);
  }

  take(): Data {
    const length = this.#validity.length;
    const data = this.#view(this.#values.buffer, length);
    this.#values = new Uint8Array(this.#values.length);
    return new Data(this.type, 0, length, ...valuesAnd(data, this.#validity));
  }

  /** Zeroes the bytes of null values: DuckDB leaves arbitrary memory there, which must not reach the stream. */
  #blank(mask: Uint8Array, from: number, count: number, at: number): void {
    const width = this.#width;
    for (let i = 0; i < count; i++) {
      if (!isSet(mask, from + i)) this.#values.fill(0, at + i * width, at + (i + 1) * width);
    }
  }
}

/** The arguments of `Data` behind the length. */
function valuesAnd(data: Values, validity: Validity): [number, [undefined, Values, Uint8Array]] {
  const { nullBitmap, nullCount } = validity.take();
  return [nullCount, [undefined, data, nullBitmap]];
}

/** Booleans: a byte in DuckDB, a bit in Arrow. */
class BoolBuilder implements ColumnBuilder {
  readonly type = new Bool();
  readonly #validity = new Validity(FIRST_ROWS);
  #values = new Uint8Array(FIRST_ROWS >> 3);

  get bytes(): number {
    return this.#validity.length >> 3;
  }

  append(vector: RawVector, from: number, count: number): void {
    const mask = maskOf(vector, from + count);
    const values = valuesOf(vector, from + count);
    this.#values = withRoom(this.#values, (this.#validity.length + count + 7) >> 3);
    let row = this.#validity.length;
    for (let i = from; i < from + count; i++, row++) {
      if (values[i] !== 0 && (mask === null || isSet(mask, i))) this.#values[row >> 3] |= 1 << (row & 7);
    }
    this.#validity.append(mask, from, count);
  }

  take(): Data<Bool> {
    const length = this.#validity.length;
    const data = this.#values;
    this.#values = new Uint8Array(data.length);
    return makeData({ type: this.type, length, data, ...this.#validity.take() });
  }
}

/** Texts as UTF-8, one after the other. */
class TextBuilder implements ColumnBuilder {
  readonly type = new Utf8();
  readonly #validity = new Validity(FIRST_ROWS);
  #offsets = new Int32Array(FIRST_ROWS + 1);
  #text = new Uint8Array(FIRST_ROWS * 16);
  #end = 0;

  get bytes(): number {
    return this.#end + this.#validity.length * 4;
  }

  append(vector: RawVector, from: number, count: number): void {
    const first = this.#validity.length - from;
    this.#offsets = withRows(this.#offsets, this.#validity.length + count + 1);
    const offsets = this.#offsets;
    let next = from;
    const mask = readTexts(vector, from, count, (row, bytes, start, end) => {
      while (next <= row) offsets[first + next++] = this.#end;
      this.#copy(bytes, start, end);
    });
    while (next <= from + count) offsets[first + next++] = this.#end;
    this.#validity.append(mask, from, count);
  }

  #copy(bytes: Uint8Array, start: number, end: number): void {
    const to = this.#end;
    const length = end - start;
    this.#end = to + length;
    if (this.#end > this.#text.length) this.#text = withRoom(this.#text, this.#end);
    const text = this.#text;
    if (length > SHORT_BYTES) text.set(bytes.subarray(start, end), to);
    else for (let i = 0; i < length; i++) text[to + i] = bytes[start + i];
  }

  take(): Data<Utf8> {
    const length = this.#validity.length;
    const valueOffsets = this.#offsets.subarray(0, length + 1);
    const data = this.#text.subarray(0, this.#end);
    this.#offsets = new Int32Array(this.#offsets.length);
    this.#text = new Uint8Array(this.#text.length);
    this.#end = 0;
    return makeData({ type: this.type, length, valueOffsets, data, ...this.#validity.take() });
  }
}

class ListBuilder implements ColumnBuilder {
  readonly type: List;
  readonly #items: ColumnBuilder;
  readonly #validity = new Validity(FIRST_ROWS);
  #offsets = new Int32Array(FIRST_ROWS + 1);
  #end = 0;

  constructor(items: ColumnBuilder) {
    this.#items = items;
    this.type = new List(new Field('item', items.type, true));
  }

  get bytes(): number {
    return this.#items.bytes + this.#validity.length * 4;
  }

  append(vector: RawVector, from: number, count: number): void {
    const mask = maskOf(vector, from + count);
    const { entries, child } = listsOf(vector, from + count);
    const rows = this.#validity.length;
    this.#offsets = withRows(this.#offsets, rows + count + 1);
    for (let i = 0; i < count; i++) {
      if (mask === null || isSet(mask, from + i)) {
        const { start, length } = listAt(entries, from + i);
        if (length > 0) this.#items.append(child, start, length);
        this.#end += length;
      }
      this.#offsets[rows + i + 1] = this.#end;
    }
    this.#validity.append(mask, from, count);
  }

  take(): Data<List> {
    const length = this.#validity.length;
    const valueOffsets = this.#offsets.subarray(0, length + 1);
    this.#offsets = new Int32Array(this.#offsets.length);
    this.#end = 0;
    return makeData({
      type: this.type,
      length,
      valueOffsets,
      child: this.#items.take(),
      ...this.#validity.take(),
    });
  }
}
