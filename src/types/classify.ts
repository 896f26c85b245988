import { booleanClass } from './boolean.ts';
import { civilSeconds, FIELDS, OFFSET, parseTime } from './calendar.ts';
import { DATETIME_GAP, DATETIME_OFFSET, NULL_TEXT, STRING } from './evidence.ts';
import { isNull, isSpace } from './json-text.ts';
import { listClass } from './list.ts';
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
  if (c === OPEN || isSpace(c)) return listClass(b, start, end) || STRING;
  return isNull(b, start, end) ? NULL_TEXT : booleanClass(b, start, end) || STRING;
}

/** What the configured zone adds to the form of a date or datetime: nothing, DATETIME_GAP or DATETIME_OVERLAP. */
function zoneEvidence(form: Evidence, zone: Zone): Evidence {
  const seconds = civilSeconds();
  if (form !== DATETIME_OFFSET) return zone.evidenceOf(seconds);
  return isInstant(seconds - FIELDS[OFFSET]) ? 0 : DATETIME_GAP;
}
