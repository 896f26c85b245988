/** What the tasks of any work have in common. */
export interface PoolTask {
  /** Memory for the result; the sender no longer needs it. */
  readonly spare: ArrayBuffer | undefined;
}

/** What their results have in common. */
export interface PoolResult {
  readonly buffer: ArrayBuffer;
  /** Further memory that goes with the result. */
  readonly more?: readonly ArrayBuffer[];
  /** True where the receiver of the result keeps `buffer`: it is then not reused. */
  readonly isKept?: boolean;
}

/** Does one kind of work, in the main thread or in a worker. Jobs, tasks and results are plain data. */
export interface Runner<Job, Task extends PoolTask, Result extends PoolResult> {
  /** What all tasks from now on belong to; what was opened for those before is closed. */
  open(job: Job): void;
  run(task: Task): Result;
  /** Lets go of all that is open. */
  close(): void;
}

/** What a worker is sent: the job of the tasks to come, a task, or that there are no more. */
export type WorkerRequest<Job, Task extends PoolTask> =
  | { readonly kind: 'open'; readonly job: Job }
  | { readonly kind: 'run'; readonly task: Task }
  | { readonly kind: 'close' };

/** What it answers to a task. */
export type WorkerAnswer<Result extends PoolResult> = { readonly result: Result } | { readonly failed: string };
