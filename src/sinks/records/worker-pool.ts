import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { messageOf } from '../../base/errors.ts';
import { RecordRunner } from './record-runner.ts';
import type { FileJob, Task, TaskResult, WorkerAnswer, WorkerRequest } from './tasks.ts';

/** Tasks given to a worker at a time: one at work and one waiting, so that it is never idle. */
const AHEAD = 2;
/** Each takes some 20 MB, and a container may be allowed less than the machine shows. */
const MAX_WORKERS = 2;
/** A worker takes 30 ms to start and some 100 ms until its code is compiled: jobs over less CSV are done in this thread. */
const MIN_BYTES = 8 * 1024 * 1024;
/** A worker makes next to no objects: rows are bytes, and those are outside the heap. */
const HEAP = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 64 };

export interface WorkerOptions {
  /** The module that a worker starts with; undefined: everything is done in this thread. */
  readonly entry: URL | undefined;
  /** Undefined: as many as the machine has cores, at most `MAX_WORKERS`. */
  readonly workers?: number | undefined;
}

/** The tasks of one job: the files of a window. */
export interface JobTasks {
  /** Runs tasks; results come in their order. May be called again once the last generator has ended. */
  run(tasks: AsyncIterable<Task>): AsyncGenerator<TaskResult>;
  /** Lets go of what the job has open. */
  close(): void;
}

/** Runs the tasks of one job after another. Threads are started by the first job that is large enough and live until `close`, so that their code is compiled once. */
export class WorkerPool {
  readonly #entry: URL | undefined;
  readonly #count: number;
  readonly #inline = new RecordRunner();
  #workers: PooledWorker[] = [];

  constructor({ entry, workers }: WorkerOptions) {
    this.#count = Math.min(workers ?? availableParallelism(), MAX_WORKERS);
    this.#entry = this.#count < 2 ? undefined : entry;
  }

  /** Opens a job over `bytes` of CSV: that of all tasks until its `close`. */
  open(jobs: readonly FileJob[], bytes: number): JobTasks {
    const entry = this.#entry;
    if (entry === undefined || bytes < MIN_BYTES) return new InlineTasks(this.#inline, jobs);
    const alive = this.#workers.filter((worker) => !worker.hasFailed);
    this.#workers = Array.from({ length: this.#count }, (_, i) => alive[i] ?? new PooledWorker(entry));
    return new ThreadTasks(this.#workers, jobs);
  }

  /** Ends the threads; safe at any time. */
  async close(): Promise<void> {
    this.#inline.close();
    await Promise.all(this.#workers.splice(0).map((worker) => worker.close()));
  }
}

/** Runs every task in the calling thread. */
class InlineTasks implements JobTasks {
  readonly #runner: RecordRunner;

  constructor(runner: RecordRunner, jobs: readonly FileJob[]) {
    this.#runner = runner;
    runner.open(jobs);
  }

  async *run(tasks: AsyncIterable<Task>): AsyncGenerator<TaskResult> {
    let buffer: ArrayBuffer | undefined;
    for await (const task of tasks) {
      const result = this.#runner.run(task, buffer);
      yield result;
      buffer = result.buffer;
    }
  }

  close(): void {
    this.#runner.close();
  }
}

class ThreadTasks implements JobTasks {
  readonly #workers: readonly PooledWorker[];

  constructor(workers: readonly PooledWorker[], jobs: readonly FileJob[]) {
    this.#workers = workers;
    for (const worker of workers) worker.open(jobs);
  }

  async *run(tasks: AsyncIterable<Task>): AsyncGenerator<TaskResult> {
    const waiting: { readonly worker: PooledWorker; readonly result: Promise<TaskResult> }[] = [];
    const most = this.#workers.length * AHEAD;
    let turn = 0;
    try {
      for await (const task of tasks) {
        const worker = this.#workers[turn++ % this.#workers.length];
        waiting.push({ worker, result: worker.run(task) });
        if (waiting.length >= most) yield* next();
      }
      while (waiting.length > 0) yield* next();
    } finally {
      // What a caller that stopped early did not take must not be taken for a result of the next job.
      await Promise.allSettled(waiting.map(({ result }) => result));
    }

    /** Yields the oldest result; its buffer may be reused after the caller asks for the next. */
    async function* next(): AsyncGenerator<TaskResult> {
      const [{ worker, result }] = waiting.splice(0, 1);
      const done = await result;
      yield done;
      worker.free.push(done.buffer);
    }
  }

  close(): void {
    for (const worker of this.#workers) worker.finish();
  }
}

interface Pending {
  readonly resolve: (result: TaskResult) => void;
  readonly reject: (error: Error) => void;
}

/** One thread and the tasks it has not answered yet. */
class PooledWorker {
  /** Buffers of results that were used up; tasks take them along again. */
  readonly free: ArrayBuffer[] = [];
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

  /** The files of all tasks from now on. */
  open(jobs: readonly FileJob[]): void {
    this.#post({ kind: 'open', jobs });
  }

  /** There are no more tasks of these files. */
  finish(): void {
    this.#post({ kind: 'close' });
  }

  run(task: Task): Promise<TaskResult> {
    const result = new Promise<TaskResult>((resolve, reject) => {
      if (this.#failure !== undefined) reject(this.#failure);
      else this.#pending.push({ resolve, reject });
    });
    result.catch(() => undefined);
    const buffer = this.free.pop();
    this.#post({ kind: 'run', task, buffer }, buffer === undefined ? [] : [buffer]);
    return result;
  }

  async close(): Promise<void> {
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
