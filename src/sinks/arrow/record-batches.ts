import {
  type Bool,
  Data,
  DataType,
  type DateDay,
  type Dictionary,
  type Float64,
  type Int32,
  type Int64,
  type List,
  makeData,
  RecordBatch,
  type Schema,
  Struct,
  type TimestampMicrosecond,
  Utf8,
} from 'apache-arrow';
import { bitBytes, NODE, nodeAt, type PackedBatch, type Shape, TEXT_SHAPE } from './build/packed.ts';
import { StreamDictionary } from './dictionary.ts';

type Fixed = Int64 | Float64 | DateDay | TimestampMicrosecond;

/** Turns packed batches into record batches of one stream, in place. */
export class RecordBatches {
  readonly #schema: Schema;
  readonly #shapes: readonly Shape[];
  /** One for each column that is sent as a dictionary, as long as the stream. */
  readonly #dictionaries = new Map<number, StreamDictionary>();

  constructor(schema: Schema, shapes: readonly Shape[]) {
    this.#schema = schema;
    this.#shapes = shapes;
  }

  /** `places`: in the schema, of the columns that the batch has; all others are null. Absent: it has all. */
  of(batch: PackedBatch, places?: readonly number[]): RecordBatch {
    const { fields } = this.#schema;
    const nodes = new Nodes(batch);
    const present = new Map((places ?? fields.map((_, i) => i)).map((place) => [place, this.#column(nodes, place)]));
    const children = fields.map((_, i) => present.get(i) ?? this.#column(nullsOf(this.#shapes[i], batch.rows), i));
    const data = makeData({ type: new Struct(fields), length: batch.rows, nullCount: 0, children });
    return new RecordBatch(this.#schema, data);
  }

  #column(nodes: Nodes, column: number): Data {
    const shape = this.#shapes[column];
    return shape.kind === 'dictionary'
      ? this.#coded(nodes, column)
      : dataOf(nodes, this.#schema.fields[column].type, shape);
  }

  #coded(nodes: Nodes, column: number): Data {
    const type: Dictionary<Utf8, Int32> = this.#schema.fields[column].type;
    const node = nodes.next(this.#shapes[column]);
    const codes = new Int32Array(node.buffer, node.data, node.length);
    const texts = textData(nodes);
    const known = this.#dictionaries.get(column) ?? new StreamDictionary();
    this.#dictionaries.set(column, known);
    known.recode(codes, node.nullBitmap, texts);
    const { length, nullCount, nullBitmap } = node;
    return makeData({ type, length, nullCount, nullBitmap, data: codes, dictionary: known.vector });
  }
}

/** The nodes of a batch, one after another. */
class Nodes {
  readonly #batch: PackedBatch;
  #node = 0;
  #at = 0;

  constructor(batch: PackedBatch) {
    this.#batch = batch;
  }

  next(shape: Shape) {
    const { buffer, nodes } = this.#batch;
    const [length, nullCount, textBytes] = nodes.subarray(this.#node, this.#node + NODE);
    const at = nodeAt(shape, this.#at, length, textBytes);
    this.#node += NODE;
    this.#at = at.end;
    const nullBitmap = new Uint8Array(buffer, at.bits, bitBytes(length));
    return { buffer, length, nullCount, nullBitmap, textBytes, ...at };
  }
}

/** A column of `rows` nulls. */
function nullsOf(shape: Shape, rows: number): Nodes {
  const { end } = nodeAt(shape, 0, rows, 0);
  const items = shape.item === undefined ? 0 : nodeAt(shape.item, 0, 0, 0).end;
  const nodes = Float64Array.of(rows, rows, 0, 0, 0, 0);
  return new Nodes({ rows, buffer: new ArrayBuffer(end + items), bytes: end + items, nodes });
}

/** The texts of a dictionary. */
function textData(nodes: Nodes): Data<Utf8> {
  const { buffer, length, offsets, data, textBytes } = nodes.next(TEXT_SHAPE);
  const valueOffsets = new Int32Array(buffer, offsets, length + 1);
  return makeData({
    type: new Utf8(),
    length,
    nullCount: 0,
    valueOffsets,
    data: new Uint8Array(buffer, data, textBytes),
  });
}

function dataOf(nodes: Nodes, type: DataType, shape: Shape): Data {
  const { buffer, length, nullCount, nullBitmap, offsets, data, textBytes } = nodes.next(shape);
  const common = { length, nullCount, nullBitmap };
  const valueOffsets = () => new Int32Array(buffer, offsets, length + 1);
  switch (shape.kind) {
    case 'bit':
      return makeData({ type: type as Bool, ...common, data: new Uint8Array(buffer, data, bitBytes(length)) });
    case 'text':
      return makeData({
        type: type as Utf8,
        ...common,
        valueOffsets: valueOffsets(),
        data: new Uint8Array(buffer, data, textBytes),
      });
    case 'list': {
      const list = type as List;
      const child = dataOf(nodes, list.valueType, shape.item ?? TEXT_SHAPE);
      return makeData({ type: list, ...common, valueOffsets: valueOffsets(), child });
    }
    default:
      return fixedData(type as Fixed, common, buffer, data);
  }
}

interface Common {
  readonly length: number;
  readonly nullCount: number;
  readonly nullBitmap: Uint8Array;
}

/** `new Data` and not `makeData`, which knows no union of types. */
function fixedData(type: Fixed, { length, nullCount, nullBitmap }: Common, buffer: ArrayBuffer, at: number): Data {
  return new Data(type, 0, length, nullCount, [undefined, valuesOf(type, buffer, at, length), nullBitmap]);
}

function valuesOf(type: Fixed, buffer: ArrayBuffer, at: number, length: number) {
  if (DataType.isDate(type)) return new Int32Array(buffer, at, length);
  return DataType.isFloat(type) ? new Float64Array(buffer, at, length) : new BigInt64Array(buffer, at, length);
}
