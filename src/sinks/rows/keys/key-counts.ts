import { Scratch } from '../../../base/scratch.ts';

/** Share of the slots that are taken when all rows are in: probing stays short, at 15 bytes a row. */
const LOAD = 0.8;
/** Numbers per slot. */
const SLOT = 3;
const SLOT_BYTES = SLOT * Uint32Array.BYTES_PER_ELEMENT;

/** Counts the rows of each key of a window, by hash. `rows`: at most so many. */
export class KeyCounts {
  /** Two thirds of the key's hash, and the count. */
  readonly #slots: Uint32Array;
  readonly #scratch: Scratch;
  readonly #capacity: number;

  constructor(rows: number) {
    this.#capacity = Math.ceil(rows / LOAD) + 1;
    this.#scratch = new Scratch(this.#capacity * SLOT_BYTES);
    this.#slots = new Uint32Array(this.#scratch.buffer, 0, this.#capacity * SLOT);
  }

  /** Frees the hash table. */
  free(): void {
    this.#scratch.free();
  }

  /** How many rows, this one included, have had the key whose hash stands at `k`. */
  add(hashes: Uint32Array, k: number): number {
    const s = this.#find(hashes, k);
    this.#slots[s] = hashes[k + 1];
    this.#slots[s + 1] = hashes[k + 2];
    return ++this.#slots[s + 2];
  }

  /** True when a row has had it. */
  has(hashes: Uint32Array, k: number): boolean {
    return this.#slots[this.#find(hashes, k) + 2] !== 0;
  }

  /** The slot of the key, or the free one where it belongs. */
  #find(hashes: Uint32Array, k: number): number {
    const [a, b, c] = [hashes[k], hashes[k + 1], hashes[k + 2]];
    const slots = this.#slots;
    const last = (this.#capacity - 1) * SLOT;
    let s = Math.floor((a / 2 ** 32) * this.#capacity) * SLOT;
    while (slots[s + 2] !== 0 && (slots[s] !== b || slots[s + 1] !== c)) s = s === last ? 0 : s + SLOT;
    return s;
  }
}
