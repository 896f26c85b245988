// This folder: encoding on worker threads: tasks, blocks of rows, the pool.

import { availableParallelism } from 'node:os';
import { PooledWorker } from './pooled-worker.ts';
import type { FileJob, Task, TaskResult } from './task.ts';
import { TaskRunner } from './task-runner.ts';

/** Tasks given to a worker at a time: one at work and one waiting, so that it is never idle. */
const AHEAD = 2;
/** Each takes some 20 MB, and a container may be allowed less than the machine shows. */
const MAX_WORKERS = 2;
/** A worker takes 30 ms to start and some 100 ms until its code is compiled: smaller windows are encoded in this thread. */
const MIN_BYTES = 8 * 1024 * 1024;

/** What starts a worker: a module that calls `serveTasks` when it is no main thread. */
export interface WorkerOptions {
  readonly entry: URL | undefined;
  /** Undefined: as many as the machine has cores, at most `MAX_WORKERS`. */
  readonly workers?: number | undefined;
}

interface Waiting {
  readonly worker: PooledWorker;
  readonly result: Promise<TaskResult>;
}

/**
 * Runs the tasks of one window after another; results come in the order of the tasks. Threads are started by the first
 * window that is large enough and live until `close`, so that their code is compiled once.
 */
export class WorkerPool {
  readonly #entry: URL | undefined;
  readonly #count: number;
  readonly #inline = new TaskRunner();
  #workers: PooledWorker[] = [];

  constructor({ entry, workers }: WorkerOptions) {
    this.#count = Math.min(workers ?? availableParallelism(), MAX_WORKERS);
    this.#entry = this.#count < 2 ? undefined : entry;
  }

  /** Opens a window of `bytes` of CSV: the files of all tasks until `closeFiles`. */
  openFiles(files: readonly FileJob[], bytes: number): WindowTasks {
    if (this.#entry === undefined || bytes < MIN_BYTES) return new InlineTasks(this.#inline, files);
    const entry = this.#entry;
    const alive = this.#workers.filter((worker) => !worker.hasFailed);
    this.#workers = Array.from({ length: this.#count }, (_, i) => alive[i] ?? new PooledWorker(entry));
    return new ThreadTasks(this.#workers, files);
  }

  /** Ends the threads; safe at any time. */
  async close(): Promise<void> {
    this.#inline.close();
    await Promise.all(this.#workers.splice(0).map((worker) => worker.close()));
  }
}

/** The tasks of one window. */
export interface WindowTasks {
  /** Runs tasks; may be called again once the last generator has ended. */
  run(tasks: AsyncIterable<Task>): AsyncGenerator<TaskResult>;
  /** Lets go of the files of the window. */
  close(): void;
}

/** Runs every task in the calling thread. */
class InlineTasks implements WindowTasks {
  readonly #runner: TaskRunner;

  constructor(runner: TaskRunner, files: readonly FileJob[]) {
    this.#runner = runner;
    runner.setFiles(files);
  }

  async *run(tasks: AsyncIterable<Task>): AsyncGenerator<TaskResult> {
    let spare: ArrayBuffer | undefined;
    for await (const task of tasks) {
      const result = this.#runner.run({ ...task, spare });
      yield result;
      spare = result.buffer;
    }
  }

  close(): void {
    this.#runner.setFiles([]);
  }
}

class ThreadTasks implements WindowTasks {
  readonly #workers: readonly PooledWorker[];

  constructor(workers: readonly PooledWorker[], files: readonly FileJob[]) {
    this.#workers = workers;
    for (const worker of workers) worker.setFiles(files);
  }

  async *run(tasks: AsyncIterable<Task>): AsyncGenerator<TaskResult> {
    const waiting: Waiting[] = [];
    const most = this.#workers.length * AHEAD;
    let turn = 0;
    try {
      for await (const task of tasks) {
        const worker = this.#workers[turn++ % this.#workers.length];
        waiting.push({ worker, result: worker.run(task) });
        if (waiting.length >= most) yield* next(waiting);
      }
      while (waiting.length > 0) yield* next(waiting);
    } finally {
      // What a caller that stopped early did not take must not be taken for a result of the next window.
      await Promise.allSettled(waiting.map(({ result }) => result));
    }
  }

  close(): void {
    for (const worker of this.#workers) worker.setFiles([]);
  }
}

/** Yields the oldest result; its buffer is reused after the caller asks for the next. */
async function* next(waiting: Waiting[]): AsyncGenerator<TaskResult> {
  const [oldest] = waiting.splice(0, 1);
  const result = await oldest.result;
  yield result;
  oldest.worker.spares.push(result.buffer);
}
