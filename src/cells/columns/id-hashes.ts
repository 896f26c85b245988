/** Maximum number of ids (64 MiB); beyond it nothing is known about repeated ids. */
const MAX_HASHED_IDS = 1 << 23;
/** Number of hashes that there is room for at first. */
const START_CAPACITY = 1 << 16;

/**
 * The hashes of an export's ids, in the order of arrival. They are sorted at the end. That takes less time than a
 * hash table. Two different ids with the same hash count as one: then the order of rows is kept, which costs only time.
 */
export class IdHashes {
  #hashes = new Float64Array(START_CAPACITY);
  #count = 0;

  add(bytes: Uint8Array, start: number, end: number): void {
    // Two hashes of 32 bits, of which 53 bits are kept. The odd factors spread each byte over all bits.
    let high = (end - start) | 0;
    let low = 0x2c1b3c6d;
    let i = start;
    for (; i + 4 <= end; i += 4) {
      const word = bytes[i] | (bytes[i + 1] << 8) | (bytes[i + 2] << 16) | (bytes[i + 3] << 24);
      high = Math.imul(high ^ word, 0x01000193) ^ (high >>> 15);
      low = Math.imul(low + word, 0x297a2d39) ^ (low >>> 13);
    }
    for (; i < end; i++) {
      high = Math.imul(high ^ bytes[i], 0x01000193) ^ (high >>> 15);
      low = Math.imul(low + bytes[i], 0x297a2d39) ^ (low >>> 13);
    }
    if (this.#count === this.#hashes.length) this.#grow();
    // Beyond the maximum the store has no effect: a typed array has no such index.
    this.#hashes[this.#count++] = (mix(high ^ low) >>> 0) * 2 ** 21 + (mix(low) >>> 11);
  }

  /** The number of different ids, undefined if there were too many. Called at the end: it sorts the hashes. */
  distinctCount(): number | undefined {
    if (this.#count > MAX_HASHED_IDS) return undefined;
    const hashes = this.#hashes.subarray(0, this.#count);
    // The bits of positive numbers have the same order as integers, and are sorted in half the time.
    new BigUint64Array(hashes.buffer, 0, hashes.length).sort();
    return hashes.reduce((count, hash, i) => (hash === hashes[i - 1] ? count : count + 1), 0);
  }

  #grow(): void {
    const capacity = this.#hashes.length * 2;
    if (capacity > MAX_HASHED_IDS) return;
    const hashes = new Float64Array(capacity);
    hashes.set(this.#hashes);
    this.#hashes = hashes;
  }
}

/** Spreads the bits of a hash: the last steps of MurmurHash3. */
function mix(hash: number): number {
  let h = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}
