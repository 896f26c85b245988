import type { CsvMemory } from '../csv/csv-memory.ts';
import { COLUMN_WORDS_SHIFT, FILLED, FIRST, HOUR_SLOTS, KNOWN, LISTED, MODE } from '../csv/layout.ts';
import { civilSeconds } from '../types/calendar.ts';
import type { Evidence } from '../types/evidence.ts';
import type { Zone } from '../types/zone.ts';
import type { TimeRanges } from './time-range.ts';

const SLOT_WORDS = 2;
const HOUR_SECONDS = 3_600;
const WORD_BYTES = 4;
/** Index of the first column, behind the cached hours. */
const FIRST_COLUMN = HOUR_SLOTS * SLOT_WORDS;
const COLUMN_WORDS = 1 << COLUMN_WORDS_SHIFT;
/** Number of times of a column, from `FIRST` on. */
const TIMES = 2;

const NEVER_FIRST = 2n ** 63n - 1n;
const NEVER_LAST = -(2n ** 63n);
const MILLION = 1_000_000n;

/** The part of `Columns` that SIMD does: plain cells of known classes are counted, with their range of times. */
export class PlainColumns {
  readonly #memory: CsvMemory;
  readonly #count: number;
  /** Address of the cached hours; 0 without a zone. */
  readonly #hours: number;

  private constructor(memory: CsvMemory, modes: Uint8Array, zone: Zone | undefined) {
    this.#memory = memory;
    this.#count = modes.length;
    this.#hours = zone === undefined ? 0 : memory.observedAt;
    const words = memory.observed;
    clearHours(words);
    words.fill(0, FIRST_COLUMN, FIRST_COLUMN + this.#count * COLUMN_WORDS);
    modes.forEach((mode, column) => {
      this.#set(column, MODE, mode);
      const times = this.#times(column);
      times[0] = NEVER_FIRST;
      times[1] = NEVER_LAST;
    });
  }

  /** Opens the columns in a memory; undefined if it has no room for so many. `modes` has the mode of each column. */
  static open(memory: CsvMemory, modes: Uint8Array, zone: Zone | undefined): PlainColumns | undefined {
    const room = (memory.observed.length - FIRST_COLUMN) / COLUMN_WORDS;
    return modes.length > room ? undefined : new PlainColumns(memory, modes, zone);
  }

  /** True if `observe` can read cells from this list. */
  ownsCells(cells: Int32Array): boolean {
    return cells === this.#memory.cells;
  }

  /** Processes cells [k, used) while they are plain and of a known class; returns the index of the first other. */
  observe(k: number, used: number): number {
    const { base, cellsAt, observedAt, functions } = this.#memory;
    return functions.observeCells(base, cellsAt, k, used, observedAt + FIRST_COLUMN * WORD_BYTES, this.#hours);
  }

  /** Number of cells that the last `observe` passed and that `Columns` must examine as well. */
  get listed(): number {
    return this.#memory.info[LISTED];
  }

  listedCell(i: number): number {
    return this.#memory.info[LISTED + 1 + i];
  }

  /** Sets the classes of cells that are known of a column. */
  setKnown(column: number, known: Evidence, mode: number): void {
    this.#set(column, KNOWN, known);
    this.#set(column, MODE, mode);
  }

  /** Caches the zone's offset in the wall-clock hour of FIELDS, unless a part of that hour is skipped or repeated. */
  cacheHour(zone: Zone): void {
    const seconds = civilSeconds();
    const offset = zone.offsetOfHour(seconds);
    if (offset === undefined) return;
    const hour = Math.floor(seconds / HOUR_SECONDS);
    this.#memory.observed.set([hour, offset], (hour & (HOUR_SLOTS - 1)) * SLOT_WORDS);
  }

  /** Adds the results, the filled cells of each column and its first and last time. The memory is not used after it. */
  addTo(filled: Float64Array, ranges: TimeRanges): void {
    for (let column = 0; column < this.#count; column++) {
      filled[column] += this.#memory.observed[FIRST_COLUMN + column * COLUMN_WORDS + FILLED];
      const [first, last] = this.#times(column);
      if (first > last) continue;
      for (const time of [first, last]) {
        const micros = ((time % MILLION) + MILLION) % MILLION;
        ranges.include(column, Number((time - micros) / MILLION), Number(micros));
      }
    }
  }

  #set(column: number, word: number, value: number): void {
    this.#memory.observed[FIRST_COLUMN + column * COLUMN_WORDS + word] = value;
  }

  /** First and last time of a column. */
  #times(column: number): BigInt64Array {
    const { buffer, byteOffset } = this.#memory.observed;
    return new BigInt64Array(buffer, byteOffset + (FIRST_COLUMN + column * COLUMN_WORDS + FIRST) * WORD_BYTES, TIMES);
  }
}

/** Empties the cache: no hour has these last bits in this slot. */
function clearHours(words: Int32Array): void {
  for (let slot = 0; slot < HOUR_SLOTS; slot++) words[slot * SLOT_WORDS] = ~slot;
}
