// This folder: the target `arrow`. It reads windows with DuckDB, copies its vectors into Arrow columns and sends record
// batches.

import { join } from 'node:path';
import type { Writable } from 'node:stream';
import manifest from '../../../package.json' with { type: 'json' };
import { codeOf, Failure } from '../../base/errors.ts';
import type { Window } from '../../extract/window.ts';
import { diskFailure } from '../../fs/disk-failure.ts';
import { Zone } from '../../types/zone.ts';
import { arrivalsOf } from '../sql/columns/arrivals.ts';
import { logChanges } from '../sql/columns/changes.ts';
import { planColumns, type Rules } from '../sql/columns/plan.ts';
import { FIRST_COLUMNS, type StoredColumn } from '../sql/columns/stored.ts';
import { isTyped } from '../sql/columns/typed.ts';
import { type Engine, openEngine } from '../sql/engine/engine.ts';
import { engineFailure } from '../sql/engine/faults.ts';
import type { WindowLoad } from '../sql/rows/file-query.ts';
import type { TargetOptions } from '../target.ts';
import { fileOutput, IpcStream, isReaderGone, type Output, streamOutput } from './output.ts';
import { RecordBatches } from './record-batches.ts';
import { streamSchema } from './stream-schema.ts';
import { openWindowQuery, storeSentIds } from './window-query.ts';
import { openWindowStore, type WindowStore } from './window-store.ts';

export interface ArrowOptions extends TargetOptions {
  /** A file's path, or a stream that stays open. */
  readonly out: string | Writable;
  /** Holds the files of windows until the schema of all is known. */
  readonly spoolDir: string;
  readonly signal: AbortSignal;
}

/** Rows that DuckDB buffers ahead of the stream. */
const AHEAD = '16MB';

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

/**
 * Writes windows as one Arrow IPC stream. Its schema is the pinned one, else that of all windows, which are then held
 * on disk until the last has come (S31). Throws Failure; a file that was begun is then not there.
 */
export async function writeArrow(windows: AsyncIterable<Window>, options: ArrowOptions): Promise<ArrowResult> {
  const store = await openWindowStore(options.spoolDir, options.clock);
  const output = typeof options.out === 'string' ? fileOutput(options.out) : streamOutput(options.out);
  let engine: Engine | undefined;
  try {
    await output.ready();
    engine = await openEngine({ ...options, file: join(store.folder, 'work'), lockWaitMs: 0 });
    await engine.run('SET preserve_insertion_order = true');
    await engine.run(`SET streaming_buffer_size = '${AHEAD}'`);
    const result = await new ArrowRun(engine, store, output, options).run(windows);
    await output.end();
    return result;
  } catch (error) {
    await output.drop();
    options.signal.throwIfAborted();
    throw failureOf(error, options.out);
  } finally {
    await engine?.close();
    await store.release();
  }
}

function failureOf(error: unknown, out: string | Writable): unknown {
  if (error instanceof Failure) return error;
  const name = typeof out === 'string' ? out : 'the Arrow stream';
  if (codeOf(error) !== undefined) return diskFailure(error, { what: name, path: name });
  return engineFailure(error, name);
}

/** The state of one stream. */
class ArrowRun {
  readonly #engine: Engine;
  readonly #store: WindowStore;
  readonly #output: Output;
  readonly #options: ArrowOptions;
  readonly #zone: Zone | undefined;
  readonly #rules: Rules;
  #columns: readonly StoredColumn[] = FIRST_COLUMNS;
  #stream: IpcStream | undefined;
  #batches: RecordBatches | undefined;
  #windows = 0;
  #overlaps = false;
  #readerLeft = false;

  constructor(engine: Engine, store: WindowStore, output: Output, options: ArrowOptions) {
    this.#engine = engine;
    this.#store = store;
    this.#output = output;
    this.#options = options;
    this.#zone = options.timezone === undefined ? undefined : new Zone(options.timezone);
    const { columnTypes, pinned, schemaMode } = options;
    // A stream that has begun cannot change: what a pinned schema does not know is rescued, unless it is to fail.
    const mode = pinned !== undefined && schemaMode === 'evolve' ? 'freeze' : schemaMode;
    this.#rules = { zoned: this.#zone !== undefined, columnTypes, pinned, mode };
  }

  async run(windows: AsyncIterable<Window>): Promise<ArrowResult> {
    const stop = () => this.#engine.interrupt();
    this.#options.signal.addEventListener('abort', stop);
    try {
      if (this.#options.pinned === undefined) await this.#afterAll(windows);
      else await this.#oneByOne(windows);
      await this.#batches?.end();
    } catch (error) {
      if (!isReaderGone(error)) throw error;
      this.#readerLeft = true;
    } finally {
      this.#stream?.release();
      this.#options.signal.removeEventListener('abort', stop);
    }
    const batches = this.#batches;
    return {
      rows: batches?.rows ?? 0,
      windows: this.#windows,
      columns: this.#columns.filter(isTyped).map(({ name }) => name),
      rescued: batches?.rescued ?? new Map(),
      readerLeft: this.#readerLeft,
    };
  }

  async #oneByOne(windows: AsyncIterable<Window>): Promise<void> {
    this.#columns = planColumns(FIRST_COLUMNS, new Map(), this.#rules, true);
    this.#begin();
    for await (const window of windows) await this.#send(window);
  }

  async #afterAll(windows: AsyncIterable<Window>): Promise<void> {
    const kept: Window[] = [];
    for await (const window of windows) {
      const plan = planColumns(this.#columns, arrivalsOf(window.files).columns, this.#rules, kept.length === 0);
      logChanges(this.#options.logger, kept.length === 0 ? [] : plan, new Map());
      this.#columns = plan;
      kept.push(await this.#store.keep(window));
    }
    this.#begin();
    for (const window of kept) {
      await this.#send(window);
      await this.#store.drop(window);
    }
  }

  #begin(): void {
    const columns = this.#columns.filter(isTyped);
    const schema = streamSchema(columns, this.#zone !== undefined, manifest.version);
    this.#stream = new IpcStream(this.#output.stream, schema.schema);
    this.#batches = new RecordBatches(schema, this.#stream);
  }

  async #send(window: Window): Promise<void> {
    const { signal } = this.#options;
    signal.throwIfAborted();
    const arrivals = arrivalsOf(window.files);
    const plan = planColumns(this.#columns, arrivals.columns, this.#rules, false);
    const number = ++this.#windows;
    const load: WindowLoad = { window, number, arrivals, plan: new Map(plan.map((c) => [c.key, c])), zone: this.#zone };
    const longestRow = Math.max(1, ...window.files.map((file) => file.longestRow));
    const query = await openWindowQuery(this.#engine, load, this.#overlaps);
    for await (const chunk of this.#engine.chunks(query.sql)) {
      signal.throwIfAborted();
      await this.#batches?.add(chunk, longestRow);
    }
    signal.throwIfAborted();
    await query.done();
    const { to, covers_to } = window.receipt;
    this.#overlaps = covers_to === null || to > covers_to;
    if (this.#overlaps) await storeSentIds(this.#engine, load);
  }
}
