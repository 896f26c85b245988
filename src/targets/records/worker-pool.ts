import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { messageOf } from '../../base/errors.ts';
import { type FileJob, RecordRunner, type Task, type TaskResult } from './record-runner.ts';
import type { WorkerAnswer, WorkerRequest } from './worker.ts';

/** Tasks given to a worker at a time: one at work and one waiting, so that it is never idle. */
const AHEAD = 2;
/** Each takes some 20 MB, and a container may be allowed less than the machine shows. */
const MAX_WORKERS = 2;
/** A worker takes 30 ms to start and some 100 ms until its code is compiled: less CSV is worked on in this thread. */
const MIN_BYTES = 8 * 1024 * 1024;
/** Limits of a worker's heap: it makes hardly any objects, and the bytes of rows are outside the heap. */
const HEAP = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 64 };

export interface WorkerOptions {
  /** The module with which a worker starts; undefined if everything is done in this thread. */
  readonly entry: URL | undefined;
  /** Number of workers; undefined for the number of the machine's cores, at most `MAX_WORKERS`. */
  readonly workers?: number | undefined;
}

/** Runs tasks in threads if there is enough work. Threads live until `close`: their code is compiled once. */
export class WorkerPool {
  readonly #entry: URL | undefined;
  readonly #count: number;
  readonly #local = new RecordRunner();
  #workers: PooledWorker[] = [];
  /** Buffers of results that were consumed; further tasks use them again. */
  readonly #free: ArrayBuffer[] = [];

  constructor({ entry, workers }: WorkerOptions) {
    this.#count = Math.min(workers ?? availableParallelism(), MAX_WORKERS);
    this.#entry = this.#count < 2 ? undefined : entry;
  }

  /**
   * Runs tasks over files that have `bytes` of CSV. Results come in the order of the tasks; a result's buffer may be
   * used again after the caller asks for the next. Only one run at a time.
   */
  async *run<T extends Task>(
    files: readonly FileJob[],
    bytes: number,
    tasks: Iterable<T>,
  ): AsyncGenerator<TaskResult<T>> {
    const runners = this.#runnersFor(bytes);
    for (const runner of runners) runner.open(files);
    const waiting: (TaskResult | Promise<TaskResult>)[] = [];
    let turn = 0;
    try {
      for (const task of tasks) {
        waiting.push(runners[turn++ % runners.length].run(task, this.#free.pop()));
        if (waiting.length === runners.length * AHEAD) yield* this.#oldest<T>(waiting);
      }
      while (waiting.length > 0) yield* this.#oldest<T>(waiting);
    } finally {
      // The results that a caller did not consume must not count as results of the next run.
      await Promise.allSettled(waiting);
      for (const runner of runners) runner.close();
    }
  }

  prepare(bytes: number): void {
    if (this.#workers.length === 0) this.#runnersFor(bytes);
  }

  async close(): Promise<void> {
    await Promise.all(this.#workers.splice(0).map((worker) => worker.end()));
  }

  async *#oldest<T extends Task>(waiting: (TaskResult | Promise<TaskResult>)[]): AsyncGenerator<TaskResult<T>> {
    const [result] = waiting.splice(0, 1);
    const done = await result;
    yield done as TaskResult<T>;
    this.#free.push(done.buffer);
  }

  #runnersFor(bytes: number): readonly (RecordRunner | PooledWorker)[] {
    const entry = this.#entry;
    if (entry === undefined || bytes < MIN_BYTES) return [this.#local];
    const alive = this.#workers.filter((worker) => !worker.hasFailed);
    this.#workers = Array.from({ length: this.#count }, (_, i) => alive[i] ?? new PooledWorker(entry));
    return this.#workers;
  }
}

interface Pending {
  readonly resolve: (result: TaskResult) => void;
  readonly reject: (error: Error) => void;
}

/** A `RecordRunner` in a thread of its own, with the tasks that it has not answered yet. */
class PooledWorker {
  readonly #worker: Worker;
  readonly #pending: Pending[] = [];
  #failure: Error | undefined;

  constructor(entry: URL) {
    this.#worker = new Worker(entry, { stdout: true, stderr: true, resourceLimits: HEAP });
    this.#worker.on('message', (answer: WorkerAnswer) => {
      if ('failed' in answer) this.#fail(new Error(answer.failed));
      else this.#pending.shift()?.resolve(answer.result);
    });
    this.#worker.on('error', (error) => this.#fail(new Error(messageOf(error), { cause: error })));
    this.#worker.on('exit', (code) => this.#fail(new Error(`A worker ended with code ${code}.`)));
  }

  get hasFailed(): boolean {
    return this.#failure !== undefined;
  }

  open(files: readonly FileJob[]): void {
    this.#post({ kind: 'open', files });
  }

  run(task: Task, buffer: ArrayBuffer | undefined): Promise<TaskResult> {
    const result = new Promise<TaskResult>((resolve, reject) => {
      if (this.#failure !== undefined) reject(this.#failure);
      else this.#pending.push({ resolve, reject });
    });
    result.catch(() => undefined);
    this.#post({ kind: 'run', task, buffer }, buffer === undefined ? [] : [buffer]);
    return result;
  }

  close(): void {
    this.#post({ kind: 'close' });
  }

  async end(): Promise<void> {
    await this.#worker.terminate();
  }

  #post(request: WorkerRequest, transferred: readonly ArrayBuffer[] = []): void {
    this.#worker.postMessage(request, transferred);
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    for (const { reject } of this.#pending.splice(0)) reject(error);
  }
}
