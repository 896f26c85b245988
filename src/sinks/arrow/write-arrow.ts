// This folder: the target `arrow`. DuckDB writes the typed rows of windows as temporary Parquet files, as for the other
// targets; these are decoded into the record batches of one stream.

import { rm } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import manifest from '../../../package.json' with { type: 'json' };
import { codeOf, Failure } from '../../base/errors.ts';
import type { Window } from '../../extract/window.ts';
import { diskFailure } from '../../fs/disk-failure.ts';
import { logChanges } from '../../table/changes.ts';
import { FIRST_COLUMNS, type StoredColumn, typedColumns } from '../../table/columns.ts';
import { incomingColumns } from '../../table/incoming.ts';
import { planColumns, type Rules } from '../../table/plan.ts';
import type { TargetOptions } from '../target.ts';
import { fileOutput, IpcStream, isReaderGone, type Output, streamOutput } from './output.ts';
import { batchRows, recordBatches } from './record-batches.ts';
import { streamSchema } from './stream-schema.ts';
import { type TypedFile, TypedFiles } from './typed-files.ts';
import { openWindowStore, type WindowStore } from './window-store.ts';

export interface ArrowOptions extends TargetOptions {
  /** A file's path, or a stream that stays open. */
  readonly out: string | Writable;
  /** Holds the files of windows until the schema of all is known. */
  readonly spoolDir: string;
  readonly signal: AbortSignal;
}

export interface ArrowResult {
  readonly rows: number;
  readonly windows: number;
  /** Names in the stream, our own left out. */
  readonly columns: readonly string[];
  /** Cells in `_rescued`, by source column name. */
  readonly rescued: ReadonlyMap<string, number>;
  /** True when the reader closed the stream before the end; that is no failure. */
  readonly readerLeft: boolean;
}

/** CSV bytes of a row, where no window was seen yet. */
const USUAL_ROW_BYTES = 400;

/**
 * Writes windows as one Arrow IPC stream. Its schema is the pinned one, else that of all windows, which are then held
 * on disk until the last has come (S31). Throws Failure; a file that was begun is then not there.
 */
export async function writeArrow(windows: AsyncIterable<Window>, options: ArrowOptions): Promise<ArrowResult> {
  const store = await openWindowStore(options.spoolDir, options.clock);
  const output =
    typeof options.out === 'string' ? fileOutput(options.out, options.clock.now()) : streamOutput(options.out);
  try {
    await output.ready();
    const result = await new ArrowRun(store, output, options).run(windows);
    await output.end();
    return result;
  } catch (error) {
    await output.drop();
    options.signal.throwIfAborted();
    throw failureOf(error, options.out);
  } finally {
    await store.release();
  }
}

function failureOf(error: unknown, out: string | Writable): unknown {
  if (error instanceof Failure || codeOf(error) === undefined) return error;
  const name = typeof out === 'string' ? out : 'the Arrow stream';
  return diskFailure(error, { what: name, path: name });
}

/** The state of one run. */
class ArrowRun {
  readonly #store: WindowStore;
  readonly #output: Output;
  readonly #options: ArrowOptions;
  readonly #rules: Rules;
  readonly #rescued = new Map<string, number>();
  #rows = 0;
  #windows = 0;

  constructor(store: WindowStore, output: Output, options: ArrowOptions) {
    this.#store = store;
    this.#output = output;
    this.#options = options;
    const { columnTypes, pinned, schemaMode, timezone } = options;
    // A stream that has begun cannot change: what a pinned schema does not know is rescued, unless it is to fail.
    const mode = pinned !== undefined && schemaMode === 'evolve' ? 'freeze' : schemaMode;
    this.#rules = { zoned: timezone !== undefined, columnTypes, pinned, mode };
  }

  async run(windows: AsyncIterable<Window>): Promise<ArrowResult> {
    if (this.#options.pinned !== undefined) {
      const columns = planColumns(FIRST_COLUMNS, new Map(), this.#rules, true);
      return this.#send(windows, columns, USUAL_ROW_BYTES);
    }
    const { kept, columns } = await this.#keepAll(windows);
    const [bytes, rows] = kept.reduce(([b, r], { receipt }) => [b + receipt.bytes, r + receipt.rows], [0, 0]);
    return this.#send(this.#released(kept), columns, bytes / Math.max(1, rows));
  }

  /** Holds all windows on disk until their columns are known. */
  async #keepAll(windows: AsyncIterable<Window>) {
    const kept: Window[] = [];
    let columns: readonly StoredColumn[] = FIRST_COLUMNS;
    for await (const window of windows) {
      const plan = planColumns(columns, incomingColumns(window.files).columns, this.#rules, kept.length === 0);
      logChanges(this.#options.logger, kept.length === 0 ? [] : plan, new Map());
      columns = plan;
      kept.push(await this.#store.keep(window));
    }
    return { kept, columns };
  }

  async *#released(kept: readonly Window[]): AsyncGenerator<Window> {
    for (const window of kept) {
      yield window;
      await this.#store.drop(window);
    }
  }

  /** Sends all windows in columns that are known by now; `rowBytes`: CSV of a row, about. */
  async #send(
    windows: AsyncIterable<Window>,
    columns: readonly StoredColumn[],
    rowBytes: number,
  ): Promise<ArrowResult> {
    const typed = typedColumns(columns);
    const schema = streamSchema(typed, this.#options.timezone !== undefined, manifest.version);
    const groupRows = batchRows(schema.fields.length, rowBytes);
    const stream = new IpcStream(this.#output.stream, schema);
    const { folder } = this.#store;
    const files = await TypedFiles.open({ ...this.#options, folder, columns, rules: this.#rules, groupRows });
    let readerLeft = false;
    try {
      for await (const file of ahead(files.of(this.#counted(windows)))) {
        for await (const batch of recordBatches(file.path, schema, groupRows)) {
          this.#options.signal.throwIfAborted();
          await stream.write(batch);
          this.#rows += batch.numRows;
        }
        await this.#finish(file);
      }
      await stream.end();
    } catch (error) {
      if (!isReaderGone(error)) throw error;
      readerLeft = true;
    } finally {
      stream.release();
      await files.close();
    }
    return {
      rows: this.#rows,
      windows: this.#windows,
      columns: typed.map(({ name }) => name),
      rescued: this.#rescued,
      readerLeft,
    };
  }

  async *#counted(windows: AsyncIterable<Window>): AsyncGenerator<Window> {
    for await (const window of windows) {
      this.#windows++;
      yield window;
    }
  }

  async #finish({ path, rescued }: TypedFile): Promise<void> {
    for (const [name, cells] of rescued) this.#rescued.set(name, (this.#rescued.get(name) ?? 0) + cells);
    await rm(path);
  }
}

/** Asks for the next item while the last one is in use. */
async function* ahead<T>(items: AsyncGenerator<T>): AsyncGenerator<T> {
  let next = items.next();
  try {
    for (;;) {
      const { done, value } = await next;
      if (done === true) return;
      next = items.next();
      // Its failure is thrown when it is asked for.
      next.catch(() => undefined);
      yield value;
    }
  } finally {
    await next.catch(() => undefined);
    await items.return(undefined);
  }
}
