import type { Decision, Stage, Step } from '../stage/stage.ts';
import type { Checkpoints, PendingRows } from './checkpoints.ts';

/** One id to be requested. */
export interface Task {
  readonly id: string;
  /** Offset of its first step in the stage. */
  readonly first: number;
  readonly pending: PendingRows;
}

type StagedInput = Pick<Stage, 'steps' | 'decide' | 'decision'>;

/** States that may wait for a slow request before nothing more is taken in. */
const MOST_UNRELEASED_STATES = 100_000;

/**
 * Hands out the ids to request, each once and in order, and accounts for all other rows on the way: refused ones, repeated
 * ones, states. Memory: one object for each id under way, and for each state and stream in which such an id is repeated.
 */
export class DeletionQueue {
  readonly #stage: StagedInput;
  readonly #steps: AsyncGenerator<Step>;
  readonly #checkpoints: Checkpoints;
  /** The repeated rows of each id in progress, by its first step. */
  readonly #repeats = new Map<number, PendingRows[]>();
  #turn: Promise<Task | undefined> = Promise.resolve(undefined);
  #wake: (() => void) | undefined;
  /** False while no row is known to be accepted; until then any number of states may wait. */
  isBounded = false;

  constructor(stage: StagedInput, checkpoints: Checkpoints) {
    this.#stage = stage;
    this.#steps = stage.steps();
    this.#checkpoints = checkpoints;
  }

  /** The next id; undefined at the end of the input. One caller after the other. */
  next(): Promise<Task | undefined> {
    this.#turn = this.#turn.then(() => this.#pull());
    return this.#turn;
  }

  resolve({ first, pending }: Task, decision: Decision): void {
    this.#stage.decide(first, decision);
    this.#checkpoints.resolve(pending, decision);
    // Stryker disable next-line ArrayDeclaration: for the compiler alone; a task that is not resolved yet has its list
    for (const repeated of this.#repeats.get(first) ?? []) this.#checkpoints.resolve(repeated, decision);
    this.#repeats.delete(first);
    this.#wake?.();
  }

  /** Closes the stage's reader; rows not taken stay undecided. */
  async close(): Promise<void> {
    await this.#steps.return(undefined);
  }

  async #pull(): Promise<Task | undefined> {
    for (;;) {
      if (this.isBounded && this.#checkpoints.unreleased > MOST_UNRELEASED_STATES) {
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
    else if (step.first !== step.at) this.#repeat(step.first, step.stream);
    else if (step.decision !== undefined) this.#checkpoints.add(step.stream, step.decision);
    else return this.#task(step.id, step.first, step.stream);
    return undefined;
  }

  #task(id: string, first: number, stream: number): Task {
    // Stryker disable next-line ArrayDeclaration: what is put there is no position, which `resolve` passes over
    this.#repeats.set(first, []);
    return { id, first, pending: this.#checkpoints.addPending(stream) };
  }

  #repeat(first: number, stream: number): void {
    const repeats = this.#repeats.get(first);
    if (repeats === undefined) {
      this.#checkpoints.add(stream, this.#stage.decision(first) ?? 'undecided');
      return;
    }
    // Stryker disable next-line ArithmeticOperator: without the last one every row has an object of its own, as below
    const last = repeats[repeats.length - 1];
    // Stryker disable next-line ConditionalExpression: as in Checkpoints.extend, the same states are released
    if (last === undefined || !this.#checkpoints.extend(last, stream)) {
      repeats.push(this.#checkpoints.addPending(stream));
    }
  }
}
