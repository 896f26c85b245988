import { Worker } from 'node:worker_threads';
import { messageOf } from '../../base/errors.ts';
import type { PoolResult, PoolTask, WorkerAnswer, WorkerRequest } from './runner.ts';

/** A worker makes next to no objects: rows are bytes, and those are outside the heap. */
const HEAP = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 64 };

interface Pending<Result> {
  readonly resolve: (result: Result) => void;
  readonly reject: (error: Error) => void;
}

/** One thread and the tasks it has not answered yet. */
export class PooledWorker<Job, Task extends PoolTask, Result extends PoolResult> {
  /** Buffers of results that were used up; tasks take them along again. */
  readonly spares: ArrayBuffer[] = [];
  readonly #worker: Worker;
  readonly #pending: Pending<Result>[] = [];
  #failure: Error | undefined;

  constructor(entry: URL) {
    this.#worker = new Worker(entry, { stdout: true, stderr: true, resourceLimits: HEAP });
    this.#worker.on('message', (answer: WorkerAnswer<Result>) => {
      if ('failed' in answer) this.#fail(new Error(answer.failed));
      else this.#pending.shift()?.resolve(answer.result);
    });
    this.#worker.on('error', (error) => this.#fail(new Error(messageOf(error), { cause: error })));
    this.#worker.on('exit', (code) => this.#fail(new Error(`A worker ended with code ${code}.`)));
  }

  get hasFailed(): boolean {
    return this.#failure !== undefined;
  }

  /** What all tasks from now on belong to. */
  open(job: Job): void {
    this.#post({ kind: 'open', job });
  }

  /** There are no more tasks of the job. */
  finish(): void {
    this.#post({ kind: 'close' });
  }

  run(task: Task): Promise<Result> {
    const result = new Promise<Result>((resolve, reject) => {
      if (this.#failure !== undefined) reject(this.#failure);
      else this.#pending.push({ resolve, reject });
    });
    result.catch(() => undefined);
    const spare = this.spares.pop();
    this.#post({ kind: 'run', task: { ...task, spare } }, spare === undefined ? [] : [spare]);
    return result;
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }

  #post(request: WorkerRequest<Job, Task>, transferred: readonly ArrayBuffer[] = []): void {
    this.#worker.postMessage(request, transferred);
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    for (const { reject } of this.#pending.splice(0)) reject(error);
  }
}
