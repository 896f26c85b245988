import { literal } from '../../base/sql.ts';

const SECONDS_PER_DAY = 86_400;
/** When the years 1 and 10000 begin in UTC (seconds from 1970). */
const YEAR_1 = -62_135_596_800;
const YEAR_10000 = 253_402_300_800;

/** True for an instant (seconds from 1970) of the years 1 to 9999 in UTC. */
export const isInYearRange = (utcSeconds: number): boolean => utcSeconds >= YEAR_1 && utcSeconds < YEAR_10000;

/** SQL that is TRUE for an instant, or a wall-clock time, of the years 1 to 9999. */
export const isInYearRangeSql = (time: string): string =>
  `epoch_us(${time}) >= ${YEAR_1}000000 AND epoch_us(${time}) < ${YEAR_10000}000000`;

/** SQL of the TIMESTAMPTZ of a wall-clock TIMESTAMP, as `Zone.toUtc`. */
export const toInstantSql = (wall: string, { name }: Zone): string => `timezone(${literal(name)}, ${wall})`;

/** SQL of the wall-clock TIMESTAMP of a TIMESTAMPTZ: DuckDB's `timezone` goes by the type of its argument. */
export const toWallTimeSql = (instant: string, { name }: Zone): string => `timezone(${literal(name)}, ${instant})`;

/** True for a zone of the runtime; false for an offset such as +09:00, which later versions of Node take. */
export function isZoneName(name: string): boolean {
  try {
    return /^[A-Za-z]/.test(name) && zoneOf(name) !== undefined;
  } catch {
    return false;
  }
}

const zones = new Map<string, Zone>();

/**
 * The zone of that name; undefined without a name, when datetimes are wall-clock times. Throws RangeError for a name
 * that the runtime does not know.
 */
export function zoneOf(name: string | null | undefined): Zone | undefined {
  if (name === null || name === undefined) return undefined;
  const zone = zones.get(name) ?? new Zone(name);
  zones.set(name, zone);
  return zone;
}

/** The days whose offset is kept; real exports have fewer. */
const MAX_CACHED_DAYS = 10_000;

/**
 * A time zone of the runtime. A wall-clock time that the zone skips is moved forward by the gap; one that occurs twice
 * is the later instant. DuckDB's `timezone()` does the same. Times are in seconds from 1970.
 */
export class Zone {
  readonly name: string;
  readonly #format: Intl.DateTimeFormat;
  /** The offset of a day, if it was the same from the day before until the day after. */
  readonly #offsetsByDay = new Map<number, number | undefined>();

  constructor(name: string) {
    this.name = name;
    this.#format = new Intl.DateTimeFormat('en-US', { timeZone: name, timeZoneName: 'longOffset', year: 'numeric' });
  }

  /** The instant of a wall-clock time. */
  toUtc(wall: number): number {
    const offsetOfDay = this.#offsetOfDay(wall);
    if (offsetOfDay !== undefined) return wall - offsetOfDay;
    // No offset is as long as a day: these are the offsets before and after the change.
    const earlierOffset = this.#readOffset(wall - SECONDS_PER_DAY);
    const laterOffset = this.#readOffset(wall + SECONDS_PER_DAY);
    return wall - (this.#readOffset(wall - laterOffset) === laterOffset ? laterOffset : earlierOffset);
  }

  /** Seconds that the wall clock is ahead of UTC at an instant. */
  offsetAt(utc: number): number {
    return this.#offsetOfDay(utc) ?? this.#readOffset(utc);
  }

  #offsetOfDay(time: number): number | undefined {
    const day = Math.floor(time / SECONDS_PER_DAY);
    if (this.#offsetsByDay.has(day)) return this.#offsetsByDay.get(day);
    const earlierOffset = this.#readOffset((day - 1) * SECONDS_PER_DAY);
    const laterOffset = this.#readOffset((day + 2) * SECONDS_PER_DAY);
    const offset = earlierOffset === laterOffset ? laterOffset : undefined;
    if (this.#offsetsByDay.size >= MAX_CACHED_DAYS) this.#offsetsByDay.clear();
    this.#offsetsByDay.set(day, offset);
    return offset;
  }

  /** Seconds ahead of UTC, from the runtime's text: `1890, GMT+00:17:30`, or `GMT` alone. */
  #readOffset(utc: number): number {
    const [, sign, ...parts] = /GMT(?:([+-])(\d+):(\d+)(?::(\d+))?)?$/.exec(this.#format.format(utc * 1000)) ?? [];
    const [hours, minutes, seconds] = parts.map((part) => Number(part ?? 0));
    return ((hours * 60 + minutes) * 60 + seconds) * (sign === '-' ? -1 : 1);
  }
}
