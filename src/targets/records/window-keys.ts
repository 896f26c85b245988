import { Scratch } from '../../base/scratch.ts';
import { mix } from '../../cells/columns/id-hashes.ts';

const HASH_WORDS = 3;
/** The hash that `hashBytes` computes: one shared array, so that no row costs an object. */
export const HASHED_WORDS = new Uint32Array(HASH_WORDS);

/**
 * Hashes [start, end) to 96 bits. Three lanes run over the bytes, and each is mixed with the others at the end. The
 * first is FNV-1a, whose basis also has the length; the two others have no name: they begin with the golden ratio and a
 * prime of XXH32, two primes of which part them at the end, and multiply by odd numbers. A hash is never stored, so
 * that any numbers that spread the bits would do.
 */
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
  HASHED_WORDS[0] = x;
  HASHED_WORDS[1] = y;
  HASHED_WORDS[2] = z;
}

/** Share of the slots that are used when all rows are in, so that probing stays short, at 15 bytes a row. */
const LOAD = 0.8;
/** Numbers of a slot: two words of the hash, and the value. */
const SLOT = 3;

/** A table of one number for each hash, 0 at first, for at most `hashes` hashes; outside the heap. */
class HashTable {
  /** The value of slot `s` is at `s + 2`. The caller sets it to a number other than 0. */
  readonly slots: Uint32Array;
  readonly #scratch: Scratch;
  readonly #capacity: number;

  constructor(hashes: number) {
    this.#capacity = Math.ceil(hashes / LOAD) + 1;
    this.#scratch = new Scratch(this.#capacity * SLOT * Uint32Array.BYTES_PER_ELEMENT);
    this.slots = new Uint32Array(this.#scratch.buffer, 0, this.#capacity * SLOT);
  }

  /** The slot of the hash at `words[k]`: linear probing begins where the first word says; the others are stored. */
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

  free(): void {
    this.#scratch.free();
  }
}

export interface HashedRows {
  readonly rows: number;
  /** From byte 0 on `ROW_WORDS` numbers a row: the hash of its event, its rank in that, the hash of its key. */
  readonly buffer: ArrayBuffer;
  /** Ids that end in `#` and a number, as generated keys of repeated rows do. */
  readonly numbered: readonly string[];
}

export const RANK_AT = HASH_WORDS;
export const KEY_AT = RANK_AT + 1;
export const ROW_WORDS = KEY_AT + HASH_WORDS;

/** Ranks: 0 without an item position, then the positions from 0 on; the last stands for all beyond it. */
export const NO_POSITION = 0;
export const LAST_RANK = 0xfffe;
/** Replaces the rank of a row that has no event id and is an event by itself. */
export const OWN_EVENT = 0xffff;

/** The results for the rows of a block that follow from the whole window. */
export interface BlockKeys {
  /** For each row 1 if `event_logs` has it for its event; absent if `event_logs` has none of these rows. */
  readonly events?: Uint8Array | undefined;
  /** For each row its number, from 1, among the rows of the window with its key; absent if all are 1. */
  readonly ordinals?: Uint32Array | undefined;
  /** Ids `base#n` that the window itself holds, which no generated key may be: base → every n, rising. */
  readonly reserved?: ReadonlyMap<string, readonly number[]> | undefined;
}

const NUMBERED = /^(.*)#([1-9][0-9]{0,17})$/s;

/** The number in the key of the `ordinal`-th row with a base id; `reserved` numbers are skipped. */
export function keyNumber(ordinal: number, reserved: readonly number[] | undefined): number {
  let number = ordinal;
  for (const one of reserved ?? []) if (one <= number) number++;
  return number;
}

/** Chooses the row that stands for each event: the first one of the lowest item position. */
class EventRows {
  /** For each row of the window 1 if it stands for its event. */
  readonly chosen: Uint8Array;
  /** Number of the chosen row, from 1, by event. */
  readonly #table: HashTable;
  readonly #ranks: Uint16Array;

  /** `rows` is the number of rows of the window, at most 2^32 - 2. */
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

/** Collects the hashes of a window, block by block in order; then gives the results for each block. */
export class WindowKeys {
  readonly #ordinals = new Map<number, Uint32Array>();
  readonly #reserved = new Map<string, number[]>();
  readonly #events: EventRows | undefined;
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
