import { Scratch } from '../base/scratch.ts';

/** Slots of eight bytes, doubled when three quarters are taken: 11 to 21 bytes a row. */
const START_SLOTS = 1 << 16;
/** 64 MiB of slots: about 6.3 million ids. Beyond that ids are not counted. */
const MAX_SLOTS = 1 << 23;
const SLOT_BYTES = 8;
const FULLEST = 0.75;
/** Hashes gathered before they are looked up together, so that the memory fetches of many overlap. */
const BATCH = 256;

/** Hashes (53 bits) of the ids whose hash begins with `level` zero bits: the same ids are in the samples of all exports. */
export interface IdSample {
  readonly level: number;
  readonly hashes: Float64Array;
}

/** The zero bits with which a hash of a sample begins. */
export const levelOf = (hash: number): number => Math.clz32(Math.floor(hash / 2 ** 21));

/**
 * Counts distinct ids by a 63-bit hash, outside the heap. It may take two ids for one (and gives up once it is full),
 * never one for two.
 */
export class IdSet {
  #scratch = new Scratch(START_SLOTS * SLOT_BYTES);
  #slots = new Int32Array(this.#scratch.buffer, 0, START_SLOTS * 2);
  #mask = START_SLOTS - 1;
  #size = 0;
  #isFull = false;
  readonly #batch = new Int32Array(BATCH * 2);
  #waiting = 0;

  /** Takes in the id of these bytes. */
  add(b: Uint8Array, start: number, end: number): void {
    let high = (end - start) | 0;
    let low = 0x2c1b3c6d;
    let i = start;
    for (; i + 4 <= end; i += 4) {
      const word = b[i] | (b[i + 1] << 8) | (b[i + 2] << 16) | (b[i + 3] << 24);
      high = Math.imul(high ^ word, 0x01000193) ^ (high >>> 15);
      low = Math.imul(low + word, 0x297a2d39) ^ (low >>> 13);
    }
    for (; i < end; i++) {
      high = Math.imul(high ^ b[i], 0x01000193) ^ (high >>> 15);
      low = Math.imul(low + b[i], 0x297a2d39) ^ (low >>> 13);
    }
    this.#batch[this.#waiting] = mix(high ^ low);
    this.#batch[this.#waiting + 1] = mix(low) | 1;
    this.#waiting += 2;
    if (this.#waiting === BATCH * 2) this.#insertBatch();
  }

  /** How many different ids there were; fewer than there were, or none, when it cannot be told. */
  get distinct(): number {
    this.#insertBatch();
    return this.#isFull ? 0 : this.#size;
  }

  /** A sample of at most about `most` of the ids; undefined when it cannot be told which ids there were. */
  sample(most: number): IdSample | undefined {
    this.#insertBatch();
    if (this.#isFull) return undefined;
    const level = Math.max(0, Math.ceil(Math.log2(this.#size / most)));
    const hashes: number[] = [];
    for (let at = 0; at <= this.#mask * 2; at += 2) {
      if (this.#slots[at + 1] === 0) continue;
      const hash = (this.#slots[at] >>> 0) * 2 ** 21 + (this.#slots[at + 1] >>> 11);
      if (levelOf(hash) >= level) hashes.push(hash);
    }
    return { level, hashes: Float64Array.from(hashes) };
  }

  #insertBatch(): void {
    if (!this.#isFull) this.#insert(this.#batch, this.#waiting);
    this.#waiting = 0;
    if (!this.#isFull && this.#size + BATCH > (this.#mask + 1) * FULLEST) this.#grow();
  }

  #insert(hashes: Int32Array, length: number): void {
    const slots = this.#slots;
    const mask = this.#mask;
    let size = this.#size;
    for (let i = 0; i < length; i += 2) {
      const low = hashes[i + 1];
      if (low === 0) continue;
      const high = hashes[i];
      let at = (high & mask) * 2;
      while (slots[at + 1] !== 0 && (slots[at] !== high || slots[at + 1] !== low)) at = (at + 2) & (mask * 2 + 1);
      if (slots[at + 1] !== 0) continue;
      slots[at] = high;
      slots[at + 1] = low;
      size++;
    }
    this.#size = size;
  }

  /** Gives the memory back; from then on it cannot be told how many there were. */
  end(): void {
    this.#isFull = true;
    this.#scratch.free();
  }

  #grow(): void {
    const [old, scratch] = [this.#slots, this.#scratch];
    const count = old.length;
    if (count > MAX_SLOTS) {
      this.end();
      return;
    }
    this.#scratch = new Scratch(count * SLOT_BYTES);
    this.#slots = new Int32Array(this.#scratch.buffer, 0, count * 2);
    this.#mask = count - 1;
    this.#size = 0;
    this.#insert(old, count);
    scratch.free();
  }
}

function mix(hash: number): number {
  let h = hash;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}
