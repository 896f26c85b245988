import { type FileHandle, open } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { Field, RecordBatchStreamWriter, Schema } from 'apache-arrow';
import { abortable } from '../../base/abort.ts';
import { DUCKDB_SCALARS, type DuckDbType } from '../../cells/types/type.ts';
import { TYPES } from '../../cells/types/types.ts';
import { type DescribedColumn, scalarOf } from '../../engine/conversions.ts';
import type { Typed } from '../../table/tables.ts';

/** The program's own columns of a stream. */
export const OWN_IN_ARROW: readonly DescribedColumn[] = [
  { name: '_key', type: 'VARCHAR' },
  { name: 'event_date', type: 'DATE' },
  { name: '_rescued', type: 'VARCHAR' },
  { name: '_loaded_at', type: 'TIMESTAMP' },
];

/** The schema of a stream: the program's own columns, then those of the export in their order. */
export function streamSchema(columns: readonly Typed[], asInstants: boolean, version: string): Schema {
  const fields = columns.map(({ name, source, group, type }) =>
    fieldOf(name, TYPES[type].duckdb(asInstants), { source, group, type }),
  );
  const all = [...OWN_IN_ARROW.map(({ name, type }) => fieldOf(name, type)), ...fields];
  return new Schema(all, new Map([['dfinery.version', version]]));
}

function fieldOf(name: string, type: DuckDbType, metadata: Readonly<Record<string, string>> = {}): Field {
  const { scalar, isList } = scalarOf(type);
  const { arrow } = DUCKDB_SCALARS[scalar];
  const item = { name: 'item', type: arrow, nullable: true };
  return Field.fromJSON({
    ...(isList ? { type: { name: 'list' }, children: [item] } : { type: arrow }),
    name,
    nullable: true,
    metadata: Object.entries(metadata).map(([key, value]) => ({ key, value })),
  });
}

/** Bytes of the end of a stream, a message without content. */
const END_BYTES = 8;

/**
 * Writes the messages of an Arrow IPC stream to a Node stream. Those of one call are written while the caller makes the
 * next: `write` resolves once the messages of the call before were accepted, `end` once all were. A reader that stands
 * still keeps no run from stopping: all reject as soon as the signal aborts.
 */
export class IpcStream {
  /** The schema, which is written together with the first message. */
  #begin: Uint8Array | undefined;
  readonly #end: Uint8Array;
  readonly #out: Writable;
  readonly #signal: AbortSignal;
  #accepted: Promise<void> = Promise.resolve();
  #failed: Error | undefined;
  readonly #onError = (error: Error) => {
    this.#failed ??= error;
  };

  constructor(out: Writable, schema: Schema, signal: AbortSignal) {
    this.#out = out;
    this.#signal = signal;
    out.on('error', this.#onError);
    const writer = new RecordBatchStreamWriter();
    writer.reset(undefined, schema);
    writer.finish();
    const empty = writer.toUint8Array(true);
    this.#begin = empty.subarray(0, -END_BYTES);
    this.#end = empty.subarray(-END_BYTES);
  }

  /** Resolves once all that was written so far is accepted. */
  accepted(): Promise<void> {
    return abortable(this.#accepted, this.#signal);
  }

  /** Calls `listener` once all that was written so far is accepted. */
  onceAccepted(listener: () => void): void {
    this.#setAccepted(this.#accepted.then(listener));
  }

  async write(messages: Uint8Array): Promise<void> {
    await this.accepted();
    if (this.#failed) throw this.#failed;
    if (this.#begin !== undefined) this.#out.write(this.#begin);
    this.#begin = undefined;
    const accepted = new Promise<void>((resolve, reject) => {
      this.#out.write(messages, (error) => (error ? reject(error) : resolve()));
    });
    this.#setAccepted(accepted);
  }

  async end(): Promise<void> {
    await this.write(this.#end);
    await this.accepted();
  }

  #setAccepted(accepted: Promise<void>): void {
    this.#accepted = accepted;
    // A failure is thrown by the next call.
    accepted.catch(() => undefined);
  }

  /** Removes its listener from the Node stream, which stays usable. */
  release(): void {
    this.#out.off('error', this.#onError);
  }
}

/** Approximate size of a record batch (bytes): larger ones leave the caches of a processor, and take a tenth longer. */
const BATCH_BYTES = 2 * 1024 * 1024;
const MAX_ROWS = 15_360;
/** Minimum size of a column in a row: a value, or the offset of a text (bytes). */
const COLUMN_BYTES = 8;

/** Number of rows of a record batch with so many columns, whose rows have `rowBytes` of CSV. */
export const batchRows = (columns: number, rowBytes: number): number =>
  Math.max(1, Math.min(MAX_ROWS, Math.floor(BATCH_BYTES / (columns * COLUMN_BYTES + rowBytes))));

/** Loads the decoder of Parquet: 5 MB of WebAssembly, which take 35 ms and are needed only here. */
export const loadDecoder = () => import('parquet-wasm');

/**
 * A part of an open file, read in one call: Node's own Blob of a file reads it in many, beside other work of the loop.
 */
class FilePart extends Blob {
  override readonly size: number;
  readonly #file: FileHandle;
  readonly #begin: number;

  constructor(file: FileHandle, begin: number, size: number) {
    super([]);
    this.size = size;
    this.#file = file;
    this.#begin = begin;
  }

  override slice(begin = 0, end = this.size): Blob {
    return new FilePart(this.#file, this.#begin + begin, Math.min(end, this.size) - begin);
  }

  override async arrayBuffer(): Promise<ArrayBuffer> {
    const { buffer, bytesRead } = await this.#file.read(new Uint8Array(this.size), 0, this.size, this.#begin);
    return buffer.buffer.slice(0, bytesRead);
  }
}

/**
 * Yields the rows of a Parquet file as messages, a record batch of at most `batchSize` rows at a time. A row group is
 * decoded as a whole.
 */
export async function* recordBatches(path: string, batchSize: number) {
  const { ParquetFile } = await loadDecoder();
  const handle = await open(path);
  try {
    const file = await ParquetFile.fromFile(new FilePart(handle, 0, (await handle.stat()).size));
    try {
      for (const i of file.metadata().rowGroups().keys()) {
        const table = await file.read({ rowGroups: [i], batchSize });
        const batches = table.recordBatches();
        table.free();
        for (const batch of batches) yield { rows: batch.numRows, messages: withoutFrame(batch.intoIPCStream()) };
      }
    } finally {
      file.free();
    }
  } finally {
    await handle.close();
  }
}

/**
 * A message begins with the continuation marker and the length of its metadata, 32 bits each. That of a schema has
 * nothing else.
 */
const LENGTH_AT = 4;
const METADATA_AT = 8;

/** The messages of a stream without its schema and its end. */
function withoutFrame(stream: Uint8Array): Uint8Array {
  const schema = new DataView(stream.buffer, stream.byteOffset).getInt32(LENGTH_AT, true);
  return stream.subarray(METADATA_AT + schema, -END_BYTES);
}
