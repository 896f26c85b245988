import { Scratch } from '../../base/scratch.ts';

/** Words of a hash. */
export const HASH_WORDS = 3;
/** Where `hashBytes` leaves them: one shared array, so that no row costs an object. */
export const WORDS = new Uint32Array(HASH_WORDS);

/** Hashes [start, end) to 96 bits, well mixed: three lanes over the bytes, each finished with the others. */
export function hashBytes(b: Uint8Array, start: number, end: number): void {
  let x = 0x811c9dc5 ^ (end - start);
  let y = 0x9e3779b9;
  let z = 0x85ebca77;
  for (let i = start; i < end; i++) {
    const c = b[i];
    x = Math.imul(x ^ c, 0x01000193);
    y = Math.imul(y + c, 0x2c1b3c6d);
    y ^= y >>> 15;
    z = (Math.imul(z, 0x297a2d39) + c) ^ (z >>> 13);
  }
  x = mix(x ^ Math.imul(y, 0x27d4eb2f) ^ z);
  y = mix(y + x);
  z = mix(z ^ (y + 0x165667b1));
  WORDS[0] = x;
  WORDS[1] = y;
  WORDS[2] = z;
}

function mix(word: number): number {
  let h = word;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}

/** Share of the slots that are taken when all rows are in: probing stays short, at 15 bytes a row. */
const LOAD = 0.8;
/** Numbers per slot: two words of the hash, the value. */
const SLOT = 3;

/** A number for each hash, 0 at first; outside the heap, for at most so many hashes. */
export class HashTable {
  /** The value of slot `s` is at `s + 2`: it is set by the caller, and not to 0 again. */
  readonly slots: Uint32Array;
  readonly #scratch: Scratch;
  readonly #capacity: number;

  constructor(hashes: number) {
    this.#capacity = Math.ceil(hashes / LOAD) + 1;
    this.#scratch = new Scratch(this.#capacity * SLOT * Uint32Array.BYTES_PER_ELEMENT);
    this.slots = new Uint32Array(this.#scratch.buffer, 0, this.#capacity * SLOT);
  }

  /** The slot of the hash whose words stand at `k`: linear probing from the place that its first word tells. */
  find(words: Uint32Array, k: number): number {
    const [a, b, c] = [words[k], words[k + 1], words[k + 2]];
    const { slots } = this;
    const last = (this.#capacity - 1) * SLOT;
    let s = Math.floor((a / 2 ** 32) * this.#capacity) * SLOT;
    while (slots[s + 2] !== 0 && (slots[s] !== b || slots[s + 1] !== c)) s = s === last ? 0 : s + SLOT;
    slots[s] = b;
    slots[s + 1] = c;
    return s;
  }

  /** Gives the memory back. */
  free(): void {
    this.#scratch.free();
  }
}
