import { HASH_BYTES } from '../csv/row-editor.ts';
import type { HashKey } from './hash-key.ts';

/** Values remembered with their hashes. A power of two: 128 bytes each. */
const SLOTS = 1 << 16;
/** Longer values are hashed each time. */
const LONGEST = 64;
/** Of FNV-1a. */
const OFFSET_BASIS = 0x811c9dc5;
const PRIME = 0x01000193;

/**
 * Writes hashes of values, and remembers them: events of one person come together, and a hash costs as much as reading
 * a row. Memory: 8 MiB.
 */
export class HashWriter {
  readonly #key: HashKey;
  readonly #lengths = new Uint8Array(SLOTS);
  readonly #values = new Uint8Array(SLOTS * LONGEST);
  readonly #hashes = new Uint8Array(SLOTS * HASH_BYTES);

  constructor(key: HashKey) {
    this.#key = key;
  }

  /** Writes the hash of [start, end) to `out` at `at`. */
  readonly write = (b: Uint8Array, start: number, end: number, out: Uint8Array, at: number): void => {
    const length = end - start;
    if (length > LONGEST) {
      copy(Buffer.from(this.#hashOf(b, start, end), 'latin1'), 0, out, at, HASH_BYTES);
      return;
    }
    const slot = slotOf(b, start, end);
    const hash = slot * HASH_BYTES;
    if (!this.#knows(slot, b, start, length)) this.#remember(slot, b, start, end);
    copy(this.#hashes, hash, out, at, HASH_BYTES);
  };

  #hashOf(b: Uint8Array, start: number, end: number): string {
    return this.#key.hashOf(b.subarray(start, end));
  }

  #knows(slot: number, b: Uint8Array, start: number, length: number): boolean {
    if (this.#lengths[slot] !== length) return false;
    const values = this.#values;
    const from = slot * LONGEST;
    for (let i = 0; i < length; i++) if (values[from + i] !== b[start + i]) return false;
    return true;
  }

  #remember(slot: number, b: Uint8Array, start: number, end: number): void {
    const text = this.#hashOf(b, start, end);
    const hash = slot * HASH_BYTES;
    for (let i = 0; i < HASH_BYTES; i++) this.#hashes[hash + i] = text.charCodeAt(i);
    copy(b, start, this.#values, slot * LONGEST, end - start);
    this.#lengths[slot] = end - start;
  }
}

function slotOf(b: Uint8Array, start: number, end: number): number {
  let hash = OFFSET_BASIS;
  for (let i = start; i < end; i++) hash = Math.imul(hash ^ b[i], PRIME);
  return (hash ^ (hash >>> 16)) & (SLOTS - 1);
}

function copy(from: Uint8Array, start: number, to: Uint8Array, at: number, length: number): void {
  for (let i = 0; i < length; i++) to[at + i] = from[start + i];
}
