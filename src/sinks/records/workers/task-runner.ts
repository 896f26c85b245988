import { BlockProcessor } from './block-processor.ts';
import type { FileJob, Task, TaskResult } from './task.ts';

/** Runs tasks one by one and keeps the file of the latest open; tasks come file by file. */
export class TaskRunner {
  #jobs: readonly FileJob[] = [];
  #job = -1;
  #processor: BlockProcessor | undefined;

  /** The files of all tasks from now on; those before are closed. */
  setFiles(jobs: readonly FileJob[]): void {
    this.close();
    this.#jobs = jobs;
  }

  run(task: Task): TaskResult {
    if (this.#processor === undefined || this.#job !== task.job) {
      this.close();
      this.#job = task.job;
      this.#processor = new BlockProcessor(this.#jobs[task.job]);
    }
    return this.#processor.run(task);
  }

  close(): void {
    this.#processor?.close();
    this.#processor = undefined;
  }
}
