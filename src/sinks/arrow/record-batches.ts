import { openAsBlob } from 'node:fs';
import { END_BYTES } from './output.ts';

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
