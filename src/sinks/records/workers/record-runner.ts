import type { Runner } from '../../workers/runner.ts';
import { BlockProcessor } from './block-processor.ts';
import type { FileJob, Task, TaskResult } from './task.ts';

/** Runs the tasks of a window one by one and keeps the file of the latest open; tasks come file by file. */
export class RecordRunner implements Runner<readonly FileJob[], Task, TaskResult> {
  #jobs: readonly FileJob[] = [];
  #fileIndex = -1;
  #processor: BlockProcessor | undefined;

  open(jobs: readonly FileJob[]): void {
    this.close();
    this.#jobs = jobs;
  }

  run(task: Task): TaskResult {
    if (this.#processor === undefined || this.#fileIndex !== task.fileIndex) {
      this.close();
      this.#fileIndex = task.fileIndex;
      this.#processor = new BlockProcessor(this.#jobs[task.fileIndex]);
    }
    return this.#processor.run(task);
  }

  close(): void {
    this.#processor?.close();
    this.#processor = undefined;
  }
}
