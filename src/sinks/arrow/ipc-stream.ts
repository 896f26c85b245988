import { openAsBlob } from 'node:fs';
import type { Writable } from 'node:stream';
import {
  Bool,
  type DataType,
  DateDay,
  Field,
  Float64,
  Int64,
  List,
  RecordBatchStreamWriter,
  Schema,
  TimestampMicrosecond,
  Utf8,
} from 'apache-arrow';
import type { Typed } from '../../table/columns.ts';
import type { DuckDbScalar, DuckDbType } from '../../types/codec.ts';
import { TYPES } from '../../types/index.ts';
import { scalarOf } from '../sql/columns.ts';

/** The schema of a stream: `_key`, the columns of the export in their order, `_rescued`. */
export function streamSchema(columns: readonly Typed[], asInstants: boolean, version: string): Schema {
  const fields = columns.map(({ name, source, group, type }) => {
    return new Field(
      name,
      dataType(TYPES[type].duckdb(asInstants)),
      true,
      new Map(Object.entries({ source, group, type })),
    );
  });
  const all = [new Field('_key', new Utf8(), true), ...fields, new Field('_rescued', new Utf8(), true)];
  return new Schema(all, new Map([['dfinery.version', version]]));
}

/** DuckDB's types in Arrow's classes. */
const ARROW: Readonly<Record<DuckDbScalar, DataType>> = {
  BOOLEAN: new Bool(),
  BIGINT: new Int64(),
  DOUBLE: new Float64(),
  DATE: new DateDay(),
  TIMESTAMP: new TimestampMicrosecond(),
  TIMESTAMPTZ: new TimestampMicrosecond('UTC'),
  VARCHAR: new Utf8(),
};

function dataType(type: DuckDbType): DataType {
  const { scalar, isList } = scalarOf(type);
  return isList ? new List(new Field('item', ARROW[scalar], true)) : ARROW[scalar];
}

/** What ends a stream: a message without content. */
const END_BYTES = 8;

/** The messages of an Arrow IPC stream, into a Node stream: `write` resolves once the reader's side took them. */
export class IpcStream {
  /** The schema, which is written with what comes first. */
  #begin: Uint8Array | undefined;
  readonly #end: Uint8Array;
  readonly #out: Writable;
  #failed: Error | undefined;
  readonly #onError = (error: Error) => {
    this.#failed ??= error;
  };

  constructor(out: Writable, schema: Schema) {
    this.#out = out;
    out.on('error', this.#onError);
    const writer = new RecordBatchStreamWriter();
    writer.reset(undefined, schema);
    writer.finish();
    const empty = writer.toUint8Array(true);
    this.#begin = empty.subarray(0, -END_BYTES);
    this.#end = empty.subarray(-END_BYTES);
  }

  /** Writes whole messages. */
  async write(messages: Uint8Array): Promise<void> {
    if (this.#failed) throw this.#failed;
    if (this.#begin !== undefined) this.#out.write(this.#begin);
    this.#begin = undefined;
    await new Promise<void>((resolve, reject) => {
      this.#out.write(messages, (error) => (error ? reject(error) : resolve()));
    });
  }

  end(): Promise<void> {
    return this.write(this.#end);
  }

  /** Removes its listener from the stream, which may be used further. */
  release(): void {
    this.#out.off('error', this.#onError);
  }
}

/** Bytes of a record batch, about: what the decoder holds of a file at a time. */
const BATCH_BYTES = 8 * 1024 * 1024;
const MAX_ROWS = 61_440;
/** What a column takes of a row at least: a value, or the offset of a text. */
const COLUMN_BYTES = 8;

/** Rows of a record batch of so many columns, whose rows have `rowBytes` of CSV. */
export const batchRows = (columns: number, rowBytes: number): number =>
  Math.max(1, Math.min(MAX_ROWS, Math.floor(BATCH_BYTES / (columns * COLUMN_BYTES + rowBytes))));

/** Record batches as messages of a stream. */
export interface RecordBatches {
  readonly rows: number;
  readonly messages: Uint8Array;
}

/** The rows of a Parquet file, a row group at a time. `batchSize`: rows of a record batch at most. */
export async function* recordBatches(path: string, batchSize: number): AsyncGenerator<RecordBatches> {
  // WebAssembly of 5 MB, which nothing else needs.
  const { ParquetFile } = await import('parquet-wasm');
  const file = await ParquetFile.fromFile(await openAsBlob(path));
  try {
    for (const [i, group] of file.metadata().rowGroups().entries()) {
      const table = await file.read({ rowGroups: [i], batchSize });
      yield { rows: group.numRows(), messages: withoutFrame(table.intoIPCStream()) };
    }
  } finally {
    file.free();
  }
}

/** A message begins with a mark and the length of its metadata, each of 32 bits; that of a schema has nothing else. */
const LENGTH_AT = 4;
const METADATA_AT = 8;

/** The messages of a stream between its schema and its end. */
function withoutFrame(stream: Uint8Array): Uint8Array {
  const schema = new DataView(stream.buffer, stream.byteOffset).getInt32(LENGTH_AT, true);
  return stream.subarray(METADATA_AT + schema, -END_BYTES);
}
