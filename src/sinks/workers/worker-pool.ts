// This folder: work on worker threads, in order and with bounded memory, whatever it is.

import { availableParallelism } from 'node:os';
import { PooledWorker } from './pooled-worker.ts';
import type { PoolResult, PoolTask, Runner } from './runner.ts';

/** Tasks given to a worker at a time: one at work and one waiting, so that it is never idle. */
const AHEAD = 2;
/** Each takes some 20 MB, and a container may be allowed less than the machine shows. */
const MAX_WORKERS = 2;
/** What starts a worker: a module that calls `serveTasks` with the same runner as the pool has. */
export interface WorkerOptions {
  readonly entry: URL | undefined;
  /** Undefined: as many as the machine has cores, at most `MAX_WORKERS`. */
  readonly workers?: number | undefined;
}

interface Waiting<Result extends PoolResult> {
  readonly spares: ArrayBuffer[];
  readonly result: Promise<Result>;
}

/**
 * Runs the tasks of one job after another; results come in the order of the tasks. Threads are started by the first job
 * that is large enough and live until `close`, so that their code is compiled once.
 */
export class WorkerPool<Job, Task extends PoolTask, Result extends PoolResult> {
  readonly #entry: URL | undefined;
  readonly #count: number;
  readonly #inline: Runner<Job, Task, Result>;
  readonly #minBytes: number;
  #workers: PooledWorker<Job, Task, Result>[] = [];

  /** `minBytes`: jobs over less CSV are done in this thread: a worker must start first, and have its code compiled. */
  constructor({ entry, workers }: WorkerOptions, runner: Runner<Job, Task, Result>, minBytes: number) {
    this.#minBytes = minBytes;
    this.#count = Math.min(workers ?? availableParallelism(), MAX_WORKERS);
    this.#entry = this.#count < 2 ? undefined : entry;
    this.#inline = runner;
  }

  /** True where a job over `bytes` of CSV is done by threads. */
  usesThreads(bytes: number): boolean {
    return this.#entry !== undefined && bytes >= this.#minBytes;
  }

  /** Opens a job over `bytes` of CSV: that of all tasks until its `close`. */
  open(job: Job, bytes: number): JobTasks<Task, Result> {
    const entry = this.#entry;
    if (entry === undefined || !this.usesThreads(bytes)) return new InlineTasks(this.#inline, job);
    const alive = this.#workers.filter((worker) => !worker.hasFailed);
    this.#workers = Array.from({ length: this.#count }, (_, i) => alive[i] ?? new PooledWorker(entry));
    return new ThreadTasks(this.#workers, job);
  }

  /** Ends the threads; safe at any time. */
  async close(): Promise<void> {
    this.#inline.close();
    await Promise.all(this.#workers.splice(0).map((worker) => worker.close()));
  }
}

/** The tasks of one job. */
export interface JobTasks<Task extends PoolTask, Result extends PoolResult> {
  /** Runs tasks; may be called again once the last generator has ended. */
  run(tasks: AsyncIterable<Task>): AsyncGenerator<Result>;
  /** Lets go of what the job has open. */
  close(): void;
}

/** Runs every task in the calling thread. */
class InlineTasks<Job, Task extends PoolTask, Result extends PoolResult> implements JobTasks<Task, Result> {
  readonly #runner: Runner<Job, Task, Result>;

  constructor(runner: Runner<Job, Task, Result>, job: Job) {
    this.#runner = runner;
    runner.open(job);
  }

  async *run(tasks: AsyncIterable<Task>): AsyncGenerator<Result> {
    let spare: ArrayBuffer | undefined;
    for await (const task of tasks) {
      const result = this.#runner.run({ ...task, spare });
      yield result;
      spare = result.isKept ? undefined : result.buffer;
    }
  }

  close(): void {
    this.#runner.close();
  }
}

class ThreadTasks<Job, Task extends PoolTask, Result extends PoolResult> implements JobTasks<Task, Result> {
  readonly #workers: readonly PooledWorker<Job, Task, Result>[];

  constructor(workers: readonly PooledWorker<Job, Task, Result>[], job: Job) {
    this.#workers = workers;
    for (const worker of workers) worker.open(job);
  }

  async *run(tasks: AsyncIterable<Task>): AsyncGenerator<Result> {
    const waiting: Waiting<Result>[] = [];
    const most = this.#workers.length * AHEAD;
    let turn = 0;
    try {
      for await (const task of tasks) {
        const worker = this.#workers[turn++ % this.#workers.length];
        waiting.push({ spares: worker.spares, result: worker.run(task) });
        if (waiting.length >= most) yield* next(waiting);
      }
      while (waiting.length > 0) yield* next(waiting);
    } finally {
      // What a caller that stopped early did not take must not be taken for a result of the next job.
      await Promise.allSettled(waiting.map(({ result }) => result));
    }
  }

  close(): void {
    for (const worker of this.#workers) worker.finish();
  }
}

/** Yields the oldest result; its buffer may be reused after the caller asks for the next. */
async function* next<Result extends PoolResult>(waiting: Waiting<Result>[]): AsyncGenerator<Result> {
  const [oldest] = waiting.splice(0, 1);
  const result = await oldest.result;
  yield result;
  if (!result.isKept) oldest.spares.push(result.buffer);
}
