import { Worker } from 'node:worker_threads';
import { messageOf } from '../../../base/errors.ts';
import type { FileJob, Task, TaskResult, WorkerRequest } from './task.ts';
import { RECORDS_WORKER } from './worker.ts';

/** A worker makes next to no objects: rows are bytes, and those are outside the heap. */
const HEAP = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 64 };

interface Pending {
  readonly resolve: (result: TaskResult) => void;
  readonly reject: (error: Error) => void;
}

/** One thread and the tasks it has not answered yet. */
export class PooledWorker {
  /** Buffers of results that were used up; tasks take them along again. */
  readonly spares: ArrayBuffer[] = [];
  readonly #worker: Worker;
  readonly #pending: Pending[] = [];
  #failure: Error | undefined;

  constructor(entry: URL) {
    this.#worker = new Worker(entry, { workerData: RECORDS_WORKER, stdout: true, stderr: true, resourceLimits: HEAP });
    this.#worker.on('message', (result: TaskResult | { readonly failed: unknown }) => {
      if ('failed' in result) this.#fail(new Error(String(result.failed)));
      else this.#pending.shift()?.resolve(result);
    });
    this.#worker.on('error', (error) => this.#fail(new Error(messageOf(error), { cause: error })));
    this.#worker.on('exit', (code) => this.#fail(new Error(`A worker ended with code ${code}.`)));
  }

  get hasFailed(): boolean {
    return this.#failure !== undefined;
  }

  /** The files of all tasks from now on; the worker closes those before. */
  setFiles(files: readonly FileJob[]): void {
    this.#worker.postMessage({ kind: 'files', files } satisfies WorkerRequest);
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
