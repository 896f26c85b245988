// This folder: the target `arrow`. Threads build columns from the bytes of verified windows (`build/`), this one sends
// them as record batches.

import type { Writable } from 'node:stream';
import manifest from '../../../package.json' with { type: 'json' };
import { codeOf, Failure } from '../../base/errors.ts';
import type { Window } from '../../extract/window.ts';
import { diskFailure } from '../../fs/disk-failure.ts';
import { keysNeedWork } from '../rows/keys/window-keys.ts';
import { arrivalsOf } from '../sql/columns/arrivals.ts';
import { logChanges } from '../sql/columns/changes.ts';
import { planColumns, type Rules } from '../sql/columns/plan.ts';
import { FIRST_COLUMNS, type StoredColumn } from '../sql/columns/stored.ts';
import { typedColumns } from '../sql/columns/typed.ts';
import type { TargetOptions } from '../target.ts';
import type { WorkerOptions } from '../workers/worker-pool.ts';
import { ArrowStream } from './arrow-stream.ts';
import { planFile } from './file-plan.ts';
import { fileOutput, isReaderGone, type Output, streamOutput } from './output.ts';
import { isOpen } from './window-rows.ts';
import { openWindowStore, type WindowStore } from './window-store.ts';

export interface ArrowOptions extends TargetOptions {
  /** A file's path, or a stream that stays open. */
  readonly out: string | Writable;
  /** Holds the files of windows until the schema of all is known. */
  readonly spoolDir: string;
  readonly signal: AbortSignal;
  /** Absent: everything is done in this thread. */
  readonly threads?: WorkerOptions | undefined;
}

/** Windows whose keys are their ids are sent together, until they have so many bytes of CSV. */
const TOGETHER_BYTES = 64 * 1024 * 1024;

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
  #columns: readonly StoredColumn[] = FIRST_COLUMNS;
  #stream: ArrowStream | undefined;
  #windows = 0;
  #readerLeft = false;

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
    try {
      if (this.#options.pinned === undefined) await this.#afterAll(windows);
      else await this.#oneByOne(windows);
      await this.#stream?.end();
    } catch (error) {
      if (!isReaderGone(error)) throw error;
      this.#readerLeft = true;
    } finally {
      await this.#stream?.close();
    }
    return {
      rows: this.#stream?.rows ?? 0,
      windows: this.#windows,
      columns: typedColumns(this.#columns).map(({ name }) => name),
      rescued: this.#stream?.rescued ?? new Map(),
      readerLeft: this.#readerLeft,
    };
  }

  async #oneByOne(windows: AsyncIterable<Window>): Promise<void> {
    this.#columns = planColumns(FIRST_COLUMNS, new Map(), this.#rules, true);
    const stream = this.#begin();
    for await (const window of windows) await this.#send(stream, [window], window.receipt.bytes);
  }

  async #afterAll(windows: AsyncIterable<Window>): Promise<void> {
    const kept: Window[] = [];
    for await (const window of windows) {
      const plan = planColumns(this.#columns, arrivalsOf(window.files).columns, this.#rules, kept.length === 0);
      logChanges(this.#options.logger, kept.length === 0 ? [] : plan, new Map());
      this.#columns = plan;
      kept.push(await this.#store.keep(window));
    }
    const stream = this.#begin();
    const bytes = bytesOf(kept);
    for (const together of groupsOf(kept)) {
      await this.#send(stream, together, bytes);
      for (const window of together) await this.#store.drop(window);
    }
  }

  #begin(): ArrowStream {
    const { timezone, threads, signal } = this.#options;
    const columns = typedColumns(this.#columns);
    const stream = new ArrowStream(this.#output.stream, {
      columns,
      timezone,
      threads,
      signal,
      version: manifest.version,
    });
    this.#stream = stream;
    return stream;
  }

  /** Sends windows of a run that has `bytes` of CSV on disk. */
  async #send(stream: ArrowStream, windows: readonly Window[], bytes: number): Promise<void> {
    const plans = windows.flatMap((window) => {
      const arrivals = arrivalsOf(window.files);
      const plan = planColumns(this.#columns, arrivals.columns, this.#rules, false);
      const byKey = new Map(plan.map((column) => [column.key, column]));
      return window.files.map((file, i) => planFile(file, arrivals.files[i], byKey, stream.columns));
    });
    this.#windows += windows.length;
    await stream.send(windows, plans, bytes);
  }
}

const bytesOf = (windows: readonly Window[]): number => windows.reduce((sum, { receipt }) => sum + receipt.bytes, 0);

/** Windows in order, those together of whose rows nothing must be known beforehand. */
function groupsOf(windows: readonly Window[]): Window[][] {
  const groups: Window[][] = [];
  let isPlain = false;
  let before: Window | undefined;
  for (const window of windows) {
    const wasPlain = isPlain;
    isPlain = !keysNeedWork(window.files) && !isOpen(window) && (before === undefined || !isOpen(before));
    const group = groups.at(-1);
    if (group !== undefined && wasPlain && isPlain && bytesOf(group) < TOGETHER_BYTES) group.push(window);
    else groups.push([window]);
    before = window;
  }
  return groups;
}
