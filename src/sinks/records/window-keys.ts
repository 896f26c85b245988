import { Scratch } from '../../base/scratch.ts';

/** Words of a hash. */
const HASH_WORDS = 3;
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
class HashTable {
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

/** What the rows of one block hash to. */
export interface HashedRows {
  readonly rows: number;
  /** `ROW_WORDS` numbers per row, from byte 0 on: the hash of its event, its rank within that, the hash of its key. */
  readonly buffer: ArrayBuffer;
  /** Ids that end in `#` and a number, as generated keys of repeated rows do. */
  readonly numbered: readonly string[];
}

export const RANK_AT = HASH_WORDS;
export const KEY_AT = RANK_AT + 1;
export const ROW_WORDS = KEY_AT + HASH_WORDS;

/** Ranks: no item position comes first, then the positions from 0 on; the last stands for all beyond it. */
export const NO_POSITION = 0;
export const LAST_RANK = 0xfffe;
/** In place of a rank: the row has no event id and is an event by itself. */
export const OWN_EVENT = 0xffff;

/** What only the whole window tells about the keys of a block. */
export interface BlockKeys {
  /** Per row: 1 where `event_logs` has the row for its event. Absent: it has none of them. */
  readonly events?: Uint8Array | undefined;
  /** Per row: how many rows of the window, it included, have its key. Absent: 1 everywhere. */
  readonly ordinals?: Uint32Array | undefined;
  /** Ids of the form `base#n` that the window itself holds: base → every n, rising. No generated key may use them. */
  readonly reserved?: ReadonlyMap<string, readonly number[]> | undefined;
}

const NUMBERED = /^(.*)#([1-9][0-9]{0,17})$/s;

/** The number in the key of the `ordinal`-th row of a base id; `reserved` numbers are skipped. */
export function keyNumber(ordinal: number, reserved: readonly number[] | undefined): number {
  let number = ordinal;
  for (const one of reserved ?? []) if (one <= number) number++;
  return number;
}

/** For each event of a window the row that stands for it: the one of the lowest item position, the first of equals. */
class EventRows {
  /** Per row of the window: 1 where it stands for its event. */
  readonly chosen: Uint8Array;
  /** By event the row that is chosen, from 1. */
  readonly #table: HashTable;
  /** Per row: its rank. */
  readonly #ranks: Uint16Array;

  /** `rows`: of the window; at most 2^32 - 2. */
  constructor(rows: number) {
    this.chosen = new Uint8Array(rows);
    this.#ranks = new Uint16Array(rows);
    this.#table = new HashTable(rows);
  }

  add(words: Uint32Array, k: number, row: number): void {
    const rank = words[k + RANK_AT];
    if (rank !== OWN_EVENT) {
      const { slots } = this.#table;
      const s = this.#table.find(words, k);
      const before = slots[s + 2] - 1;
      if (before >= 0) {
        if (rank >= this.#ranks[before]) return;
        this.chosen[before] = 0;
      }
      slots[s + 2] = row + 1;
      this.#ranks[row] = rank;
    }
    this.chosen[row] = 1;
  }

  free(): void {
    this.#table.free();
  }
}

/** Collects the hashes of a window, block by block in order, and tells the keys of each. */
export class WindowKeys {
  readonly #ordinals = new Map<number, Uint32Array>();
  readonly #reserved = new Map<string, number[]>();
  readonly #events: EventRows | undefined;
  /** By key how many rows have it. */
  readonly #keys: HashTable | undefined;
  readonly #starts: number[] = [];
  #row = 0;

  constructor(rows: number, needs: { readonly events: boolean; readonly keys: boolean }) {
    this.#events = needs.events ? new EventRows(rows) : undefined;
    this.#keys = needs.keys ? new HashTable(rows) : undefined;
  }

  /** Ends collecting and frees the hash tables. */
  finish(): void {
    this.#events?.free();
    this.#keys?.free();
  }

  of(block: number): BlockKeys {
    const ordinals = this.#ordinals.get(block);
    return {
      events: this.#events?.chosen.slice(this.#starts[block], this.#starts[block + 1]),
      ordinals,
      reserved: ordinals !== undefined && this.#reserved.size > 0 ? this.#reserved : undefined,
    };
  }

  add({ rows, buffer, numbered }: HashedRows): void {
    const words = new Uint32Array(buffer, 0, rows * ROW_WORDS);
    const keys = this.#keys;
    this.#starts.push(this.#row);
    for (let i = 0; i < rows; i++) {
      const k = i * ROW_WORDS;
      this.#events?.add(words, k, this.#row + i);
      if (keys !== undefined) this.#setOrdinal(++keys.slots[keys.find(words, k + KEY_AT) + 2], i, rows);
    }
    if (keys !== undefined) for (const id of numbered) this.#reserve(id);
    this.#row += rows;
  }

  #reserve(id: string): void {
    const [, base, digits] = NUMBERED.exec(id) ?? [];
    const number = Number(digits);
    if (base === undefined || number < 2) return;
    const numbers = this.#reserved.get(base) ?? [];
    if (!numbers.includes(number))
      this.#reserved.set(
        base,
        [...numbers, number].sort((a, b) => a - b),
      );
  }

  #setOrdinal(ordinal: number, row: number, rows: number): void {
    if (ordinal === 1) return;
    const block = this.#starts.length - 1;
    let ordinals = this.#ordinals.get(block);
    if (ordinals === undefined) {
      ordinals = new Uint32Array(rows).fill(1);
      this.#ordinals.set(block, ordinals);
    }
    ordinals[row] = ordinal;
  }
}
