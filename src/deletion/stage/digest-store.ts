import { closeSync, readSync } from 'node:fs';
import { defect } from '../../base/errors.ts';
import { openScratch, writeScratch } from './scratch.ts';

const DIGEST_BYTES = 32;
const NUMBER_BYTES = 6;
const ENTRY_BYTES = DIGEST_BYTES + NUMBER_BYTES;
const BLOCK_BYTES = 215 * ENTRY_BYTES;

/** Number of partitions: a digest belongs to the one of its first byte. */
export const PARTITIONS = 256;

/** The largest number an entry can hold; offsets in a file are below it. */
export const LARGEST_NUMBER = 2 ** 48 - 1;

interface Partition {
  /** Offsets of its full blocks in the file, in order. */
  readonly blocks: number[];
  readonly tail: Buffer;
  used: number;
}

/**
 * Pairs of a 32-byte digest and a number below 2^48, partitioned by the digest's first byte and kept on disk in one file
 * without a name. Memory: 8 KiB a partition and 8 bytes a block of 215 pairs.
 */
export class DigestStore {
  readonly #fd: number;
  readonly #partitions: readonly Partition[];
  #end = 0;

  constructor(folder: string) {
    this.#fd = openScratch(folder);
    this.#partitions = Array.from({ length: PARTITIONS }, () => ({
      blocks: [],
      tail: Buffer.allocUnsafe(BLOCK_BYTES),
      used: 0,
    }));
  }

  add(digest: Buffer, number: number): void {
    const partition = this.#partitions[digest[0]];
    if (partition.used === BLOCK_BYTES) this.#spill(partition);
    digest.copy(partition.tail, partition.used, 0, DIGEST_BYTES);
    partition.tail.writeUIntLE(number, partition.used + DIGEST_BYTES, NUMBER_BYTES);
    partition.used += ENTRY_BYTES;
  }

  /** The pairs of a partition in the order in which they were added; the digest as a latin1 string. */
  *entries(index: number): Generator<[string, number]> {
    for (const block of this.#blocks(this.#partitions[index])) {
      for (let at = 0; at < block.length; at += ENTRY_BYTES) {
        const end = at + DIGEST_BYTES;
        yield [block.toString('latin1', at, end), block.readUIntLE(end, NUMBER_BYTES)];
      }
    }
  }

  close(): void {
    closeSync(this.#fd);
  }

  *#blocks({ blocks, tail, used }: Partition): Generator<Buffer> {
    const buffer = Buffer.allocUnsafe(BLOCK_BYTES);
    for (const offset of blocks) {
      if (readSync(this.#fd, buffer, 0, BLOCK_BYTES, offset) !== BLOCK_BYTES) throw defect('A block of ids is cut.');
      yield buffer;
    }
    yield tail.subarray(0, used);
  }

  #spill(partition: Partition): void {
    writeScratch(this.#fd, partition.tail, this.#end);
    partition.blocks.push(this.#end);
    this.#end += BLOCK_BYTES;
    partition.used = 0;
  }
}
