import { Scratch } from '../../../base/scratch.ts';

/** Ranks: no item position comes first, then the positions from 0 on; the last stands for all beyond it. */
export const NO_POSITION = 0;
export const LAST_RANK = 0xffff_fffe;
/** In place of a rank: the row has no event id and is an event by itself. */
export const OWN_EVENT = 0xffff_ffff;

/** Share of the slots that are taken when all rows are in: probing stays short, at 15 bytes a row. */
const LOAD = 0.8;
/** Numbers per slot. */
const SLOT = 3;
const SLOT_BYTES = SLOT * Uint32Array.BYTES_PER_ELEMENT;
/** Ranks from here on count as this one. */
const MAX_RANK = 0xffff;

/** For each event of a window the row that stands for it: the one of the lowest item position, the first of equals. */
export class EventRows {
  /** Per row of the window: 1 where it stands for its event. */
  readonly chosen: Uint8Array;
  /** Half of the event's hash; a quarter of it beside the rank of the row chosen; that row, from 1. */
  readonly #slots: Uint32Array;
  readonly #scratch: Scratch;
  readonly #capacity: number;

  /** `rows`: of the window; at most 2^32 - 2. */
  constructor(rows: number) {
    this.chosen = new Uint8Array(rows);
    this.#capacity = Math.ceil(rows / LOAD) + 1;
    this.#scratch = new Scratch(this.#capacity * SLOT_BYTES);
    this.#slots = new Uint32Array(this.#scratch.buffer, 0, this.#capacity * SLOT);
  }

  /** Frees the hash table. */
  free(): void {
    this.#scratch.free();
  }

  /** Takes in row `row`; at `k` of `hashes` stand two numbers of its event's hash and its rank among the rows of that. */
  add(hashes: Uint32Array, k: number, row: number): void {
    const [high, low, position] = [hashes[k], hashes[k + 1], hashes[k + 2]];
    if (position === OWN_EVENT) {
      this.chosen[row] = 1;
      return;
    }
    const s = this.#find(high, low);
    const rank = Math.min(position, MAX_RANK);
    if (this.#slots[s + 2] !== 0) {
      if (rank >= (this.#slots[s + 1] & MAX_RANK)) return;
      this.chosen[this.#slots[s + 2] - 1] = 0;
    }
    this.#slots[s] = low;
    this.#slots[s + 1] = (high << 16) | rank;
    this.#slots[s + 2] = row + 1;
    this.chosen[row] = 1;
  }

  /** The slot of the event, or the free one where it belongs: linear probing from the first bits of its hash. */
  #find(high: number, low: number): number {
    const slots = this.#slots;
    const last = (this.#capacity - 1) * SLOT;
    let s = Math.floor((high / 2 ** 32) * this.#capacity) * SLOT;
    while (slots[s + 2] !== 0 && (slots[s] !== low || slots[s + 1] >>> 16 !== (high & 0xffff))) {
      s = s === last ? 0 : s + SLOT;
    }
    return s;
  }
}
