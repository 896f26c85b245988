import type { StateStats } from '../../airbyte/messages.ts';
import type { Decision } from '../stage/stage.ts';

/** A state in the stage. */
export interface StateAt {
  /** Undefined: of all streams. */
  readonly stream: number | undefined;
  readonly at: number;
  readonly length: number;
}

interface Counts {
  done: number;
  rejected: number;
}

/** The rows between two states. */
class Segment {
  readonly byStream = new Map<number, Counts>();
  open = 0;
  isUndecided = false;
  state: StateAt | undefined;

  of(stream: number): Counts {
    let counts = this.byStream.get(stream);
    if (counts === undefined) {
      counts = { done: 0, rejected: 0 };
      this.byStream.set(stream, counts);
    }
    return counts;
  }
}

/** The position of a row among the states. */
export interface PendingRows {
  readonly segment: object;
  readonly stream: number;
  /** Number of rows of that stream that it represents. */
  rows: number;
}

/**
 * Releases each state, in order, once every row before it is decided, with the counts of its stream since that stream's
 * previous state. After an undecided row no more states are released. Memory: one small object for each unreleased state.
 */
export class Checkpoints {
  readonly #release: (state: StateAt, stats: Required<StateStats>) => Promise<void>;
  readonly #since = new Map<number, Counts>();
  #segments: Segment[] = [new Segment()];
  #head = 0;
  #isStarted = false;
  #work: Promise<void> = Promise.resolve();

  /** States are released only after `start`, which is called once a row is known to be accepted. */
  constructor(release: (state: StateAt, stats: Required<StateStats>) => Promise<void>) {
    this.#release = release;
  }

  /** States not released yet. */
  get unreleased(): number {
    return this.#segments.length - this.#head;
  }

  /** A row that will be decided later; `resolve` it exactly once. */
  addPending(stream: number): PendingRows {
    const segment = this.#last();
    segment.open++;
    return { segment, stream, rows: 1 };
  }

  /** Adds a row that is decided together with `pending`; false if a state or another stream lies between: then use `addPending`. */
  // Stryker disable next-line all: without it every row has an object of its own, and the same states are released
  extend(pending: PendingRows, stream: number): boolean {
    const segment = this.#last();
    // Stryker disable next-line ConditionalExpression: as above
    if (pending.segment !== segment || pending.stream !== stream) return false;
    segment.open++;
    pending.rows++;
    return true;
  }

  resolve(pending: PendingRows, decision: Decision): void {
    const { segment, stream, rows } = pending;
    // Stryker disable next-line ConditionalExpression: for the compiler alone; a position is only ever that of a segment
    if (!(segment instanceof Segment)) return;
    segment.open -= rows;
    count(segment, stream, decision, rows);
    this.#advance();
  }

  /** Adds a row that is already decided. */
  add(stream: number, decision: Decision): void {
    count(this.#last(), stream, decision, 1);
  }

  addState(state: StateAt): void {
    this.#last().state = state;
    this.#segments.push(new Segment());
    this.#advance();
  }

  start(): void {
    this.#isStarted = true;
    this.#advance();
  }

  /** Resolves when everything that may be released has been; rejects when a release failed. */
  async flushed(): Promise<void> {
    for (let seen: Promise<void> | undefined; seen !== this.#work; ) {
      seen = this.#work;
      await seen;
    }
  }

  #last(): Segment {
    return this.#segments[this.#segments.length - 1];
  }

  #advance(): void {
    while (this.#isStarted) {
      const segment = this.#segments[this.#head];
      if (segment.open > 0 || segment.isUndecided || segment.state === undefined) return;
      this.#drop();
      this.#queue(segment, segment.state);
    }
  }

  #drop(): void {
    this.#head++;
    // Stryker disable next-line all: when memory is given back changes no outcome
    if (this.#head < 1_024 || this.#head * 2 < this.#segments.length) return;
    this.#segments = this.#segments.slice(this.#head);
    this.#head = 0;
  }

  #queue(segment: Segment, state: StateAt): void {
    for (const [stream, { done, rejected }] of segment.byStream) {
      const since = this.#of(stream);
      since.done += done;
      since.rejected += rejected;
    }
    const stats = this.#take(state.stream);
    this.#work = this.#work.then(() => this.#release(state, stats));
    // Stryker disable next-line all: `flushed` rejects all the same; this only keeps a rejection from being called unhandled
    this.#work.catch(() => {});
  }

  #take(stream: number | undefined): Required<StateStats> {
    const streams = stream === undefined ? [...this.#since.keys()] : [stream];
    const sum = { recordCount: 0, rejectedRecordCount: 0 };
    for (const one of streams) {
      const since = this.#of(one);
      sum.recordCount += since.done;
      sum.rejectedRecordCount += since.rejected;
      this.#since.delete(one);
    }
    return sum;
  }

  #of(stream: number): Counts {
    const counts = this.#since.get(stream) ?? { done: 0, rejected: 0 };
    this.#since.set(stream, counts);
    return counts;
  }
}

function count(segment: Segment, stream: number, decision: Decision, rows: number): void {
  if (decision === 'undecided') segment.isUndecided = true;
  else segment.of(stream)[decision] += rows;
}
