import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { messageOf } from '../../base/errors.ts';
import { PartRunner } from './part-runner.ts';
import type { Done, FileJob, Task } from './task.ts';

/** Tasks given to a worker at a time: one at work and one waiting, so that it never idles. */
const AHEAD = 2;
/** Each takes some 20 MB, and a container may be allowed less than the machine shows. */
const MOST_WORKERS = 2;
/** A worker makes next to no objects: rows are bytes, and those are outside the heap. */
const HEAP = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 64 };

/** Who does the tasks of a window: results come in the order of the tasks. */
export interface Crew {
  run(tasks: AsyncIterable<Task>): AsyncGenerator<Done>;
  close(): Promise<void>;
}

/** What starts a worker: a module that calls `serveTasks` when it is no main thread. */
export interface WorkerOptions {
  readonly entry: URL | undefined;
  /** Undefined: as many as this machine has for us. */
  readonly workers?: number | undefined;
}

/** Sent to a worker as its `workerData`, so that the entry can tell what it was started for. */
export interface CrewData {
  readonly recordsCrew: readonly FileJob[];
}

/** `bytes` of CSV are waiting: a worker takes 30 ms to start, so small windows are done right here. */
export function assemble(jobs: readonly FileJob[], bytes: number, options: WorkerOptions): Crew {
  const count = Math.min(options.workers ?? availableParallelism(), MOST_WORKERS);
  if (options.entry === undefined || count < 2 || bytes < LEAST_BYTES) return new LoneCrew(jobs);
  return new WorkerCrew(jobs, options.entry, count);
}

const LEAST_BYTES = 8 * 1024 * 1024;

/** Does every task here and now. */
class LoneCrew implements Crew {
  readonly #runners: RunnerSet;

  constructor(jobs: readonly FileJob[]) {
    this.#runners = new RunnerSet(jobs);
  }

  async *run(tasks: AsyncIterable<Task>): AsyncGenerator<Done> {
    let spare: ArrayBuffer | undefined;
    for await (const task of tasks) {
      const done = this.#runners.run({ ...task, spare });
      yield done;
      spare = done.buffer;
    }
  }

  async close(): Promise<void> {
    this.#runners.close();
  }
}

/** The runner of the file at hand; tasks come file by file. */
export class RunnerSet {
  readonly #jobs: readonly FileJob[];
  #job = -1;
  #runner: PartRunner | undefined;

  constructor(jobs: readonly FileJob[]) {
    this.#jobs = jobs;
  }

  run(task: Task): Done {
    if (this.#runner === undefined || this.#job !== task.job) {
      this.close();
      this.#job = task.job;
      this.#runner = new PartRunner(this.#jobs[task.job]);
    }
    return this.#runner.run(task);
  }

  close(): void {
    this.#runner?.close();
    this.#runner = undefined;
  }
}

interface Waiting {
  readonly member: Member;
  readonly done: Promise<Done>;
}

class WorkerCrew implements Crew {
  readonly #members: readonly Member[];

  constructor(jobs: readonly FileJob[], entry: URL, count: number) {
    this.#members = Array.from({ length: count }, () => new Member(jobs, entry));
  }

  async *run(tasks: AsyncIterable<Task>): AsyncGenerator<Done> {
    const waiting: Waiting[] = [];
    const most = this.#members.length * AHEAD;
    let turn = 0;
    for await (const task of tasks) {
      const member = this.#members[turn++ % this.#members.length];
      waiting.push({ member, done: member.run(task) });
      if (waiting.length >= most) yield* next(waiting);
    }
    while (waiting.length > 0) yield* next(waiting);
  }

  async close(): Promise<void> {
    await Promise.all(this.#members.map((member) => member.close()));
  }
}

/** Yields the oldest result; its buffer is used again once the caller comes back for more. */
async function* next(waiting: Waiting[]): AsyncGenerator<Done> {
  const [oldest] = waiting.splice(0, 1);
  const done = await oldest.done;
  yield done;
  oldest.member.spares.push(done.buffer);
}

interface Pending {
  readonly resolve: (done: Done) => void;
  readonly reject: (error: Error) => void;
}

/** One worker and the tasks it has not answered yet. */
class Member {
  readonly spares: ArrayBuffer[] = [];
  readonly #worker: Worker;
  readonly #pending: Pending[] = [];
  #failure: Error | undefined;

  constructor(jobs: readonly FileJob[], entry: URL) {
    const data: CrewData = { recordsCrew: jobs };
    this.#worker = new Worker(entry, { workerData: data, stdout: true, stderr: true, resourceLimits: HEAP });
    this.#worker.on('message', (done: Done | { readonly failed: unknown }) => {
      if ('failed' in done) this.#fail(new Error(String(done.failed)));
      else this.#pending.shift()?.resolve(done);
    });
    this.#worker.on('error', (error) => this.#fail(new Error(messageOf(error), { cause: error })));
    this.#worker.on('exit', (code) => this.#fail(new Error(`A worker ended with code ${code}.`)));
  }

  run(task: Task): Promise<Done> {
    const done = new Promise<Done>((resolve, reject) => {
      if (this.#failure !== undefined) reject(this.#failure);
      else this.#pending.push({ resolve, reject });
    });
    done.catch(() => undefined);
    const spare = this.spares.pop();
    this.#worker.postMessage({ ...task, spare }, spare === undefined ? [] : [spare]);
    return done;
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    for (const { reject } of this.#pending.splice(0)) reject(error);
  }
}
