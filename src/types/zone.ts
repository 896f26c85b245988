import { daysFromCivil } from './calendar.ts';
import { DATETIME_GAP, DATETIME_OVERLAP } from './evidence.ts';
import type { Evidence } from './type.ts';

const DAY_SECONDS = 86_400;
const HOUR_SECONDS = 3600;
const MINUTE_SECONDS = 60;
/** 0001-01-01 00:00 and 10000-01-01 00:00, UTC. */
const FIRST_INSTANT = -62_135_596_800;
const END_OF_INSTANTS = 253_402_300_800;
/** Hours and minutes remembered; more than any export spans. */
const CACHE_ENTRIES = 200_000;

const UNIQUE = 0;
const REPEATED = 1;
const SKIPPED = 2;
/** Never the answer of `#exact`. */
const MIXED = 3;

/**
 * A time zone of the IANA database. Turns wall-clock seconds into instants and back, remembering whole hours. Of a wall
 * time that occurs twice the earlier instant is meant; one that the zone skips has none.
 */
export class Zone {
  readonly name: string;
  readonly #format: Intl.DateTimeFormat;
  readonly #local = new Map<number, number>();
  readonly #utc = new Map<number, number>();
  #lastHour = Number.NaN;
  #lastCode = 0;

  /** Throws RangeError for a name that the runtime does not know. */
  constructor(name: string) {
    this.name = name;
    this.#format = new Intl.DateTimeFormat('en-US', {
      timeZone: name,
      hourCycle: 'h23',
      era: 'short',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
  }

  /** What the zone says of a wall-clock time: 0, DATETIME_OVERLAP or DATETIME_GAP. */
  evidenceOf(localSeconds: number): Evidence {
    const code = this.#resolve(localSeconds);
    const kind = code & 3;
    if (kind === SKIPPED) return DATETIME_GAP;
    const instant = localSeconds - (code >> 2);
    if (!isInstant(instant)) return DATETIME_GAP;
    return kind === REPEATED ? DATETIME_OVERLAP : 0;
  }

  /** Seconds that the zone is ahead of UTC in the wall-clock hour around this time, if it has all of it, and has it once. */
  offsetOfHour(localSeconds: number): number | undefined {
    const start = Math.floor(localSeconds / HOUR_SECONDS) * HOUR_SECONDS;
    const code = this.#cached(start, HOUR_SECONDS);
    const offset = code >> 2;
    const isWhole = isInstant(start - offset) && isInstant(start - offset + HOUR_SECONDS - 1);
    return (code & 3) === UNIQUE && isWhole ? offset : undefined;
  }

  /** The instant (seconds from 1970, UTC) of a wall-clock time that has one. */
  toUtc(localSeconds: number): number {
    return localSeconds - (this.#resolve(localSeconds) >> 2);
  }

  /** Seconds that this zone is ahead of UTC at an instant. */
  offsetAt(utcSeconds: number): number {
    const hour = Math.floor(utcSeconds / HOUR_SECONDS);
    let offset = this.#utc.get(hour);
    if (offset === undefined) {
      const first = this.#offset(hour * HOUR_SECONDS);
      const last = this.#offset(hour * HOUR_SECONDS + HOUR_SECONDS - 1);
      offset = first === last ? first : Number.NaN;
      remember(this.#utc, hour, offset);
    }
    return Number.isNaN(offset) ? this.#offset(utcSeconds) : offset;
  }

  /** `offset << 2 | kind`. */
  #resolve(localSeconds: number): number {
    const hour = Math.floor(localSeconds / HOUR_SECONDS);
    if (hour === this.#lastHour) return this.#lastCode;
    const code = this.#cached(hour * HOUR_SECONDS, HOUR_SECONDS);
    if ((code & 3) !== MIXED) {
      this.#lastHour = hour;
      this.#lastCode = code;
      return code;
    }
    const minute = this.#cached(Math.floor(localSeconds / MINUTE_SECONDS) * MINUTE_SECONDS, MINUTE_SECONDS);
    return (minute & 3) === MIXED ? this.#exact(localSeconds) : minute;
  }

  /** The code of a span of wall-clock time when all of it has the same; else MIXED. */
  #cached(start: number, size: number): number {
    const key = size === HOUR_SECONDS ? start : start + 1;
    let code = this.#local.get(key);
    if (code === undefined) {
      code = this.#exact(start);
      if (code !== this.#exact(start + size - 1)) code = MIXED;
      remember(this.#local, key, code);
    }
    return code;
  }

  #exact(localSeconds: number): number {
    const before = this.offsetAt(localSeconds - DAY_SECONDS);
    const after = this.offsetAt(localSeconds + DAY_SECONDS);
    if (before === after) return (before << 2) | UNIQUE;
    const earlier = this.offsetAt(localSeconds - before) === before;
    const later = this.offsetAt(localSeconds - after) === after;
    if (earlier && later) return (Math.max(before, after) << 2) | REPEATED;
    if (earlier) return (before << 2) | UNIQUE;
    return later ? (after << 2) | UNIQUE : SKIPPED;
  }

  #offset(utcSeconds: number): number {
    let year = 0;
    let [month, day, hour, minute, second] = [0, 0, 0, 0, 0];
    let past = false;
    for (const part of this.#format.formatToParts(utcSeconds * 1000)) {
      if (part.type === 'year') year = Number(part.value);
      else if (part.type === 'month') month = Number(part.value);
      else if (part.type === 'day') day = Number(part.value);
      else if (part.type === 'hour') hour = Number(part.value);
      else if (part.type === 'minute') minute = Number(part.value);
      else if (part.type === 'second') second = Number(part.value);
      else if (part.type === 'era') past = part.value.startsWith('B');
    }
    const days = daysFromCivil(past ? 1 - year : year, month, day);
    return days * DAY_SECONDS + hour * HOUR_SECONDS + minute * MINUTE_SECONDS + second - utcSeconds;
  }
}

/** True for an instant (seconds) of the years 1 to 9999 in UTC. */
export function isInstant(utcSeconds: number): boolean {
  return utcSeconds >= FIRST_INSTANT && utcSeconds < END_OF_INSTANTS;
}

function remember(cache: Map<number, number>, key: number, value: number): void {
  if (cache.size >= CACHE_ENTRIES) cache.clear();
  cache.set(key, value);
}
