import { defect } from '../../base/errors.ts';
import type { Window } from '../../extract/window.ts';
import type { Typed } from '../../table/columns.ts';
import { keysNeedWork } from '../rows/keys/window-keys.ts';
import { type JobTasks, type WorkerOptions, WorkerPool } from '../workers/worker-pool.ts';
import { ArrowRunner } from './build/arrow-runner.ts';
import { fixedBytes, streamShapes } from './build/batch-builder.ts';
import type { ArrowJob, ArrowResult, ArrowTask, BuiltBatches, FilePlan } from './build/task.ts';
import { streamColumns } from './stream-schema.ts';
import { columnTasks, hashTasks, taskBytes } from './tasks.ts';
import { isOpen, type SentRows, WindowRows } from './window-rows.ts';

export interface BuilderOptions {
  readonly timezone: string | undefined;
  readonly threads?: WorkerOptions | undefined;
  readonly signal: AbortSignal;
}

/** Windows and what their rows become. */
export interface BuildJob {
  /** Several only where nothing of their rows must be known beforehand. */
  readonly windows: readonly Window[];
  /** One for each of their files. */
  readonly plans: readonly FilePlan[];
  readonly columns: readonly Typed[];
}

const NO_THREADS: WorkerOptions = { entry: undefined };
/** Two workers take most of a second of processor time until their code is compiled; this thread builds so much in it. */
const MIN_BYTES = 48 * 1024 * 1024;

/** Builds the record batches of windows, in threads where there is enough to do; one job after another. */
export class ArrowBuilder {
  readonly #options: BuilderOptions;
  readonly #pool: WorkerPool<ArrowJob, ArrowTask, ArrowResult>;
  /** What the last window held, where the next one may hold it again. */
  #sent: SentRows | undefined;

  constructor(options: BuilderOptions) {
    this.#options = options;
    this.#pool = new WorkerPool(options.threads ?? NO_THREADS, new ArrowRunner(), MIN_BYTES);
  }

  /** True where jobs of a run with `bytes` of CSV are done by threads. */
  usesThreads(bytes: number): boolean {
    return this.#pool.usesThreads(bytes);
  }

  /** Bytes that every row takes in these columns, whatever its cells. */
  rowBytes(columns: readonly Typed[]): number {
    // Stryker disable next-line ConditionalExpression,EqualityOperator: a time takes as many bytes with a zone as without one
    return fixedBytes(streamShapes(streamColumns(columns), this.#options.timezone !== undefined));
  }

  /**
   * The rows of the windows without those that the window before held, in order. `bytes`: CSV of the run. `isReused`: the
   * memory of the batches is needed no more when the next ones are asked for.
   */
  async *build({ windows, plans, columns }: BuildJob, bytes: number, isReused: boolean): AsyncGenerator<BuiltBatches> {
    const { timezone, signal } = this.#options;
    signal.throwIfAborted();
    const files = windows.flatMap((window) => window.files);
    const sizes = windows.reduce((sum, window) => sum + window.receipt.bytes, 0);
    const size = taskBytes(files, sizes, this.rowBytes(columns));
    const tasks = this.#pool.open({ columns: streamColumns(columns), files: plans, timezone, isReused }, bytes);
    try {
      const rows = windows.length === 1 ? await this.#readRows(tasks, windows[0], size) : undefined;
      const rowsOf = (block: number) => rows?.of(block) ?? {};
      let read = 0;
      for await (const result of tasks.run(columnTasks(files, size, rowsOf, signal))) {
        if (result.kind !== 'columns') continue;
        yield result;
        read += result.read;
      }
      const expected = files.reduce((sum, file) => sum + file.rows, 0);
      if (read !== expected) throw defect(`A verified export has ${read} rows instead of ${expected} when it is read.`);
    } finally {
      // Stryker disable next-line CallExpression: the next job releases what the tasks hold, too
      tasks.close();
    }
    // Stryker disable next-line CallExpression: a run that is stopped now is stopped before its next window, or has ended
    signal.throwIfAborted();
  }

  /** Ends the threads; safe at any time. */
  async close(): Promise<void> {
    await this.#pool.close();
  }

  /** Hashes the rows of a window, where more than each by itself must be known: one more pass over its files. */
  async #readRows(tasks: JobTasks<ArrowTask, ArrowResult>, window: Window, size: number) {
    const before = this.#sent;
    this.#sent = undefined;
    if (!keysNeedWork(window.files) && before === undefined && !isOpen(window)) return undefined;
    const rows = new WindowRows(window, before);
    for await (const result of tasks.run(hashTasks(window.files, size, this.#options.signal))) {
      if (result.kind === 'hash') rows.add(result);
    }
    // Stryker disable next-line CallExpression: frees memory
    rows.finish();
    this.#sent = rows.sentRows;
    return rows;
  }
}
