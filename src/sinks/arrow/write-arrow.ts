// This folder: the target `arrow`. Threads build columns from the bytes of verified windows (`build/`), this one sends
// them as record batches.

import type { Writable } from 'node:stream';
import manifest from '../../../package.json' with { type: 'json' };
import { codeOf, Failure } from '../../base/errors.ts';
import type { Window } from '../../extract/window.ts';
import { diskFailure } from '../../fs/disk-failure.ts';
import { logChanges } from '../../table/changes.ts';
import { columnKey, FIRST_COLUMNS, type StoredColumn, type Typed, typedColumns } from '../../table/columns.ts';
import { incomingColumns } from '../../table/incoming.ts';
import { planColumns, type Rules } from '../../table/plan.ts';
import type { TargetOptions } from '../target.ts';
import type { WorkerOptions } from '../workers/worker-pool.ts';
import { ArrowBuilder } from './arrow-builder.ts';
import { ArrowStream } from './arrow-stream.ts';
import type { FilePlan } from './build/task.ts';
import { planFile } from './file-plan.ts';
import { fileOutput, isReaderGone, type Output, streamOutput } from './output.ts';
import { StagedWindows, type WindowJob } from './staged-windows.ts';
import { bytesOf, groupsOf, isIndependent } from './window-groups.ts';
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
  readonly #builder: ArrowBuilder;
  readonly #staged: StagedWindows;
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
    this.#builder = new ArrowBuilder(options);
    this.#staged = new StagedWindows(this.#builder, store.folder, (window) => this.#ownJobOf(window));
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
      this.#stream?.release();
      // After a failure a window may still be at work, in files of the folder that is removed next.
      await this.#staged.end().catch(() => undefined);
      await this.#builder.close();
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
    const kept = await this.#keepAll(windows);
    const stream = this.#begin();
    const bytes = bytesOf(kept);
    for (const group of groupsOf(kept, (window) => this.#staged.has(window))) {
      await this.#send(stream, group, bytes);
      for (const window of group) await Promise.all([this.#store.drop(window), this.#staged.drop(window)]);
    }
  }

  async #keepAll(windows: AsyncIterable<Window>): Promise<Window[]> {
    const kept: Window[] = [];
    for await (const window of windows) {
      const { columns } = incomingColumns(window.files);
      const plan = planColumns(this.#columns, columns, this.#rules, kept.length === 0);
      logChanges(this.#options.logger, kept.length === 0 ? [] : plan, new Map());
      this.#columns = plan;
      const own = await this.#store.keep(window);
      if (isIndependent(own, kept.at(-1))) this.#staged.add(own);
      kept.push(own);
    }
    await this.#staged.end();
    return kept;
  }

  #begin(): ArrowStream {
    const { timezone, signal } = this.#options;
    const columns = typedColumns(this.#columns);
    this.#stream = new ArrowStream(this.#output.stream, { columns, timezone, signal, version: manifest.version });
    return this.#stream;
  }

  /** Sends windows of a run that has `bytes` of CSV on disk: as they were staged, where the schema has come out the same. */
  async #send(stream: ArrowStream, windows: readonly Window[], bytes: number): Promise<void> {
    const { columns } = stream;
    const job = { columns, plans: windows.flatMap((window) => this.#plansOf(window, columns)) };
    // One that is staged is sent alone.
    const [window] = windows;
    const places = this.#staged.placesOf(window, job);
    // A stream that the caller gave may keep what it took.
    const isFile = typeof this.#options.out === 'string';
    const batches =
      places === undefined
        ? this.#builder.build({ windows, ...job }, bytes, isFile)
        : this.#staged.read(window, isFile);
    for await (const some of batches) await stream.send(some, places);
    this.#windows += windows.length;
  }

  /** What a window's rows become in the columns that it has itself, of the types known so far. */
  #ownJobOf(window: Window): WindowJob {
    const arrived = incomingColumns(window.files).columns;
    const columns = typedColumns(this.#columns).filter((column) =>
      arrived.has(columnKey(column.source, column.occurrence)),
    );
    return { columns, plans: this.#plansOf(window, columns) };
  }

  /** How the cells of a window's files become values of these columns. */
  #plansOf(window: Window, columns: readonly Typed[]): FilePlan[] {
    const arrivals = incomingColumns(window.files);
    const plan = planColumns(this.#columns, arrivals.columns, this.#rules, false);
    const byKey = new Map(plan.map((column) => [column.key, column]));
    return window.files.map((file, i) => planFile(file, arrivals.files[i], byKey, columns));
  }
}
