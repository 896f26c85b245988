import type { Writable } from 'node:stream';
import { defect } from '../../base/errors.ts';
import type { Window } from '../../extract/window.ts';
import { keysNeedWork } from '../rows/keys/window-keys.ts';
import type { Typed } from '../sql/columns/typed.ts';
import { type JobTasks, type WorkerOptions, WorkerPool } from '../workers/worker-pool.ts';
import { ArrowRunner } from './build/arrow-runner.ts';
import { fixedBytes, streamShapes } from './build/batch-builder.ts';
import type { ArrowJob, ArrowResult, ArrowTask, BuiltBatches, FilePlan } from './build/task.ts';
import { IpcStream } from './output.ts';
import { RecordBatches } from './record-batches.ts';
import { streamColumns, streamSchema } from './stream-schema.ts';
import { columnTasks, hashTasks, taskBytes } from './tasks.ts';
import { isOpen, type SentRows, WindowRows } from './window-rows.ts';

export interface ArrowStreamOptions {
  readonly columns: readonly Typed[];
  readonly timezone: string | undefined;
  readonly version: string;
  readonly threads: WorkerOptions | undefined;
  readonly signal: AbortSignal;
}

const NO_THREADS: WorkerOptions = { entry: undefined };
/** Two workers take most of a second of processor time until their code is compiled; this thread builds so much in it. */
const MIN_BYTES = 48 * 1024 * 1024;

/** One stream: the rows of windows in order, as record batches of bounded size. */
export class ArrowStream {
  /** Rows sent. */
  rows = 0;
  /** Cells in `_rescued`, by source column name. */
  readonly rescued = new Map<string, number>();
  readonly columns: readonly Typed[];
  readonly #options: ArrowStreamOptions;
  readonly #out: IpcStream;
  readonly #batches: RecordBatches;
  readonly #pool: WorkerPool<ArrowJob, ArrowTask, ArrowResult>;
  readonly #rowBytes: number;
  /** What the last window sent, where the next one may hold it again. */
  #sent: SentRows | undefined;

  constructor(out: Writable, options: ArrowStreamOptions) {
    const { columns, timezone, version, threads } = options;
    const schema = streamSchema(columns, timezone !== undefined, version);
    const shapes = streamShapes(streamColumns(columns), timezone !== undefined);
    this.columns = columns;
    this.#options = options;
    this.#out = new IpcStream(out, schema);
    this.#batches = new RecordBatches(schema, shapes);
    this.#pool = new WorkerPool(threads ?? NO_THREADS, new ArrowRunner(), MIN_BYTES);
    this.#rowBytes = fixedBytes(shapes);
  }

  /**
   * Sends the rows of windows, without those that the window before has sent. Several at a time only where nothing of
   * their rows must be known beforehand. `plans`: of their files; `bytes` of CSV decide whether threads are worth it.
   */
  async send(windows: readonly Window[], plans: readonly FilePlan[], bytes: number): Promise<void> {
    const { columns, timezone, signal } = this.#options;
    signal.throwIfAborted();
    const files = windows.flatMap((window) => window.files);
    const sizes = windows.reduce((sum, window) => sum + window.receipt.bytes, 0);
    const size = taskBytes(files, sizes, this.#rowBytes);
    const tasks = this.#pool.open({ columns: streamColumns(columns), files: plans, timezone }, bytes);
    try {
      const rows = windows.length === 1 ? await this.#readRows(tasks, windows[0], size) : undefined;
      const rowsOf = (block: number) => rows?.of(block) ?? {};
      let read = 0;
      for await (const result of tasks.run(columnTasks(files, size, rowsOf, signal))) {
        if (result.kind !== 'columns') continue;
        await this.#write(result);
        read += result.read;
      }
      const expected = files.reduce((sum, file) => sum + file.rows, 0);
      if (read !== expected) throw defect(`A verified export has ${read} rows instead of ${expected} when it is read.`);
    } finally {
      tasks.close();
    }
    signal.throwIfAborted();
  }

  /** Ends the stream; one without rows still tells its schema. */
  end(): Promise<void> {
    return this.#out.end();
  }

  /** Ends the threads and lets go of the output; safe at any time. */
  async close(): Promise<void> {
    this.#out.release();
    await this.#pool.close();
  }

  async #write({ batches, rows, rescued }: BuiltBatches): Promise<void> {
    for (const batch of batches) {
      this.#options.signal.throwIfAborted();
      await this.#out.write(this.#batches.of(batch));
    }
    this.rows += rows;
    for (const [name, cells] of rescued) this.rescued.set(name, (this.rescued.get(name) ?? 0) + cells);
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
    rows.finish();
    this.#sent = rows.sentRows;
    return rows;
  }
}
