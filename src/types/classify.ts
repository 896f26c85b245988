import { civilSeconds, FIELDS, OFFSET, parseTime } from './calendar.ts';
import { BOOL_LOWER, BOOL_UPPER, DATETIME_GAP, DATETIME_ZONED, NULL_TEXT, STRING } from './evidence.ts';
import { isNull } from './json-text.ts';
import { isSpace, listClass } from './list-text.ts';
import { numberClass } from './numbers.ts';
import type { Evidence } from './type.ts';
import { isInstant, type Zone } from './zone.ts';

const ZERO = 48;
const NINE = 57;
const MINUS = 45;
const DOT = 46;
const OPEN = 91;
/** A date or datetime has a dash or a dot here. */
const YEAR_DIGITS = 4;
const SHORTEST_TIME = 10;

/** `TRUE`, `FALSE`, `true` or `false`, packed for comparison with four bytes of a cell. */
const TRUE_UPPER = pack('TRUE');
const TRUE_LOWER = pack('true');
const FALS_UPPER = pack('FALS');
const FALS_LOWER = pack('fals');

/**
 * What one cell is: usually one bit, STRING when nothing else. The cell's bytes are valid UTF-8, unquoted, not empty.
 * After a date or datetime bit FIELDS holds what was read.
 */
export function classify(b: Uint8Array, start: number, end: number, zone: Zone | undefined): Evidence {
  const c = b[start];
  if ((c >= ZERO && c <= NINE) || c === MINUS) {
    const after = b[start + YEAR_DIGITS];
    if (end - start >= SHORTEST_TIME && (after === MINUS || after === DOT)) {
      const form = parseTime(b, start, end);
      if (form !== 0) return zone === undefined ? form : form | zoneEvidence(form, zone);
    }
    return numberClass(b, start, end) || STRING;
  }
  return (c === OPEN || isSpace(c) ? listClass(b, start, end) : wordClass(b, start, end)) || STRING;
}

function wordClass(b: Uint8Array, start: number, end: number): Evidence {
  const length = end - start;
  if (length !== 4 && length !== 5) return 0;
  const word = (b[start] << 24) | (b[start + 1] << 16) | (b[start + 2] << 8) | b[start + 3];
  if (length === 4) {
    if (word === TRUE_UPPER) return BOOL_UPPER;
    if (word === TRUE_LOWER) return BOOL_LOWER;
    return isNull(b, start, end) ? NULL_TEXT : 0;
  }
  if (word === FALS_UPPER) return b[start + 4] === 69 ? BOOL_UPPER : 0;
  return word === FALS_LOWER && b[start + 4] === 101 ? BOOL_LOWER : 0;
}

/** What the configured zone adds to the form of a date or datetime: nothing, DATETIME_GAP or DATETIME_OVERLAP. */
function zoneEvidence(form: Evidence, zone: Zone): Evidence {
  const seconds = civilSeconds();
  if (form !== DATETIME_ZONED) return zone.evidenceOf(seconds);
  return isInstant(seconds - FIELDS[OFFSET]) ? 0 : DATETIME_GAP;
}

function pack(word: string): number {
  let packed = 0;
  for (let i = 0; i < 4; i++) packed = (packed << 8) | word.charCodeAt(i);
  return packed;
}
