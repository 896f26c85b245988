import { openAsBlob } from 'node:fs';
import { makeData, RecordBatch, RecordBatchReader, type Schema, Struct } from 'apache-arrow';

/** Bytes of a record batch, about: what the decoder holds of a file at a time. */
const BATCH_BYTES = 8 * 1024 * 1024;
const MAX_ROWS = 61_440;
/** What a column takes of a row at least: a value, or the offset of a text. */
const COLUMN_BYTES = 8;

/** Rows of a record batch of so many columns, whose rows have `rowBytes` of CSV. */
export const batchRows = (columns: number, rowBytes: number): number =>
  Math.max(1, Math.min(MAX_ROWS, Math.floor(BATCH_BYTES / (columns * COLUMN_BYTES + rowBytes))));

/** The rows of a Parquet file as record batches of a schema that has the same columns, a row group at a time. */
export async function* recordBatches(path: string, schema: Schema, rows: number): AsyncGenerator<RecordBatch> {
  // WebAssembly of 5 MB, which nothing else needs.
  const { ParquetFile } = await import('parquet-wasm');
  const file = await ParquetFile.fromFile(await openAsBlob(path));
  try {
    const groups = file.metadata().numRowGroups();
    for (let group = 0; group < groups; group++) {
      const table = await file.read({ rowGroups: [group], batchSize: rows });
      for (const { data } of RecordBatchReader.from(table.intoIPCStream())) {
        const { length, children } = data;
        yield new RecordBatch(schema, makeData({ type: new Struct(schema.fields), length, nullCount: 0, children }));
      }
    }
  } finally {
    file.free();
  }
}
