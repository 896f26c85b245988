import type { Writable } from 'node:stream';
import type { Typed } from '../../table/columns.ts';
import { streamShapes } from './build/batch-builder.ts';
import type { BuiltBatches } from './build/task.ts';
import { IpcStream } from './output.ts';
import { RecordBatches } from './record-batches.ts';
import { streamColumns, streamSchema } from './stream-schema.ts';

export interface ArrowStreamOptions {
  readonly columns: readonly Typed[];
  readonly timezone: string | undefined;
  readonly version: string;
  readonly signal: AbortSignal;
}

/** Record batches to be sent, their rows, and the cells in `_rescued`. */
export type SentBatches = Pick<BuiltBatches, 'batches' | 'rows' | 'rescued'>;

/** One stream of record batches. */
export class ArrowStream {
  /** Rows sent. */
  rows = 0;
  /** Cells in `_rescued`, by source column name. */
  readonly rescued = new Map<string, number>();
  readonly columns: readonly Typed[];
  readonly #signal: AbortSignal;
  readonly #out: IpcStream;
  readonly #batches: RecordBatches;

  constructor(out: Writable, { columns, timezone, version, signal }: ArrowStreamOptions) {
    const schema = streamSchema(columns, timezone !== undefined, version);
    this.columns = columns;
    this.#signal = signal;
    this.#out = new IpcStream(out, schema);
    this.#batches = new RecordBatches(schema, streamShapes(streamColumns(columns), timezone !== undefined));
  }

  /** `places`: in the schema, of the columns that the batches have; all others are null. Absent: they have all. */
  async send({ batches, rows, rescued }: SentBatches, places?: readonly number[]): Promise<void> {
    for (const batch of batches) {
      // Stryker disable next-line CallExpression: the builder stops, too; only a staged window, which needs threads, is stopped here alone
      this.#signal.throwIfAborted();
      await this.#out.write(this.#batches.of(batch, places));
    }
    this.rows += rows;
    for (const [name, cells] of rescued) this.rescued.set(name, (this.rescued.get(name) ?? 0) + cells);
  }

  /** Ends the stream; one without rows still tells its schema. */
  end(): Promise<void> {
    return this.#out.end();
  }

  /** Lets go of the output; safe at any time. */
  release(): void {
    this.#out.release();
  }
}
