import { COLUMNS_MODULE } from '../../../csv/wasm/columns-module.ts';
import { CsvMemory } from '../../../csv/wasm/csv-memory.ts';
import { forgetHours, KNOWN_HOURS_BYTES, learnHour } from '../../../types/known-hours.ts';
import type { Zone } from '../../../types/zone.ts';
import { BLOCK_MARGIN, type RowMemory, readBlock } from '../../rows/block-memory.ts';

type AddCells = (
  base: number,
  cells: number,
  k: number,
  used: number,
  row: number,
  ways: number,
  states: number,
  hours: number,
) => number;
type AddText = (base: number, state: number, row: number, from: number, length: number) => number;

/** The functions of assembly/columns.ts. */
interface ColumnFunctions {
  readonly addCells: AddCells;
  readonly addText: AddText;
}

/*
 * The state of a column, as assembly/columns.ts knows it: positions of what it consists of, then numbers. `END`: bytes of
 * text or elements so far; `ROOM`: bytes that texts may take; `ENDED`: rows whose end is known; `FILLED`: values.
 */
export const BITS = 0;
export const VALUES = 1;
export const OFFSETS = 2;
export const BYTES = 3;
export const END = 4;
export const ROOM = 5;
export const ENDED = 6;
export const FILLED = 7;
export const CODES = 8;
const STATE_WORDS = CODES + 1;

/** What a vector may touch behind the bytes of a text. */
export const TEXT_MARGIN = 16;
/** Of the known texts of a dictionary: position, length and code each. */
export const CODE_SLOTS = 64;
export const CODE_WORDS = 3;

const WORD_BYTES = 4;
const ALIGNED = 8;
const FIRST_BYTES = 1 << 20;
const FIRST_BLOCK_BYTES = 1 << 19;

/**
 * One memory for the rows that are read and the columns that they become, so that SIMD can work on both. Positions stay
 * when it grows, which every `allocate` may cause; `bytes`, `words` and `doubles` are then replaced.
 */
export class ColumnMemory implements RowMemory {
  readonly simd: CsvMemory | undefined;
  bytes: Uint8Array<ArrayBuffer>;
  words = new Int32Array(0);
  doubles = new Float64Array(0);
  /** Where the block starts. */
  start = 0;
  #blockRoom = 0;
  #used = 0;
  #ways = 0;
  #states = 0;
  #columns = 0;
  /** Where the hours that are known of the zone are; undefined where there is none. */
  #hours: number | undefined;
  readonly #functions: ColumnFunctions | undefined;

  /** `simd`: undefined for a memory on the heap, in which TypeScript does everything. */
  constructor(simd: CsvMemory | undefined) {
    this.simd = simd;
    this.bytes = simd?.bytes ?? new Uint8Array(FIRST_BYTES);
    this.#functions = simd?.instantiate('columns', COLUMNS_MODULE) as ColumnFunctions | undefined;
    this.#renew();
  }

  /** A memory with SIMD where there is any. */
  static open(): ColumnMemory {
    return new ColumnMemory(CsvMemory.open(FIRST_BYTES));
  }

  /** Returns the position of so many zeroed bytes, a multiple of eight. They are kept until `clear`. */
  allocate(size: number): number {
    const at = Math.ceil(this.#used / ALIGNED) * ALIGNED;
    this.#used = at + size;
    if (this.#used + BLOCK_MARGIN > this.bytes.length) this.#grow(this.#used + BLOCK_MARGIN);
    this.bytes.fill(0, at, this.#used);
    return at;
  }

  /** Returns the state of a new column: the index of its first word. */
  newState(): number {
    return this.allocate(STATE_WORDS * WORD_BYTES) / WORD_BYTES;
  }

  /** Forgets everything that was allocated. */
  clear(): void {
    this.#used = 0;
    this.#blockRoom = 0;
    this.#columns = 0;
    this.#hours = undefined;
  }

  /** Takes in the hour of a wall-clock time (seconds from 1970), in the zone of all columns. */
  learnHour(zone: Zone, seconds: number): void {
    // Stryker disable next-line ConditionalExpression,EqualityOperator: what SIMD does not know of, TypeScript works out
    if (this.#hours !== undefined) learnHour(this.words, this.#hours / WORD_BYTES, zone, seconds);
  }

  read(file: number, from: number, to: number): number {
    const size = to - from + BLOCK_MARGIN;
    if (size > this.#blockRoom) {
      this.#blockRoom = Math.max(FIRST_BLOCK_BYTES, size, this.#blockRoom * 2);
      this.start = this.allocate(this.#blockRoom);
    }
    return readBlock(file, this.bytes, this.start, from, to);
  }

  /**
   * Sets how the cells of each column are written from now on, and into which one of the states, for `addCells`. `isZoned`:
   * their times are instants.
   */
  setColumns(ways: Uint8Array, states: Int32Array, isZoned: boolean): void {
    if (isZoned && this.#hours === undefined) {
      this.#hours = this.allocate(KNOWN_HOURS_BYTES);
      forgetHours(this.words, this.#hours / WORD_BYTES);
    }
    if (ways.length > this.#columns) {
      this.#columns = ways.length;
      this.#ways = this.allocate(ways.length);
      this.#states = this.allocate(states.byteLength);
    }
    this.bytes.set(ways, this.#ways);
    this.words.set(
      states.map((state) => state * WORD_BYTES),
      this.#states / WORD_BYTES,
    );
  }

  /** True where `addCells` can read cells from this list. */
  lists(cells: Int32Array): boolean {
    return cells === this.simd?.cells;
  }

  /** Writes cells [k, used) of the list as values of row `row` while they are plain; returns the first that is not. */
  addCells(k: number, used: number, row: number): number {
    const { simd } = this;
    if (simd === undefined || this.#functions === undefined) return k;
    const { base } = simd;
    const [ways, states] = [base + this.#ways, base + this.#states];
    const hours = this.#hours === undefined ? 0 : base + this.#hours;
    return this.#functions.addCells(base, simd.cellsAt, k, used, row, ways, states, hours);
  }

  /** Writes the text [start, end) of this memory as the value of a row; false where TypeScript must do it. */
  addText(state: number, row: number, start: number, end: number): boolean {
    const { simd } = this;
    if (simd === undefined || this.#functions === undefined) return false;
    const { base } = simd;
    return this.#functions.addText(base, base + state * WORD_BYTES, row, base + start, end - start) !== 0;
  }

  #grow(size: number): void {
    const wanted = Math.max(size, this.bytes.length * 2);
    if (this.simd !== undefined) {
      this.simd.grow(wanted);
      this.bytes = this.simd.bytes;
    } else {
      const larger = new Uint8Array(Math.ceil(wanted / ALIGNED) * ALIGNED);
      larger.set(this.bytes);
      this.bytes = larger;
    }
    this.#renew();
  }

  #renew(): void {
    const { buffer, byteOffset, byteLength } = this.bytes;
    this.words = new Int32Array(buffer, byteOffset, Math.floor(byteLength / WORD_BYTES));
    this.doubles = new Float64Array(buffer, byteOffset, Math.floor(byteLength / ALIGNED));
  }
}
