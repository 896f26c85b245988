/** Decodes names; one that begins with U+FEFF keeps it. */
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
/** Number of last bytes that are hashed: names differ there more than in their first bytes. */
const HASHED_BYTES = 6;

/** The distinct texts of a column with few of them, found without making a string for each cell. */
export class NameSet {
  readonly #most: number;
  readonly #known: Uint8Array<ArrayBuffer>[] = [];
  readonly #byHash = new Map<number, number[]>();
  #last = new Uint8Array(0);

  /** `most` is the maximum number of names that are kept; further names are left out. */
  constructor(most: number) {
    this.#most = most;
  }

  add(bytes: Uint8Array, start: number, end: number): void {
    if (same(this.#last, bytes, start, end)) return;
    let hash = end - start;
    for (let i = Math.max(start, end - HASHED_BYTES); i < end; i++) hash = (Math.imul(hash, 31) + bytes[i]) | 0;
    const bucket = this.#byHash.get(hash);
    if (bucket !== undefined && this.#isKnown(bucket, bytes, start, end)) return;
    if (this.#known.length < this.#most) this.#keep(bytes.slice(start, end), hash, bucket);
  }

  names(): string[] {
    return this.#known.map((bytes) => decoder.decode(bytes)).sort();
  }

  #isKnown(bucket: readonly number[], bytes: Uint8Array, start: number, end: number): boolean {
    for (let i = 0; i < bucket.length; i++) {
      if (!same(this.#known[bucket[i]], bytes, start, end)) continue;
      this.#last = this.#known[bucket[i]];
      return true;
    }
    return false;
  }

  #keep(name: Uint8Array<ArrayBuffer>, hash: number, bucket: number[] | undefined): void {
    if (bucket === undefined) this.#byHash.set(hash, [this.#known.length]);
    else bucket.push(this.#known.length);
    this.#known.push(name);
    this.#last = name;
  }
}

function same(name: Uint8Array, bytes: Uint8Array, start: number, end: number): boolean {
  if (name.length !== end - start) return false;
  for (let i = 0; i < name.length; i++) if (name[i] !== bytes[start + i]) return false;
  return true;
}
