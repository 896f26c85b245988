import { closeSync, readSync } from 'node:fs';
import { openScratch, writeScratch } from './scratch.ts';

const BLOCK_BYTES = 8 * 1024;

interface Partition {
  /** Offsets of its full blocks in the file, in order. */
  readonly blocks: number[];
  tail: Buffer;
  used: number;
}

/**
 * Entries of one fixed size in numbered partitions, on disk in one file: memory is 8 KiB a partition and 8 bytes a block,
 * whatever is stored. A partition gives its entries back in the order in which they were added.
 */
export class BlockStore {
  readonly #fd: number;
  readonly #entryBytes: number;
  readonly #blockBytes: number;
  readonly #partitions = new Map<number, Partition>();
  #end = 0;

  constructor(folder: string, entryBytes: number) {
    this.#fd = openScratch(folder);
    this.#entryBytes = entryBytes;
    this.#blockBytes = Math.floor(BLOCK_BYTES / entryBytes) * entryBytes;
  }

  /** Room for one entry, to be filled at once by the caller: a buffer and where the entry begins in it. */
  slot(partition: number): { readonly buffer: Buffer; readonly at: number } {
    const place = this.#place(partition);
    if (place.used === this.#blockBytes) this.#spill(place);
    const at = place.used;
    place.used += this.#entryBytes;
    return { buffer: place.tail, at };
  }

  /** Whole blocks of entries; each is valid until the next is asked for. */
  *blocks(partition: number): Generator<Buffer> {
    const place = this.#partitions.get(partition);
    if (place === undefined) return;
    const buffer = Buffer.allocUnsafe(this.#blockBytes);
    for (const offset of place.blocks) {
      readSync(this.#fd, buffer, 0, this.#blockBytes, offset);
      yield buffer;
    }
    yield place.tail.subarray(0, place.used);
  }

  close(): void {
    closeSync(this.#fd);
  }

  #place(partition: number): Partition {
    let place = this.#partitions.get(partition);
    if (place === undefined) {
      place = { blocks: [], tail: Buffer.allocUnsafe(this.#blockBytes), used: 0 };
      this.#partitions.set(partition, place);
    }
    return place;
  }

  #spill(place: Partition): void {
    writeScratch(this.#fd, place.tail, this.#end);
    place.blocks.push(this.#end);
    this.#end += this.#blockBytes;
    place.used = 0;
  }
}
