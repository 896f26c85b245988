import { BlockStore } from './block-store.ts';

const DIGEST_BYTES = 32;
const NUMBER_BYTES = 6;
const PARTITIONS = 256;
const RANGE = 65_536;
/** In place of an occurrence's number: this id was done by an earlier run that is being resumed. */
const DONE = 2 ** 48 - 1;
/** Added to the number of occurrences so far: what was asked for before it is taken back. */
const WITHDRAWN = 2 ** 47;

/** What became of the occurrence of an id: the first of its kind, or which one it repeats. */
export interface Standing {
  /** Number of the first occurrence of the same id. */
  readonly first: number;
  /** True when the run that is being resumed is proved to have done it. */
  readonly isDone: boolean;
  /** True when the request was taken back further on, and not made again. */
  readonly isWithdrawn: boolean;
}

export interface DuplicateCounts {
  readonly unique: number;
  /** Of these, done already by the run that is resumed. */
  readonly done: number;
  /** Occurrences whose request was taken back; they are in no other count. */
  readonly withdrawn: number;
}

/**
 * Finds equal ids exactly, by their 32-byte keyed hash, with memory that does not grow with their number: hashes are
 * spread over partitions on disk, one partition is looked at after the other, and what was found is spread again by number.
 */
export class Duplicates {
  readonly #digests: BlockStore;
  readonly #found: BlockStore;
  #occurrences = 0;

  constructor(folder: string) {
    this.#digests = new BlockStore(folder, DIGEST_BYTES + NUMBER_BYTES);
    this.#found = new BlockStore(folder, 2 * NUMBER_BYTES);
  }

  /** Number of this occurrence, from 0. */
  add(digest: Buffer): number {
    this.#put(digest, this.#occurrences);
    return this.#occurrences++;
  }

  markDone(digest: Buffer): void {
    this.#put(digest, DONE);
  }

  /** Takes the occurrences so far back. */
  withdraw(digest: Buffer): void {
    this.#put(digest, WITHDRAWN + this.#occurrences);
  }

  /** After the last `add`: compares everything. */
  resolve(): DuplicateCounts {
    const counts = { unique: 0, done: 0, withdrawn: 0 };
    for (let partition = 0; partition < PARTITIONS; partition++) {
      const part = this.#resolvePartition(partition);
      counts.unique += part.unique;
      counts.done += part.done;
      counts.withdrawn += part.withdrawn;
    }
    return counts;
  }

  /** Looks up occurrences in ascending order; holds what concerns 65,536 of them at a time. */
  reader(): (occurrence: number) => Standing {
    let range = -1;
    let known = new Map<number, number>();
    return (occurrence) => {
      const wanted = Math.floor(occurrence / RANGE);
      if (wanted !== range) {
        known = this.#load(wanted);
        range = wanted;
      }
      const first = known.get(occurrence) ?? occurrence;
      const [isDone, isWithdrawn] = [first === DONE, first === WITHDRAWN];
      return { first: isDone || isWithdrawn ? occurrence : first, isDone, isWithdrawn };
    };
  }

  close(): void {
    this.#digests.close();
    this.#found.close();
  }

  #put(digest: Buffer, number: number): void {
    const { buffer, at } = this.#digests.slot(digest[0] ?? 0);
    digest.copy(buffer, at, 0, DIGEST_BYTES);
    buffer.writeUIntLE(number, at + DIGEST_BYTES, NUMBER_BYTES);
  }

  #resolvePartition(partition: number): DuplicateCounts {
    const firsts = this.#settled(partition);
    const counts = { unique: 0, withdrawn: 0 };
    const seenDone = new Set<string>();
    for (const [digest, number] of this.#entries(partition)) {
      if (number >= WITHDRAWN) continue;
      const first = firsts.get(digest);
      if (first === undefined) {
        firsts.set(digest, number);
        counts.unique++;
        continue;
      }
      this.#remember(number, first);
      if (first === DONE) seenDone.add(digest);
      if (first === WITHDRAWN) counts.withdrawn++;
    }
    return { ...counts, unique: counts.unique + seenDone.size, done: seenDone.size };
  }

  /** The ids whose fate does not depend on a first occurrence: done before, or taken back after their last one. */
  #settled(partition: number): Map<string, number> {
    const settled = new Map<string, number>();
    const takenBackAt = new Map<string, number>();
    for (const [digest, number] of this.#entries(partition)) {
      if (number === DONE) settled.set(digest, DONE);
      else if (number >= WITHDRAWN) takenBackAt.set(digest, number - WITHDRAWN);
    }
    if (takenBackAt.size === 0) return settled;
    for (const [digest, number] of this.#entries(partition)) {
      if (number < WITHDRAWN && number >= (takenBackAt.get(digest) ?? 0)) takenBackAt.delete(digest);
    }
    for (const digest of takenBackAt.keys()) if (!settled.has(digest)) settled.set(digest, WITHDRAWN);
    return settled;
  }

  *#entries(partition: number): Generator<[string, number]> {
    const size = DIGEST_BYTES + NUMBER_BYTES;
    for (const block of this.#digests.blocks(partition)) {
      for (let at = 0; at < block.length; at += size) {
        const end = at + DIGEST_BYTES;
        yield [block.toString('latin1', at, end), block.readUIntLE(end, NUMBER_BYTES)];
      }
    }
  }

  #remember(occurrence: number, first: number): void {
    const { buffer, at } = this.#found.slot(Math.floor(occurrence / RANGE));
    buffer.writeUIntLE(occurrence, at, NUMBER_BYTES);
    buffer.writeUIntLE(first, at + NUMBER_BYTES, NUMBER_BYTES);
  }

  #load(range: number): Map<number, number> {
    const known = new Map<number, number>();
    for (const block of this.#found.blocks(range)) {
      for (let at = 0; at < block.length; at += 2 * NUMBER_BYTES) {
        known.set(block.readUIntLE(at, NUMBER_BYTES), block.readUIntLE(at + NUMBER_BYTES, NUMBER_BYTES));
      }
    }
    return known;
  }
}
