// This folder: the staged input of a deletion. Every row is read, checked, counted and compared on disk before the first
// request is sent.

import { REFUSALS, type Refusal } from '../input/refusal.ts';
import { DigestStore, LARGEST_NUMBER, PARTITIONS } from './digest-store.ts';
import { type RawStep, STEP, type StepFile } from './step-file.ts';

/** The outcome of an id; undecided rows are in neither count. */
export type Decision = 'done' | 'rejected' | 'undecided';
/** Decisions by their number in a step; withdrawn ids are decided before anything is sent. */
export const DECISIONS = [undefined, 'done', 'rejected', 'undecided', 'withdrawn'] as const;

/** Stands for a stream in a state of all streams. */
export const EVERY_STREAM = 0xffff;
/** Stands for an offset: the hash is from the ledger of the resumed run. */
const DONE = LARGEST_NUMBER;

/** One item of the input, in order. Streams are indexes of the configured catalog; undefined: all streams. */
export type Step =
  | {
      readonly kind: 'id';
      readonly stream: number;
      /** Offset of this step, by which it is named. */
      readonly at: number;
      /** Offset of the first step with the same id. */
      readonly first: number;
      /** Of the id, where it was decided before the steps were walked. */
      readonly decision: Decision | undefined;
      readonly id: string;
    }
  | { readonly kind: 'refused'; readonly stream: number; readonly refusal: Refusal }
  | { readonly kind: 'state'; readonly stream: number | undefined; readonly at: number; readonly length: number };

/** Counts of rows, all known once the input has ended. */
export interface StageCounts {
  readonly received: number;
  readonly accepted: number;
  readonly duplicates: number;
  readonly refused: ReadonlyMap<Refusal, number>;
  /** Different ids among the accepted rows. */
  readonly unique: number;
  /** Of these, done already by the run that is resumed. */
  readonly done: number;
}

/** The whole input, in unlinked files on disk, which are gone after `close` or when the process ends. */
export class Stage {
  readonly #folder: string;
  readonly #steps: StepFile;
  #counts: StageCounts;
  /** SHA-256 (hex) of exactly the accepted ids: neither order nor repetitions nor refused rows change it. */
  readonly digest: string;

  constructor(folder: string, steps: StepFile, counts: StageCounts, digest: string) {
    this.#folder = folder;
    this.#steps = steps;
    this.#counts = counts;
    this.digest = digest;
  }

  get counts(): StageCounts {
    return this.#counts;
  }

  /**
   * Marks the ids that a resumed run has deleted. `idHash` is the 32-byte keyed hash that its ledger has for them, and
   * `eachDone` passes on those hashes. Memory: as `StageWriter`.
   */
  async markDone(
    idHash: (id: Buffer) => Buffer,
    eachDone: (listener: (idHash: Buffer) => void) => Promise<void>,
  ): Promise<void> {
    const hashes = new DigestStore(this.#folder);
    try {
      for await (const { kind, at, first, payload } of this.#steps.steps()) {
        if (kind === STEP.id && first === at) hashes.add(idHash(payload), at);
      }
      await eachDone((hash) => hashes.add(hash, DONE));
      let done = 0;
      for (let partition = 0; partition < PARTITIONS; partition++) done += this.#markPartition(hashes, partition);
      this.#counts = { ...this.#counts, done };
    } finally {
      hashes.close();
    }
  }

  /** The input in its order; may be walked more than once. */
  async *steps(): AsyncGenerator<Step> {
    for await (const raw of this.#steps.steps()) {
      if (raw.kind === STEP.id) yield this.#idStep(raw);
      else if (raw.kind === STEP.refused) yield refusedStep(raw.stream, REFUSALS[raw.payload[0] ?? 0] ?? 'missing');
      else yield stateStep(raw);
    }
  }

  /** Stores the decision about an id, identified by its first step. */
  decide(first: number, decision: Decision): void {
    this.#steps.setDecision(first, DECISIONS.indexOf(decision));
  }

  /** The stored decision about an id, identified by its first step. */
  decision(first: number): Decision | undefined {
    const decision = DECISIONS[this.#steps.decision(first)];
    return decision === 'withdrawn' ? 'rejected' : decision;
  }

  /** The text of a state, unchanged. */
  state(at: number, length: number): Promise<Buffer> {
    return this.#steps.payload(at, length);
  }

  close(): void {
    this.#steps.close();
  }

  #idStep({ stream, at, first, decision: own, payload }: RawStep): Step {
    // Stryker disable next-line ConditionalExpression: read from the file it is the same
    const decision = DECISIONS[first === at ? own : this.#steps.decision(first)];
    if (decision === 'withdrawn') return refusedStep(stream, 'withdrawn');
    return { kind: 'id', stream, at, first, decision, id: payload.toString() };
  }

  #markPartition(hashes: DigestStore, partition: number): number {
    const done = new Set<string>();
    for (const [hash, at] of hashes.entries(partition)) if (at === DONE) done.add(hash);
    let count = 0;
    for (const [hash, at] of hashes.entries(partition)) {
      if (at === DONE || !done.has(hash) || this.#steps.decision(at) !== 0) continue;
      this.decide(at, 'done');
      count++;
    }
    return count;
  }
}

const refusedStep = (stream: number, refusal: Refusal): Step => ({ kind: 'refused', stream, refusal });

const stateStep = ({ stream, at, payload }: RawStep): Step => ({
  kind: 'state',
  stream: stream === EVERY_STREAM ? undefined : stream,
  at,
  length: payload.length,
});
