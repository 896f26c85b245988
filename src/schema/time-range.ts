import {
  civilSeconds,
  DAY,
  FIELDS,
  HOUR,
  MICROS,
  MINUTE,
  MONTH,
  OFFSET,
  SECOND,
  setCivil,
  YEAR,
} from '../types/calendar.ts';
import { DATETIME_OFFSET, type Evidence } from '../types/evidence.ts';
import type { Zone } from '../types/zone.ts';

const MICROS_PER_SECOND = 1_000_000;

/** First and last datetime of each column, as wall-clock seconds and micros. */
export class TimeRanges {
  readonly #firstSeconds: Float64Array;
  readonly #firstMicros: Int32Array;
  readonly #lastSeconds: Float64Array;
  readonly #lastMicros: Int32Array;

  constructor(columns: number) {
    this.#firstSeconds = new Float64Array(columns).fill(Number.POSITIVE_INFINITY);
    this.#firstMicros = new Int32Array(columns);
    this.#lastSeconds = new Float64Array(columns).fill(Number.NEGATIVE_INFINITY);
    this.#lastMicros = new Int32Array(columns);
  }

  /** Extends the range of a column to the date or datetime that FIELDS holds. */
  add(column: number, form: Evidence, zone: Zone | undefined): void {
    let seconds = civilSeconds();
    if ((form & DATETIME_OFFSET) !== 0 && zone !== undefined) {
      const utc = seconds - FIELDS[OFFSET];
      seconds = utc + zone.offsetAt(utc);
    }
    this.include(column, seconds, FIELDS[MICROS]);
  }

  /** Extends the range of a column to a time of the wall clock. */
  include(column: number, seconds: number, micros: number): void {
    const first = this.#firstSeconds[column];
    if (seconds < first || (seconds === first && micros < this.#firstMicros[column])) {
      this.#firstSeconds[column] = seconds;
      this.#firstMicros[column] = micros;
    }
    const last = this.#lastSeconds[column];
    if (seconds > last || (seconds === last && micros > this.#lastMicros[column])) {
      this.#lastSeconds[column] = seconds;
      this.#lastMicros[column] = micros;
    }
  }

  /** First and last datetime of a column as ISO texts without a zone; undefined if it had none. */
  range(column: number): { readonly first: string; readonly last: string } | undefined {
    if (this.#firstSeconds[column] > this.#lastSeconds[column]) return undefined;
    return {
      first: isoText(this.#firstSeconds[column], this.#firstMicros[column]),
      last: isoText(this.#lastSeconds[column], this.#lastMicros[column]),
    };
  }
}

function isoText(seconds: number, micros: number): string {
  setCivil(seconds);
  const day = [pad(FIELDS[YEAR], 4), pad(FIELDS[MONTH], 2), pad(FIELDS[DAY], 2)].join('-');
  const clock = [pad(FIELDS[HOUR], 2), pad(FIELDS[MINUTE], 2), pad(FIELDS[SECOND], 2)].join(':');
  const fraction = pad(micros % MICROS_PER_SECOND, 6);
  return `${day}T${clock}.${fraction.endsWith('000') ? fraction.slice(0, 3) : fraction}`;
}

function pad(value: number, width: number): string {
  return String(value).padStart(width, '0');
}
