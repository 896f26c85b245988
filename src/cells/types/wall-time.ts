import { COLON, DOT, HYPHEN, NINE, PLUS, SPACE, UPPER_T, UPPER_Z, ZERO } from '../../base/ascii.ts';
import { type CellForms, DATE, DATETIME_DASH, DATETIME_DOT, DATETIME_OFFSET } from './forms.ts';

const MAX_OFFSET_HOURS = 15;
/** Length of `yyyy-MM-dd`, the shortest text of a date or datetime. */
const DATE_LENGTH = 10;

/**
 * A date and time by a wall clock, read from a cell or made of seconds. One object serves many cells, so that no cell
 * costs an object. Seconds count from 1970-01-01 00:00 of the same wall clock.
 */
export class WallTime {
  year = 0;
  month = 0;
  day = 0;
  hour = 0;
  minute = 0;
  second = 0;
  micros = 0;
  /** The cell's UTC offset in seconds. */
  offset = 0;
  /** The date of the last `seconds`, and when it began: the cells of an export share few dates. */
  #cachedDate = 0;
  #cachedDateStart = 0;

  get seconds(): number {
    const date = (this.year << 9) | (this.month << 5) | this.day;
    if (date !== this.#cachedDate) {
      this.#cachedDate = date;
      // `Date.UTC` takes a year before 100 for one of the last century.
      this.#cachedDateStart = new Date(0).setUTCFullYear(this.year, this.month - 1, this.day) / 1000;
    }
    return this.#cachedDateStart + this.hour * 3600 + this.minute * 60 + this.second;
  }

  /** Sets everything but micros and offset. */
  setSeconds(seconds: number): void {
    const date = new Date(seconds * 1000);
    this.year = date.getUTCFullYear();
    this.month = date.getUTCMonth() + 1;
    this.day = date.getUTCDate();
    this.hour = date.getUTCHours();
    this.minute = date.getUTCMinutes();
    this.second = date.getUTCSeconds();
  }

  /**
   * Reads a date or datetime and returns its form: DATE, DATETIME_DOT, DATETIME_DASH or DATETIME_OFFSET. 0 for another
   * text, and for a day or time that does not exist.
   */
  read(bytes: Uint8Array, start: number, end: number): CellForms {
    const length = end - start;
    const separator = bytes[start + 4];
    // Most cells end here, so that they cost little.
    if (length < DATE_LENGTH || (separator !== HYPHEN && separator !== DOT)) return 0;
    const year = twoDigits(bytes, start) * 100 + twoDigits(bytes, start + 2);
    if (year < 1) return 0;
    this.year = year;
    if (separator === DOT) return this.#readDot(bytes, start + 5, end);
    if (bytes[start + 7] !== HYPHEN) return 0;
    if (!this.#setDay(twoDigits(bytes, start + 5), twoDigits(bytes, start + 8))) return 0;
    if (length > DATE_LENGTH) return this.#readClock(bytes, start + DATE_LENGTH, end);
    this.#setClock(0, 0, 0);
    return DATE;
  }

  /** Reads `M.d H:mm`, with one or two digits for M, d and H. */
  #readDot(bytes: Uint8Array, start: number, end: number): CellForms {
    const monthEnd = start + numberLength(bytes, start);
    const dayStart = monthEnd + 1;
    const dayEnd = dayStart + numberLength(bytes, dayStart);
    const hourStart = dayEnd + 1;
    const hourEnd = hourStart + numberLength(bytes, hourStart);
    if (bytes[monthEnd] !== DOT || bytes[dayEnd] !== SPACE || bytes[hourEnd] !== COLON || hourEnd + 3 !== end) return 0;
    if (!this.#setDay(oneOrTwoDigits(bytes, start), oneOrTwoDigits(bytes, dayStart))) return 0;
    return this.#setClock(oneOrTwoDigits(bytes, hourStart), twoDigits(bytes, hourEnd + 1), 0) ? DATETIME_DOT : 0;
  }

  /** Reads ` HH:mm:ss` or `THH:mm:ss`, a fraction, and a zone. */
  #readClock(bytes: Uint8Array, start: number, end: number): CellForms {
    if (end - start < 9 || (bytes[start] !== SPACE && bytes[start] !== UPPER_T)) return 0;
    if (bytes[start + 3] !== COLON || bytes[start + 6] !== COLON) return 0;
    if (!this.#setClock(twoDigits(bytes, start + 1), twoDigits(bytes, start + 4), twoDigits(bytes, start + 7)))
      return 0;
    const hasFraction = bytes[start + 9] === DOT && start + 9 < end;
    const i = hasFraction ? this.#readFraction(bytes, start + 10, end) : start + 9;
    if (i === end) return DATETIME_DASH;
    return i > 0 && this.#readOffset(bytes, i, end) ? DATETIME_OFFSET : 0;
  }

  /** Reads one to six digits; returns the index behind them, or -1. */
  #readFraction(bytes: Uint8Array, start: number, end: number): number {
    let micros = 0;
    let i = start;
    for (let scale = 100_000; i < end && bytes[i] >= ZERO && bytes[i] <= NINE; scale /= 10, i++) {
      if (scale < 1) return -1;
      micros += (bytes[i] - ZERO) * scale;
    }
    this.micros = micros;
    return i === start ? -1 : i;
  }

  #readOffset(bytes: Uint8Array, start: number, end: number): boolean {
    const length = end - start;
    this.offset = 0;
    if (bytes[start] === UPPER_Z) return length === 1;
    if ((bytes[start] !== PLUS && bytes[start] !== HYPHEN) || (length !== 5 && length !== 6)) return false;
    if (length === 6 && bytes[start + 3] !== COLON) return false;
    const hours = twoDigits(bytes, start + 1);
    const minutes = twoDigits(bytes, end - 2);
    if (hours < 0 || hours > MAX_OFFSET_HOURS || minutes < 0 || minutes > 59) return false;
    this.offset = (hours * 3600 + minutes * 60) * (bytes[start] === HYPHEN ? -1 : 1);
    return true;
  }

  /** True if the day exists. */
  #setDay(month: number, day: number): boolean {
    if (month < 1 || month > 12 || day < 1) return false;
    if (day > 28 && day > daysIn(this.year, month)) return false;
    this.month = month;
    this.day = day;
    return true;
  }

  /** True if the time exists. */
  #setClock(hour: number, minute: number, second: number): boolean {
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) return false;
    this.hour = hour;
    this.minute = minute;
    this.second = second;
    this.micros = 0;
    return true;
  }
}

function daysIn(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

/** The value of two digits; for anything else a number so low that a year made of it is negative. */
function twoDigits(bytes: Uint8Array, at: number): number {
  const high = bytes[at] - ZERO;
  const low = bytes[at + 1] - ZERO;
  return high >>> 0 <= 9 && low >>> 0 <= 9 ? high * 10 + low : -10_000;
}

/** The length of a number of one or two digits. */
const numberLength = (bytes: Uint8Array, at: number): number => ((bytes[at + 1] - ZERO) >>> 0 <= 9 ? 2 : 1);

/** The value of one or two digits; negative for anything else. */
function oneOrTwoDigits(bytes: Uint8Array, at: number): number {
  if (numberLength(bytes, at) === 2) return twoDigits(bytes, at);
  const digit = bytes[at] - ZERO;
  return digit >>> 0 <= 9 ? digit : -1;
}
