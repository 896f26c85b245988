/** Types of the compact protocol, as field headers and list headers number them. */
const TRUE = 1;
const FALSE = 2;
const I8 = 3;
const I16 = 4;
const I32 = 5;
const I64 = 6;
const DOUBLE = 7;
const BINARY = 8;
const LIST = 9;
const SET = 10;
const STRUCT = 12;

/** A value as it was read: its type with it, so that it is written back as it was. */
export type Thrift =
  | { readonly type: typeof TRUE | typeof FALSE }
  | { readonly type: typeof I8 | typeof I16 | typeof I32 | typeof I64; readonly value: bigint }
  | { readonly type: typeof DOUBLE | typeof BINARY; readonly value: Uint8Array }
  | { readonly type: typeof LIST | typeof SET; readonly of: number; readonly items: readonly Thrift[] }
  | { readonly type: typeof STRUCT; readonly fields: ThriftFields };

/** By field id, in rising order. */
export type ThriftFields = ReadonlyMap<number, Thrift>;

const LONG_LIST = 15;
const DOUBLE_BYTES = 8;

/** Reads a struct of Thrift's compact protocol: what a Parquet footer is. Throws RangeError for anything else. */
export function readStruct(bytes: Uint8Array): ThriftFields {
  return new ThriftReader(bytes).fields();
}

class ThriftReader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  fields(): ThriftFields {
    const fields = new Map<number, Thrift>();
    for (let id = 0; ; ) {
      const header = this.#byte();
      if (header === 0) return fields;
      const delta = header >> 4;
      id = delta === 0 ? Number(this.#zigzag()) : id + delta;
      fields.set(id, this.#value(header & 15));
    }
  }

  #value(type: number): Thrift {
    switch (type) {
      case TRUE:
      case FALSE:
        return { type };
      case I8:
        return { type, value: BigInt(this.#byte()) };
      case I16:
      case I32:
      case I64:
        return { type, value: this.#zigzag() };
      case DOUBLE:
        return { type, value: this.#take(DOUBLE_BYTES) };
      case BINARY:
        return { type, value: this.#take(Number(this.#varint())) };
      case LIST:
      case SET:
        return this.#list(type);
      case STRUCT:
        return { type, fields: this.fields() };
      default:
        throw new RangeError(`a Parquet footer with a value of type ${type}`);
    }
  }

  #list(type: typeof LIST | typeof SET): Thrift {
    const header = this.#byte();
    const of = header & 15;
    const count = header >> 4 === LONG_LIST ? Number(this.#varint()) : header >> 4;
    const items: Thrift[] = [];
    for (let i = 0; i < count; i++) {
      // Among the items of a list a boolean is a byte of its own.
      if (of === TRUE || of === FALSE) items.push({ type: this.#byte() === TRUE ? TRUE : FALSE });
      else items.push(this.#value(of));
    }
    return { type, of, items };
  }

  #byte(): number {
    if (this.#at >= this.#bytes.length) throw new RangeError('a Parquet footer that is cut');
    return this.#bytes[this.#at++];
  }

  #take(count: number): Uint8Array {
    const end = this.#at + count;
    if (end > this.#bytes.length) throw new RangeError('a Parquet footer that is cut');
    const part = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return part;
  }

  #varint(): bigint {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = this.#byte();
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  }

  #zigzag(): bigint {
    const value = this.#varint();
    return (value >> 1n) ^ -(value & 1n);
  }
}

/** The same struct as bytes. */
export function writeStruct(fields: ThriftFields): Uint8Array {
  const out: Uint8Array[] = [];
  writeFields(fields, out);
  return new Uint8Array(Buffer.concat(out));
}

function writeFields(fields: ThriftFields, out: Uint8Array[]): void {
  let last = 0;
  for (const [id, value] of fields) {
    const delta = id - last;
    if (delta > 0 && delta < LONG_LIST) out.push(Uint8Array.of((delta << 4) | value.type));
    else out.push(Uint8Array.of(value.type), zigzag(BigInt(id)));
    last = id;
    writeValue(value, out);
  }
  out.push(Uint8Array.of(0));
}

function writeValue(value: Thrift, out: Uint8Array[]): void {
  switch (value.type) {
    case TRUE:
    case FALSE:
      return;
    case I8:
      out.push(Uint8Array.of(Number(value.value)));
      return;
    case I16:
    case I32:
    case I64:
      out.push(zigzag(value.value));
      return;
    case DOUBLE:
      out.push(value.value);
      return;
    case BINARY:
      out.push(varint(BigInt(value.value.length)), value.value);
      return;
    case LIST:
    case SET:
      writeList(value.of, value.items, out);
      return;
    case STRUCT:
      writeFields(value.fields, out);
  }
}

function writeList(of: number, items: readonly Thrift[], out: Uint8Array[]): void {
  if (items.length < LONG_LIST) out.push(Uint8Array.of((items.length << 4) | of));
  else out.push(Uint8Array.of((LONG_LIST << 4) | of), varint(BigInt(items.length)));
  for (const item of items) {
    if (item.type === TRUE || item.type === FALSE) out.push(Uint8Array.of(item.type));
    else writeValue(item, out);
  }
}

function zigzag(value: bigint): Uint8Array {
  return varint(value >= 0n ? value << 1n : (-value << 1n) - 1n);
}

function varint(value: bigint): Uint8Array {
  const bytes: number[] = [];
  let left = value;
  for (; left > 127n; left >>= 7n) bytes.push(Number(left & 127n) | 128);
  bytes.push(Number(left));
  return Uint8Array.from(bytes);
}
