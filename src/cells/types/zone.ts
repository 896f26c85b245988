import { DAY_SECONDS, daysFromCivil } from './calendar.ts';
import { DATETIME_GAP, DATETIME_OVERLAP, type Evidence } from './evidence.ts';

const HOUR_SECONDS = 3600;
/** 0001-01-01 00:00 and 10000-01-01 00:00, UTC. */
export const FIRST_INSTANT = -62_135_596_800;
export const END_OF_INSTANTS = 253_402_300_800;

/** An offset lasts longer than this: seven days at least in every zone of Node 20.20.2, from 1840 to 2100. */
const STEP_SECONDS = 4 * DAY_SECONDS;
/** Before this year every zone has one offset. */
const FIRST_CHANGING_YEAR = 1800;
/** From this year on every zone has one offset, or changes by rules that repeat with the calendar. */
const FIRST_CYCLE_YEAR = 2100;
/** The Gregorian calendar repeats after 400 years, weekdays included. */
const CYCLE_YEARS = 400;
const CYCLE_SECONDS = 146_097 * DAY_SECONDS;
/** The 400 years whose changes all later years repeat: first instant (s from 1970) and length (s). */
export const CYCLE = { from: Date.UTC(FIRST_CYCLE_YEAR, 0) / 1000, seconds: CYCLE_SECONDS } as const;

/** Instants, in seconds from 1970, from `from` to the beginning of the next span. */
export interface ZoneSpan {
  readonly from: number;
  /** Seconds that the wall clock is ahead of UTC. */
  readonly offset: number;
}

/** Wall-clock times, in seconds from 1970-01-01 00:00, from `from` to the beginning of the next piece. */
interface Piece {
  readonly from: number;
  /** Seconds ahead of UTC; of a repeated time those of the earlier instant, of a skipped one undefined. */
  readonly offset: number | undefined;
  readonly isRepeated: boolean;
}

/**
 * What the runtime tells of a zone, as far as it was asked: spans by calendar year, pieces by year of the wall clock.
 */
interface Changes {
  readonly format: Intl.DateTimeFormat;
  readonly spans: Map<number, readonly ZoneSpan[]>;
  readonly pieces: Map<number, readonly Piece[]>;
}

function changesOf(timeZone: string): Changes {
  const format = new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset', year: 'numeric' });
  return { format, spans: new Map(), pieces: new Map() };
}

/** Wall-clock times, both included, in seconds from 1970-01-01 00:00. */
export interface WallRange {
  readonly first: number;
  readonly last: number;
}

/** All times that a column can hold. */
const ALL_TIMES: WallRange = { first: FIRST_INSTANT - DAY_SECONDS, last: END_OF_INSTANTS + DAY_SECONDS };

/**
 * The zone of that name, if there is one: without it datetimes have none. Throws RangeError for a name that the runtime
 * does not know.
 */
export function zoneOf(name: string | null | undefined): Zone | undefined {
  if (name === null || name === undefined) return undefined;
  const zone = zones.get(name) ?? new Zone(name);
  zones.set(name, zone);
  return zone;
}

/** True for the name of a zone of the runtime; an offset such as +09:00, which later versions of Node take, is none. */
export function isZoneName(name: string): boolean {
  if (!/^[A-Za-z]/.test(name)) return false;
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}

/** The zones that were asked for: to find all changes of one takes 0.2 to 0.4 s (measured), so that it is made once. */
const zones = new Map<string, Zone>();

/**
 * A time zone of the IANA database of the runtime, which alone decides: SQL gets the zone's changes as literals
 * (src/cells/types/zone-sql.ts). A wall-clock time that occurs twice means the earlier instant; one that the zone skips means
 * none.
 */
export class Zone {
  readonly name: string;
  /** The times for which the SQL of this zone is made; it may be wrong for other times. */
  readonly range: WallRange;
  readonly #changes: Changes;
  /** The span of the last instant and the piece of the last wall-clock time that were looked up. */
  #span = { from: 0, end: 0, offset: 0 };
  #piece: Piece & { readonly end: number } = { from: 0, end: 0, offset: undefined, isRepeated: false };

  /** Throws RangeError for a name that the runtime does not know. */
  constructor(name: string, range: WallRange = ALL_TIMES, changes: Changes = changesOf(name)) {
    this.name = name;
    this.range = range;
    this.#changes = changes;
  }

