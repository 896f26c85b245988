import type { CsvMemory } from '../csv/csv-memory.ts';
import {
  COLUMN_WORDS,
  FILLED,
  FIRST_MICRO,
  FIRST_SECOND,
  HOUR_SLOTS,
  KNOWN,
  LAST_MICRO,
  LAST_SECOND,
  MODE,
} from '../csv/layout.ts';
import { DAY, FIELDS, HOUR, MINUTE, MONTH, SECOND, setCivil, YEAR } from '../types/calendar.ts';
import type { Evidence } from '../types/evidence.ts';
import type { Zone } from '../types/zone.ts';

const HOUR_SECONDS = 3_600;

/**
 * What SIMD and TypeScript collect of columns together, in the memory that holds the rows: number of filled cells,
 * first and last time. Beside it what SIMD has to know: modes, evidence that is not new, hours that the zone has once.
 */
export class ColumnWords {
  readonly #memory: CsvMemory;
  readonly #zone: Zone | undefined;

  /** `modes` has the mode of each column. */
  constructor(memory: CsvMemory, modes: Uint8Array, zone: Zone | undefined) {
    this.#memory = memory;
    this.#zone = zone;
    // No hour has these last bits in this slot.
    for (let slot = 0; slot < HOUR_SLOTS; slot++) memory.hours[slot] = ~slot;
    memory.columns.fill(0, 0, modes.length * COLUMN_WORDS);
    modes.forEach((mode, column) => {
      this.#set(column, MODE, mode);
      memory.columnDoubles[doubleAt(column, FIRST_SECOND)] = Number.POSITIVE_INFINITY;
      memory.columnDoubles[doubleAt(column, LAST_SECOND)] = Number.NEGATIVE_INFINITY;
    });
  }

  /** Processes cells [k, used) while they are plain and of a known class; returns the index of the first other. */
  observe(k: number, used: number): number {
    return this.#memory.functions.observeCells(k, used, this.#zone !== undefined);
  }

  countFilled(column: number): void {
    this.#memory.columns[column * COLUMN_WORDS + FILLED]++;
  }

  filled(column: number): number {
    return this.#memory.columns[column * COLUMN_WORDS + FILLED];
  }

  mode(column: number): number {
    return this.#memory.columns[column * COLUMN_WORDS + MODE];
  }

  /** Sets the classes of cells that are known of a column, and its mode. */
  setKnown(column: number, known: Evidence, mode: number): void {
    this.#set(column, KNOWN, known);
    this.#set(column, MODE, mode);
  }

  /** Caches the hour of a wall-clock time, unless the zone skips or repeats a part of it. */
  cacheHour(seconds: number): void {
    if (!this.#zone?.hasHourOnce(seconds)) return;
    const hour = Math.floor(seconds / HOUR_SECONDS);
    this.#memory.hours[hour & (HOUR_SLOTS - 1)] = hour;
  }

  /** Extends the range of a column to a time of the wall clock. */
  addTime(column: number, second: number, micro: number): void {
    const { columns, columnDoubles } = this.#memory;
    const first = columnDoubles[doubleAt(column, FIRST_SECOND)];
    if (second < first || (second === first && micro < columns[column * COLUMN_WORDS + FIRST_MICRO])) {
      columnDoubles[doubleAt(column, FIRST_SECOND)] = second;
      this.#set(column, FIRST_MICRO, micro);
    }
    const last = columnDoubles[doubleAt(column, LAST_SECOND)];
    if (second > last || (second === last && micro > columns[column * COLUMN_WORDS + LAST_MICRO])) {
      columnDoubles[doubleAt(column, LAST_SECOND)] = second;
      this.#set(column, LAST_MICRO, micro);
    }
  }

  /** First and last datetime of a column as ISO texts without a zone; undefined if it had none. */
  range(column: number): { readonly first: string; readonly last: string } | undefined {
    const { columns, columnDoubles } = this.#memory;
    const first = columnDoubles[doubleAt(column, FIRST_SECOND)];
    if (first === Number.POSITIVE_INFINITY) return undefined;
    return {
      first: isoText(first, columns[column * COLUMN_WORDS + FIRST_MICRO]),
      last: isoText(columnDoubles[doubleAt(column, LAST_SECOND)], columns[column * COLUMN_WORDS + LAST_MICRO]),
    };
  }

  #set(column: number, word: number, value: number): void {
    this.#memory.columns[column * COLUMN_WORDS + word] = value;
  }
}

/** Index of a double that begins with this word of a column. */
const doubleAt = (column: number, word: number): number => (column * COLUMN_WORDS + word) >> 1;

function isoText(seconds: number, micros: number): string {
  setCivil(seconds);
  const day = [pad(FIELDS[YEAR], 4), pad(FIELDS[MONTH], 2), pad(FIELDS[DAY], 2)].join('-');
  const clock = [pad(FIELDS[HOUR], 2), pad(FIELDS[MINUTE], 2), pad(FIELDS[SECOND], 2)].join(':');
  const fraction = pad(micros, 6);
  return `${day}T${clock}.${fraction.endsWith('000') ? fraction.slice(0, 3) : fraction}`;
}

function pad(value: number, width: number): string {
  return String(value).padStart(width, '0');
}
