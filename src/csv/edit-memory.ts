import type { CsvMemory } from './csv-memory.ts';
import {
  ACTIONS_AT,
  BLOCK_BYTES,
  BLOCKS_AT,
  INNER_AT,
  JOB_BYTES,
  JOBS_AT,
  JOBS_END,
  OUTER_AT,
  POSITIONS_AT,
  USED,
} from './layout.ts';

/** Maximum number of hashes that wait for `hash`. */
export const MAX_JOBS: number = (ACTIONS_AT - JOBS_AT) / JOB_BYTES;
const INNER_PAD = 0x36;
const OUTER_PAD = 0x5c;
const ROUNDS = 64;
const STATE_WORDS = 8;

/** The functions of assembly/edit.ts on the memory that holds the rows. Every position is an index in its `bytes`. */
export class EditMemory {
  readonly #memory: CsvMemory;

  /** `key`: the key of the hashes as a block of SHA-256, made as HMAC does; undefined if nothing is hashed. */
  constructor(memory: CsvMemory, key: Uint8Array | undefined) {
    this.#memory = memory;
    memory.info[JOBS_END] = JOBS_AT;
    if (key !== undefined) this.#prepare(key);
  }

  /** Number of hashes that are still to be written. */
  get jobs(): number {
    return (this.#memory.info[JOBS_END] - JOBS_AT) / JOB_BYTES;
  }

  /** Sets the action for each column, and its position among the columns that stay. */
  setColumns(actions: Uint8Array, positions: Int32Array): void {
    this.#memory.bytes.set(actions, ACTIONS_AT);
    this.#words(POSITIONS_AT, positions.length).set(positions);
  }

  /**
   * Writes the row [start, contentEnd) to `out`; returns the index behind it, without a line end. `used` is then the
   * number of entries of the cells that stay. Returns a negative number for a row that TypeScript must edit. The hashes
   * are only there after `hash`.
   */
  editRow(used: number, start: number, contentEnd: number, width: number, newWidth: number, out: number): number {
    const { base, cellsAt, functions } = this.#memory;
    return functions.editRow(base, cellsAt, used, start, contentEnd, width, newWidth, base + out);
  }

  /** True for the list of cells that `editRow` works on; a row of very many cells has another list. */
  ownsCells(cells: Int32Array): boolean {
    return cells === this.#memory.cells;
  }

  /** Number of entries of the cells that stay, after `editRow`. */
  get used(): number {
    return this.#memory.info[USED];
  }

  /** Writes all hashes that are still missing. */
  hash(): void {
    this.#memory.functions.hashJobs(this.#memory.base);
  }

  /** Erases the key. */
  release(): void {
    this.#memory.bytes.fill(0, 0, JOBS_AT);
  }

  #prepare(key: Uint8Array): void {
    const { bytes, base, functions } = this.#memory;
    const primes = firstPrimes(ROUNDS);
    this.#words(0, ROUNDS).set(primes.map((prime) => fraction(Math.cbrt(prime))));
    const initial = primes.slice(0, STATE_WORDS).map((prime) => fraction(Math.sqrt(prime)));
    for (const [isOuter, pad] of [INNER_PAD, OUTER_PAD].entries()) {
      this.#words(isOuter === 0 ? INNER_AT : OUTER_AT, STATE_WORDS).set(initial);
      for (let i = 0; i < BLOCK_BYTES; i++) bytes[BLOCKS_AT + i] = key[i] ^ pad;
      functions.prepareKey(base, isOuter);
    }
  }

  #words(index: number, count: number): Int32Array {
    const { buffer, byteOffset } = this.#memory.bytes;
    return new Int32Array(buffer, byteOffset + index, count);
  }
}

/** The first 32 bits of the fraction of a number; the constants of SHA-256 are such bits of roots of primes. */
const fraction = (value: number): number => ((value % 1) * 2 ** 32) | 0;

function firstPrimes(count: number): number[] {
  const primes: number[] = [];
  for (let number = 2; primes.length < count; number++) {
    if (primes.every((prime) => number % prime !== 0)) primes.push(number);
  }
  return primes;
}