  /** This zone with SQL for these times alone (ISO texts of the wall clock): for a few days its SQL is arithmetic. */
  within(first: string, last: string): Zone {
    return new Zone(this.name, { first: secondsOf(first), last: secondsOf(last) }, this.#changes);
  }

  /** The evidence that the zone adds to a wall-clock time: 0, DATETIME_OVERLAP or DATETIME_GAP. */
  evidenceOf(localSeconds: number): Evidence {
    const { offset, isRepeated } = this.#pieceAt(localSeconds);
    if (offset === undefined || !isInstant(localSeconds - offset)) return DATETIME_GAP;
    return isRepeated ? DATETIME_OVERLAP : 0;
  }

  /** True if every time of the wall-clock hour of this time is one instant: none is skipped or repeated. */
  hasHourOnce(localSeconds: number): boolean {
    const start = Math.floor(localSeconds / HOUR_SECONDS) * HOUR_SECONDS;
    const { offset, isRepeated } = this.#pieceAt(start);
    if (offset === undefined || isRepeated || start + HOUR_SECONDS > this.#piece.end) return false;
    return isInstant(start - offset) && isInstant(start + HOUR_SECONDS - 1 - offset);
  }

  /** The instant (seconds from 1970, UTC) of a wall-clock time that has one. */
  toUtc(localSeconds: number): number {
    return localSeconds - (this.#pieceAt(localSeconds).offset ?? 0);
  }

  /** Seconds that this zone is ahead of UTC at an instant. */
  offsetAt(utcSeconds: number): number {
    const last = this.#span;
    if (utcSeconds >= last.from && utcSeconds < last.end) return last.offset;
    const year = yearOf(utcSeconds);
    this.#span = entryAt(this.#spansOf(year), utcSeconds, year);
    return this.#span.offset;
  }

  /** The spans of two instants and of all instants between them; the first span may begin before `first`. */
  spans(first: number, last: number): ZoneSpan[] {
    const spans: ZoneSpan[] = [];
    for (let year = yearOf(first); year <= yearOf(last); year++) {
      for (const span of this.#spansOf(year)) if (span.offset !== spans.at(-1)?.offset) spans.push(span);
    }
    const begin = spans.findLastIndex(({ from }) => from <= first);
    return spans.slice(Math.max(0, begin)).filter(({ from }) => from <= last);
  }

  /** The pieces of a year of the wall clock and of the days around it. */
  #piecesOf(year: number): readonly Piece[] {
    const spans = this.spans(startOf(year) - 2 * DAY_SECONDS, startOf(year + 1) + 2 * DAY_SECONDS);
    return spans.flatMap(({ from, offset }, i): Piece[] => {
      const before = i === 0 ? offset : spans[i - 1].offset;
      const changed = { from: from + Math.max(offset, before), offset, isRepeated: false };
      if (before === offset) return [changed];
      const isRepeated = before > offset;
      return [{ from: from + Math.min(offset, before), offset: isRepeated ? before : undefined, isRepeated }, changed];
    });
  }

  #pieceAt(localSeconds: number): Piece {
    const last = this.#piece;
    if (localSeconds >= last.from && localSeconds < last.end) return last;
    const year = yearOf(localSeconds);
    const pieces = this.#changes.pieces.get(year) ?? this.#piecesOf(year);
    this.#changes.pieces.set(year, pieces);
    this.#piece = entryAt(pieces, localSeconds, year);
    return this.#piece;
  }

  /** The spans of a year in UTC; the first begins with the year or before it. */
  #spansOf(year: number): readonly ZoneSpan[] {
    const spans = this.#changes.spans.get(year) ?? this.#findSpans(year);
    this.#changes.spans.set(year, spans);
    return spans;
  }

  #findSpans(year: number): readonly ZoneSpan[] {
    const start = startOf(year);
    if (year < FIRST_CHANGING_YEAR) return [{ from: start, offset: this.#ask(startOf(FIRST_CHANGING_YEAR)) }];
    const cycles = Math.floor((year - FIRST_CYCLE_YEAR) / CYCLE_YEARS);
    if (cycles > 0) {
      const spans = this.#spansOf(year - cycles * CYCLE_YEARS);
      return spans.map(({ from, offset }) => ({ from: from + cycles * CYCLE_SECONDS, offset }));
    }
    const spans = [{ from: start, offset: this.#ask(start) }];
    const end = startOf(year + 1);
    for (let before = start; before < end - 1; ) {
      const after = Math.min(before + STEP_SECONDS, end - 1);
      const offset = this.#ask(after);
      if (offset !== spans[spans.length - 1].offset) spans.push({ from: this.#changeBetween(before, after), offset });
      before = after;
    }
    return spans;
  }

  /** The first instant that has the offset of `after` and not that of `before`. */
  #changeBetween(before: number, after: number): number {
    let [low, high] = [before, after];
    const offset = this.#ask(high);
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (this.#ask(middle) === offset) high = middle;
      else low = middle;
    }
    return high;
  }

  /** Seconds ahead of UTC, from the runtime's text: `1890, GMT+00:17:30`, or `GMT` alone. */
  #ask(utcSeconds: number): number {
    const [, sign, ...parts] =
      /GMT(?:([+-])(\d+):(\d+)(?::(\d+))?)?$/.exec(this.#changes.format.format(utcSeconds * 1000)) ?? [];
    const [hours, minutes, seconds] = parts.map((part) => Number(part ?? 0));
    return ((hours * 60 + minutes) * 60 + seconds) * (sign === '-' ? -1 : 1);
  }
}

/** True for an instant (seconds) of the years 1 to 9999 in UTC. */
export function isInstant(utcSeconds: number): boolean {
  return utcSeconds >= FIRST_INSTANT && utcSeconds < END_OF_INSTANTS;
}

/** Seconds from 1970 of a text such as `2026-01-02T03:04:05.678`, without its fraction. */
const secondsOf = (text: string): number => Date.parse(`${text.slice(0, 'yyyy-MM-ddTHH:mm:ss'.length)}Z`) / 1000;

const startOf = (year: number): number => daysFromCivil(year, 1, 1) * DAY_SECONDS;

const yearOf = (seconds: number): number => new Date(seconds * 1000).getUTCFullYear();

/** The last entry that begins at or before `time`, and its end, within `year`, whose entries alone are complete. */
function entryAt<T extends { readonly from: number }>(
  entries: readonly T[],
  time: number,
  year: number,
): T & { end: number } {
  const index = Math.max(
    0,
    entries.findLastIndex(({ from }) => from <= time),
  );
  const { [index]: entry, [index + 1]: next } = entries;
  return {
    ...entry,
    from: Math.max(entry.from, startOf(year)),
    end: Math.min(next?.from ?? Infinity, startOf(year + 1)),
  };
}
