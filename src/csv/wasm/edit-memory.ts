import type { CsvMemory } from './csv-memory.ts';

/*
 * What lies in front of the rows, as positions in `CsvMemory.bytes`: tables of SHA-256 (assembly/edit.ts says what is where),
 * jobs, actions, places and scores of columns, a cache of values with their hashes, then the edited rows.
 */
const INFO_AT = 2_048;
const JOBS_AT = 4_096;
const JOB_BYTES = 16;
const ACTIONS_AT = 102_400;
const PLACES_AT = 122_880;
const INNER_AT = 1_408;
const OUTER_AT = 1_440;
const BLOCKS_AT = 1_472;
const SCORES_AT = 203_264;
/** Every column is worth the cache at first. */
const FIRST_SCORE = 128;
const CACHE_AT = 225_280;
/** Entries of the cache, and bytes of each, base 2. With more of them the memory is too large to be used again. */
const CACHE_BITS = 13;
const ENTRY_SHIFT = 7;
/** Where edited rows begin. */
export const EDITED_AT: number = CACHE_AT + 2 ** (CACHE_BITS + ENTRY_SHIFT);

export const MAX_JOBS: number = (ACTIONS_AT - JOBS_AT) / JOB_BYTES;
const BLOCK_BYTES = 64;
const INNER_PAD = 0x36;
const OUTER_PAD = 0x5c;
const ROUNDS = 64;
const STATE_WORDS = 8;

/** The functions of assembly/edit.ts, on the memory that the rows are in. Every position is one in its `bytes`. */
export class EditMemory {
  readonly #memory: CsvMemory;
  #jobs = JOBS_AT;
  #columns = 0;

  /** `key`: that of the hashes, as a block of SHA-256 (a longer one as HMAC shortens it); undefined: nothing is hashed. */
  constructor(memory: CsvMemory, key: Uint8Array | undefined) {
    this.#memory = memory;
    if (key !== undefined) this.#prepare(key);
  }

  /** Hashes that are still to be written. */
  get jobs(): number {
    return (this.#jobs - JOBS_AT) / JOB_BYTES;
  }

  /** What becomes of each column, and its place among those that stay. */
  setColumns(actions: Uint8Array, places: Int32Array): void {
    this.#columns = actions.length;
    this.#memory.bytes.set(actions, ACTIONS_AT);
    this.#memory.bytes.fill(FIRST_SCORE, SCORES_AT, SCORES_AT + this.#columns);
    const { buffer, byteOffset } = this.#memory.bytes;
    new Int32Array(buffer, byteOffset + PLACES_AT, this.#columns).set(places);
  }

  /**
   * Writes the row [start, contentEnd) to `out` and returns where it ends, without a line end; `used` are then the numbers
   * of the cells that stay. Negative for a row that TypeScript must edit. Its hashes are there after `hash`.
   */
  editRow(used: number, start: number, contentEnd: number, width: number, newWidth: number, out: number): number {
    const { base, cellsAt, functions } = this.#memory;
    const end = functions.editRow(
      base,
      cellsAt,
      used,
      start,
      contentEnd,
      width,
      base + ACTIONS_AT,
      base + PLACES_AT,
      newWidth,
      base + out,
      base + this.#jobs,
      base + INFO_AT,
    );
    if (end >= 0) this.#jobs = this.#number(INFO_AT + 4) - base;
    return end;
  }

  /** True for the list of cells that `editRow` works on: a row of very many has another. */
  has(cells: Int32Array): boolean {
    return cells === this.#memory.cells;
  }

  /** Numbers that the cells which stay take, after `editRow`. */
  get used(): number {
    return this.#number(INFO_AT);
  }

  /** Writes all hashes that are still to be written. */
  hash(): void {
    const { base, functions } = this.#memory;
    if (this.#jobs > JOBS_AT) {
      const [from, to] = [base + JOBS_AT, base + this.#jobs];
      functions.hashJobs(base, base, from, to, base + CACHE_AT, CACHE_BITS, base + SCORES_AT);
    }
    this.#jobs = JOBS_AT;
  }

  /** Leaves nothing of the key behind, nor which value has which hash. */
  release(): void {
    this.#memory.bytes.fill(0, 0, JOBS_AT);
    this.#memory.bytes.fill(0, CACHE_AT, EDITED_AT);
  }

  #number(at: number): number {
    const { bytes } = this.#memory;
    return bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24);
  }

  #prepare(key: Uint8Array): void {
    const { bytes, base, functions } = this.#memory;
    // Rows of an earlier body may lie there: they must not be taken for entries.
    bytes.fill(0, CACHE_AT, EDITED_AT);
    const words = (at: number, count: number) => new Int32Array(bytes.buffer, bytes.byteOffset + at, count);
    const primes = firstPrimes(ROUNDS);
    words(0, ROUNDS).set(primes.map((prime) => fraction(Math.cbrt(prime))));
    const initial = primes.slice(0, STATE_WORDS).map((prime) => fraction(Math.sqrt(prime)));
    for (const [isOuter, pad] of [INNER_PAD, OUTER_PAD].entries()) {
      words(isOuter === 0 ? INNER_AT : OUTER_AT, STATE_WORDS).set(initial);
      for (let i = 0; i < BLOCK_BYTES; i++) bytes[BLOCKS_AT + i] = key[i] ^ pad;
      functions.prepareKey(base, isOuter);
    }
  }
}

/** The first 32 bits behind the point: SHA-256 takes its constants from roots of primes. */
const fraction = (value: number): number => ((value % 1) * 2 ** 32) | 0;

function firstPrimes(count: number): number[] {
  const primes: number[] = [];
  for (let n = 2; primes.length < count; n++) if (primes.every((prime) => n % prime !== 0)) primes.push(n);
  return primes;
}
