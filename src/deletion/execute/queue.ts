import type { Stage, Step } from '../stage/stage.ts';
import type { Checkpoints, Decision, PendingRows } from './checkpoints.ts';

/** One id to be requested. */
export interface Task {
  readonly id: string;
  /** Number of its first occurrence. */
  readonly number: number;
  readonly pending: PendingRows;
}

const PAGE = 65_536;
const DECISIONS = [undefined, 'done', 'rejected', 'undecided'] as const satisfies readonly (Decision | undefined)[];

/** States that may wait for a slow request before nothing more is taken in. */
const MOST_PENDING_STATES = 100_000;

/**
 * Hands out the ids to request, each once and in order, and keeps the books of all other rows on the way: refused ones,
 * repeated ones, states. Memory: 1 byte an id in pages of 64 KiB, and one object a
 * state and stream in which an id under way is repeated.
 */
export class DeletionQueue {
  readonly #steps: AsyncGenerator<Step>;
  readonly #checkpoints: Checkpoints;
  readonly #pages = new Map<number, Uint8Array>();
  readonly #repeats = new Map<number, PendingRows[]>();
  #turn: Promise<Task | undefined> = Promise.resolve(undefined);
  #wake: (() => void) | undefined;
  /** False while no row is known to be accepted: then states gather, whatever their number. */
  isBounded = false;

  constructor(stage: Stage, checkpoints: Checkpoints) {
    this.#steps = stage.steps();
    this.#checkpoints = checkpoints;
  }

  /** The next id; undefined at the end of the input. One caller after the other. */
  next(): Promise<Task | undefined> {
    this.#turn = this.#turn.then(() => this.#pull());
    return this.#turn;
  }

  resolve(task: Task, decision: Decision): void {
    this.#remember(task.number, decision);
    this.#checkpoints.resolve(task.pending, decision);
    for (const pending of this.#repeats.get(task.number) ?? []) this.#checkpoints.resolve(pending, decision);
    this.#repeats.delete(task.number);
    this.#wake?.();
  }

  /** Lets go of the stage's reader; rows not taken stay undecided. */
  async close(): Promise<void> {
    await this.#steps.return(undefined);
  }

  async #pull(): Promise<Task | undefined> {
    for (;;) {
      if (this.isBounded && this.#checkpoints.unreleased > MOST_PENDING_STATES) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        continue;
      }
      const { value: step, done } = await this.#steps.next();
      if (done) return undefined;
      const task = this.#take(step);
      if (task) return task;
    }
  }

  #take(step: Step): Task | undefined {
    if (step.kind === 'state') this.#checkpoints.addState(step);
    else if (step.kind === 'refused') this.#checkpoints.add(step.stream, 'rejected');
    else if (step.isDone) this.#checkpoints.add(step.stream, 'done');
    else if (step.first === step.number) return this.#task(step.id, step.number, step.stream);
    else this.#repeat(step.first, step.stream);
    return undefined;
  }

  #task(id: string, number: number, stream: number): Task {
    this.#repeats.set(number, []);
    return { id, number, pending: this.#checkpoints.addPending(stream) };
  }

  #repeat(first: number, stream: number): void {
    const decision = this.#recall(first);
    if (decision) {
      this.#checkpoints.add(stream, decision);
      return;
    }
    const pendings = this.#repeats.get(first) ?? [];
    const last = pendings[pendings.length - 1];
    if (last === undefined || !this.#checkpoints.extend(last, stream)) {
      pendings.push(this.#checkpoints.addPending(stream));
    }
  }

  #remember(number: number, decision: Decision): void {
    const at = Math.floor(number / PAGE);
    const page = this.#pages.get(at) ?? new Uint8Array(PAGE);
    page[number % PAGE] = DECISIONS.indexOf(decision);
    this.#pages.set(at, page);
  }

  #recall(number: number): Decision | undefined {
    return DECISIONS[this.#pages.get(Math.floor(number / PAGE))?.[number % PAGE] ?? 0];
  }
}
