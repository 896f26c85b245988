import { REFUSALS, type Refusal } from '../input/refusal.ts';
import { type DuplicateCounts, Duplicates } from './duplicates.ts';
import { EVERY_STREAM, STEP, StepFile } from './step-file.ts';

/** One thing of the input, in its order. Streams are indexes of the configured catalog; undefined: all of them. */
export type Step =
  | {
      readonly kind: 'id';
      readonly stream: number;
      readonly number: number;
      readonly first: number;
      readonly isDone: boolean;
      readonly id: string;
    }
  | { readonly kind: 'refused'; readonly stream: number; readonly refusal: Refusal }
  | { readonly kind: 'state'; readonly stream: number | undefined; readonly at: number; readonly length: number };

/** Counts of rows, all known once the input has ended. */
export interface StageCounts extends Omit<DuplicateCounts, 'withdrawn'> {
  readonly received: number;
  readonly accepted: number;
  readonly duplicates: number;
  readonly refused: ReadonlyMap<Refusal, number>;
  readonly states: number;
}

/** The whole input at rest, on disk without a name; gone after `close`, or with the process. */
export interface Stage {
  readonly counts: StageCounts;
  /** The input in its order; may be walked more than once. */
  steps(): AsyncGenerator<Step>;
  /** The text of a state, as it came. */
  state(at: number, length: number): Promise<Buffer>;
  close(): void;
}

/** Gathers the input. Memory: 2 MiB of hashes under way and 256 KiB of steps, whatever the number of rows. */
export class StageWriter {
  readonly #steps: StepFile;
  readonly #duplicates: Duplicates;
  readonly #hash: (id: Buffer) => Buffer;
  readonly #refused = new Map<Refusal, number>();
  #accepted = 0;
  #states = 0;

  /** `hash` gives the 32 bytes by which ids are told apart: the keyed hash of the ledger. */
  constructor(folder: string, hash: (id: Buffer) => Buffer) {
    this.#steps = new StepFile(folder);
    this.#duplicates = new Duplicates(folder);
    this.#hash = hash;
  }

  addId(stream: number, id: string): void {
    const bytes = Buffer.from(id);
    this.#steps.add(STEP.id, stream, bytes);
    this.#duplicates.add(this.#hash(bytes));
    this.#accepted++;
  }

  addRefused(stream: number, refusal: Refusal): void {
    this.#steps.add(STEP.refused, stream, Uint8Array.of(REFUSALS.indexOf(refusal)));
    this.#refused.set(refusal, (this.#refused.get(refusal) ?? 0) + 1);
  }

  /** A row that takes the request for an id back: it is refused itself, and so is every row before it with that id. */
  addWithdrawn(stream: number, id: string | undefined): void {
    this.addRefused(stream, 'withdrawn');
    if (id !== undefined) this.#duplicates.withdraw(this.#hash(Buffer.from(id)));
  }

  addState(stream: number | undefined, text: string): void {
    this.#steps.add(STEP.state, stream ?? EVERY_STREAM, Buffer.from(text));
    this.#states++;
  }

  /** Hash of an id that the resumed run is proved to have done. */
  markDone(digest: Buffer): void {
    this.#duplicates.markDone(digest);
  }

  /** Ends the input. */
  finish(): Stage {
    this.#steps.flush();
    const { withdrawn, ...found } = this.#duplicates.resolve();
    if (withdrawn > 0) this.#refused.set('withdrawn', (this.#refused.get('withdrawn') ?? 0) + withdrawn);
    const accepted = this.#accepted - withdrawn;
    const refused = [...this.#refused.values()].reduce((sum, n) => sum + n, 0);
    const counts: StageCounts = {
      ...found,
      received: accepted + refused,
      accepted,
      duplicates: accepted - found.unique,
      refused: new Map(REFUSALS.flatMap((name) => pairOf(name, this.#refused.get(name)))),
      states: this.#states,
    };
    return new StageAtRest(this.#steps, this.#duplicates, counts);
  }

  /** Lets go of everything; for an input that could not be read to its end. */
  discard(): void {
    this.#steps.close();
    this.#duplicates.close();
  }
}

const pairOf = (name: Refusal, count: number | undefined): [Refusal, number][] =>
  count === undefined ? [] : [[name, count]];

class StageAtRest implements Stage {
  readonly counts: StageCounts;
  readonly #steps: StepFile;
  readonly #duplicates: Duplicates;

  constructor(steps: StepFile, duplicates: Duplicates, counts: StageCounts) {
    this.#steps = steps;
    this.#duplicates = duplicates;
    this.counts = counts;
  }

  async *steps(): AsyncGenerator<Step> {
    const standing = this.#duplicates.reader();
    let number = 0;
    for await (const { kind, stream, at, payload } of this.#steps.steps()) {
      if (kind === STEP.id) {
        const { isWithdrawn, ...place } = standing(number);
        if (isWithdrawn) yield { kind: 'refused', stream, refusal: 'withdrawn' };
        else yield { kind: 'id', stream, number, ...place, id: payload.toString() };
        number++;
      } else if (kind === STEP.refused) {
        yield { kind: 'refused', stream, refusal: REFUSALS[payload[0] ?? 0] ?? 'missing' };
      } else {
        yield { kind: 'state', stream: stream === EVERY_STREAM ? undefined : stream, at, length: payload.length };
      }
    }
  }

  state(at: number, length: number): Promise<Buffer> {
    return this.#steps.bytes(at, length);
  }

  close(): void {
    this.#steps.close();
    this.#duplicates.close();
  }
}
