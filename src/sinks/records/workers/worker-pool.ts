import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { messageOf } from '../../../base/errors.ts';
import type { FileJob, Task, TaskResult } from './task.ts';
import { TaskRunner } from './task-runner.ts';

/** Tasks given to a worker at a time: one at work and one waiting, so that it is never idle. */
const AHEAD = 2;
/** Each takes some 20 MB, and a container may be allowed less than the machine shows. */
const MOST_WORKERS = 2;
/** A worker makes next to no objects: rows are bytes, and those are outside the heap. */
const HEAP = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 64 };

/** Runs the tasks of one window; results come in the order of the tasks. */
export interface WorkerPool {
  run(tasks: AsyncIterable<Task>): AsyncGenerator<TaskResult>;
  close(): Promise<void>;
}

/** What starts a worker: a module that calls `serveTasks` when it is no main thread. */
export interface WorkerOptions {
  readonly entry: URL | undefined;
  /** Undefined: as many as the machine has cores, at most `MOST_WORKERS`. */
  readonly workers?: number | undefined;
}

/** The `workerData` of a worker: the files of its tasks. The entry knows by it what it was started for. */
export interface WorkerData {
  readonly recordFiles: readonly FileJob[];
}

/** The pool for `bytes` of CSV. A worker takes 30 ms to start: small windows are encoded in this thread. */
export function openPool(jobs: readonly FileJob[], bytes: number, options: WorkerOptions): WorkerPool {
  const count = Math.min(options.workers ?? availableParallelism(), MOST_WORKERS);
  if (options.entry === undefined || count < 2 || bytes < LEAST_BYTES) return new InlinePool(jobs);
  return new ThreadPool(jobs, options.entry, count);
}

const LEAST_BYTES = 8 * 1024 * 1024;

/** Runs every task in the calling thread. */
class InlinePool implements WorkerPool {
  readonly #runner: TaskRunner;

  constructor(jobs: readonly FileJob[]) {
    this.#runner = new TaskRunner(jobs);
  }

  async *run(tasks: AsyncIterable<Task>): AsyncGenerator<TaskResult> {
    let spare: ArrayBuffer | undefined;
    for await (const task of tasks) {
      const result = this.#runner.run({ ...task, spare });
      yield result;
      spare = result.buffer;
    }
  }

  async close(): Promise<void> {
    this.#runner.close();
  }
}

interface Waiting {
  readonly worker: PooledWorker;
  readonly result: Promise<TaskResult>;
}

class ThreadPool implements WorkerPool {
  readonly #workers: readonly PooledWorker[];

  constructor(jobs: readonly FileJob[], entry: URL, count: number) {
    this.#workers = Array.from({ length: count }, () => new PooledWorker(jobs, entry));
  }

  async *run(tasks: AsyncIterable<Task>): AsyncGenerator<TaskResult> {
    const waiting: Waiting[] = [];
    const most = this.#workers.length * AHEAD;
    let turn = 0;
    for await (const task of tasks) {
      const worker = this.#workers[turn++ % this.#workers.length];
      waiting.push({ worker, result: worker.run(task) });
      if (waiting.length >= most) yield* next(waiting);
    }
    while (waiting.length > 0) yield* next(waiting);
  }

  async close(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.close()));
  }
}

/** Yields the oldest result; its buffer is reused after the caller asks for the next. */
async function* next(waiting: Waiting[]): AsyncGenerator<TaskResult> {
  const [oldest] = waiting.splice(0, 1);
  const result = await oldest.result;
  yield result;
  oldest.worker.spares.push(result.buffer);
}

interface Pending {
  readonly resolve: (result: TaskResult) => void;
  readonly reject: (error: Error) => void;
}

/** One thread and the tasks it has not answered yet. */
class PooledWorker {
  readonly spares: ArrayBuffer[] = [];
  readonly #worker: Worker;
  readonly #pending: Pending[] = [];
  #failure: Error | undefined;

  constructor(jobs: readonly FileJob[], entry: URL) {
    const data: WorkerData = { recordFiles: jobs };
    this.#worker = new Worker(entry, { workerData: data, stdout: true, stderr: true, resourceLimits: HEAP });
    this.#worker.on('message', (result: TaskResult | { readonly failed: unknown }) => {
      if ('failed' in result) this.#fail(new Error(String(result.failed)));
      else this.#pending.shift()?.resolve(result);
    });
    this.#worker.on('error', (error) => this.#fail(new Error(messageOf(error), { cause: error })));
    this.#worker.on('exit', (code) => this.#fail(new Error(`A worker ended with code ${code}.`)));
  }

  run(task: Task): Promise<TaskResult> {
    const result = new Promise<TaskResult>((resolve, reject) => {
      if (this.#failure !== undefined) reject(this.#failure);
      else this.#pending.push({ resolve, reject });
    });
    result.catch(() => undefined);
    const spare = this.spares.pop();
    this.#worker.postMessage({ ...task, spare }, spare === undefined ? [] : [spare]);
    return result;
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    for (const { reject } of this.#pending.splice(0)) reject(error);
  }
}
