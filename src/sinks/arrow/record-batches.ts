import type { DuckDBDataChunk } from '@duckdb/node-api';
import { makeData, RecordBatch, Struct } from 'apache-arrow';
import { vectorOf } from './duckdb-vectors.ts';
import type { IpcStream } from './output.ts';
import type { StreamSchema } from './stream-schema.ts';

/** A record batch ends at so many rows or bytes, whichever comes first. */
const BATCH_ROWS = 65_536;
const BATCH_BYTES = 16 * 1024 * 1024;
/** Most rows of a chunk. */
const CHUNK_ROWS = 2_048;

/** Collects DuckDB's chunks into record batches of bounded size and sends each before it takes more rows. */
export class RecordBatches {
  readonly #schema: StreamSchema;
  readonly #stream: IpcStream;
  #held = 0;
  /** Rows sent or held. */
  rows = 0;
  /** Cells in `_rescued`, by source column name. */
  readonly rescued = new Map<string, number>();

  constructor(schema: StreamSchema, stream: IpcStream) {
    this.#schema = schema;
    this.#stream = stream;
  }

  /** Takes the rows of a chunk whose columns are those of the stream. No row was longer than `longestRow` bytes. */
  async add(chunk: DuckDBDataChunk, longestRow: number): Promise<void> {
    const { builders } = this.#schema;
    const vectors = builders.map((_, i) => vectorOf(chunk.chunk, i));
    const rows = chunk.rowCount;
    this.#countRescued(chunk);
    const step = Math.max(1, Math.min(CHUNK_ROWS, Math.floor(BATCH_BYTES / longestRow)));
    for (let from = 0; from < rows; from += step) {
      const count = Math.min(step, rows - from);
      builders.forEach((builder, i) => {
        builder.append(vectors[i], from, count);
      });
      this.#held += count;
      this.rows += count;
      if (this.#held >= BATCH_ROWS || this.#bytes() >= BATCH_BYTES) await this.#send();
    }
  }

  /** Sends the remaining rows and ends the stream; one without rows still tells its schema. */
  async end(): Promise<void> {
    if (this.#held > 0) await this.#send();
    await this.#stream.end();
  }

  #bytes(): number {
    return this.#schema.builders.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  async #send(): Promise<void> {
    const { schema, builders } = this.#schema;
    const length = this.#held;
    this.#held = 0;
    const children = builders.map((builder) => builder.take());
    await this.#stream.write(
      new RecordBatch(schema, makeData({ type: new Struct(schema.fields), length, nullCount: 0, children })),
    );
  }

  #countRescued(chunk: DuckDBDataChunk): void {
    const last = chunk.columnCount - 1;
    for (const text of chunk.getColumnValues(last)) {
      if (typeof text !== 'string') continue;
      for (const column of Object.keys(JSON.parse(text))) {
        this.rescued.set(column, (this.rescued.get(column) ?? 0) + 1);
      }
    }
  }
}
