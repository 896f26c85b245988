import type { ColumnType, Evidence } from './type.ts';

// The bits are stored, in receipts, manifests and `_dfinery_columns`: a new one is added at the end, none is renumbered.

/** The text `null`. */
export const NULL_TEXT = 1 << 0;
/** `TRUE` or `FALSE`. */
export const BOOL_UPPER = 1 << 1;
/** `true` or `false`. */
export const BOOL_LOWER = 1 << 2;
/** An integer that a double holds exactly. */
export const LONG = 1 << 3;
/** A 64-bit integer that a double would round. */
export const LONG_WIDE = 1 << 4;
/** A decimal whose digits are those of the shortest text of its double. */
export const DOUBLE = 1 << 5;
/** `yyyy-MM-dd`. */
export const DATE = 1 << 6;
/** `yyyy.M.d H:mm`. */
export const DATETIME_DOT = 1 << 7;
/** `yyyy-MM-dd HH:mm:ss`, a space or `T` between, up to six digits of fraction. */
export const DATETIME_DASH = 1 << 8;
/** The same ending in `Z`, `±HH:MM` or `±HHMM`. */
export const DATETIME_ZONED = 1 << 9;
/** Beside a date or datetime: the configured zone skips this local time, or its instant leaves the years 1 to 9999. */
export const DATETIME_GAP = 1 << 10;
/** Beside a date or datetime: the configured zone repeats this local time; the earlier instant is meant. */
export const DATETIME_OVERLAP = 1 << 11;
/** `[]` and `[null]`: a list of any type. */
export const LIST_EMPTY = 1 << 12;
export const LIST_LONG = 1 << 13;
export const LIST_LONG_WIDE = 1 << 14;
export const LIST_DOUBLE = 1 << 15;
export const LIST_STRING = 1 << 16;
/** Any other text. */
export const STRING = 1 << 17;

/** Every bit by name, as the vectors under `spec/` write them. */
export const EVIDENCE_BITS = {
  NULL_TEXT,
  BOOL_UPPER,
  BOOL_LOWER,
  LONG,
  LONG_WIDE,
  DOUBLE,
  DATE,
  DATETIME_DOT,
  DATETIME_DASH,
  DATETIME_ZONED,
  DATETIME_GAP,
  DATETIME_OVERLAP,
  LIST_EMPTY,
  LIST_LONG,
  LIST_LONG_WIDE,
  LIST_DOUBLE,
  LIST_STRING,
  STRING,
} as const satisfies Record<string, Evidence>;

export type EvidenceName = keyof typeof EVIDENCE_BITS;

/** The names of the bits that are set, in the order of the table. */
export function evidenceNames(evidence: Evidence): EvidenceName[] {
  const names = Object.keys(EVIDENCE_BITS) as EvidenceName[];
  return names.filter((name) => (evidence & EVIDENCE_BITS[name]) !== 0);
}

const BOOLEANS = BOOL_UPPER | BOOL_LOWER;
const LONGS = LONG | LONG_WIDE;
const NUMBERS = LONGS | DOUBLE;
const DATETIMES = DATETIME_DOT | DATETIME_DASH | DATETIME_ZONED;
const ODD_TIMES = DATETIME_GAP | DATETIME_OVERLAP;
const TIMES = DATE | DATETIMES;
const LIST_NUMBERS = LIST_LONG | LIST_LONG_WIDE | LIST_DOUBLE;
const LISTS = LIST_EMPTY | LIST_NUMBERS | LIST_STRING;

/**
 * The least type that holds every cell seen, undefined while all were empty or `null`. `zoned`: a `timezone` is
 * configured, so datetimes that carry a zone of their own are datetimes too.
 */
export function typeOf(evidence: Evidence, zoned: boolean): ColumnType | undefined {
  const seen = evidence & ~NULL_TEXT & ~ODD_TIMES;
  if (seen === 0) return (evidence & ODD_TIMES) === 0 ? undefined : 'datetime';
  if ((seen & STRING) !== 0) return 'string';
  if ((seen & ~NUMBERS) === 0) return typeOfNumbers(seen);
  if ((seen & ~TIMES) === 0) return typeOfTimes(seen, zoned);
  if ((seen & ~LISTS) === 0) return typeOfLists(seen);
  return seen === BOOL_UPPER || seen === BOOL_LOWER ? 'boolean' : 'string';
}

function typeOfNumbers(seen: Evidence): ColumnType {
  if ((seen & DOUBLE) === 0) return 'long';
  return (seen & LONG_WIDE) === 0 ? 'double' : 'string';
}

function typeOfTimes(seen: Evidence, zoned: boolean): ColumnType {
  if ((seen & DATETIME_ZONED) !== 0 && !zoned) return 'string';
  return (seen & DATETIMES) === 0 ? 'date' : 'datetime';
}

function typeOfLists(seen: Evidence): ColumnType {
  if ((seen & LIST_STRING) !== 0) return 'string[]';
  if ((seen & LIST_DOUBLE) === 0) return 'long[]';
  return (seen & LIST_LONG_WIDE) === 0 ? 'double[]' : 'string[]';
}

/** For each type the bits that its cells may have. A gap is fine for a date and not for a datetime. */
const ACCEPTED = {
  boolean: NULL_TEXT | BOOLEANS,
  long: NULL_TEXT | LONGS,
  double: NULL_TEXT | LONG | DOUBLE,
  date: NULL_TEXT | DATE | ODD_TIMES,
  datetime: NULL_TEXT | DATE | DATETIME_DOT | DATETIME_DASH | DATETIME_OVERLAP,
  string: -1,
  'string[]': NULL_TEXT | LISTS,
  'long[]': NULL_TEXT | LIST_EMPTY | LIST_LONG | LIST_LONG_WIDE,
  'double[]': NULL_TEXT | LIST_EMPTY | LIST_LONG | LIST_DOUBLE,
} as const satisfies Record<ColumnType, Evidence>;

/** The bits a cell (or a whole column) may have to fit into `type`; the text `null` is absent and so fits. */
export function acceptedBy(type: ColumnType, zoned: boolean): Evidence {
  return type === 'datetime' && zoned ? ACCEPTED.datetime | DATETIME_ZONED : ACCEPTED[type];
}

/** True when every cell behind `evidence` fits into `type`. */
export function fitsWholly(evidence: Evidence, type: ColumnType, zoned: boolean): boolean {
  return (evidence & ~acceptedBy(type, zoned)) === 0;
}
