import {
  civilSeconds,
  DAY,
  FIELDS,
  HOUR,
  MICROS,
  MINUTE,
  MONTH,
  OFFSET,
  parseTime,
  SECOND,
  setCivil,
  YEAR,
} from './calendar.ts';
import { classify } from './classify.ts';
import { sqlDatetime, sqlDatetimeClean, sqlDatetimeText } from './datetime-sql.ts';
import { DATE, DATETIME_DASH, DATETIME_ZONED, fitsWholly, NULL_TEXT } from './evidence.ts';
import type { TypeFace } from './face.ts';
import { writeNull } from './json-text.ts';
import { isNull } from './list-text.ts';
import { absentOr } from './sql.ts';

const QUOTE = 34;
const DASH = 45;
const DOT = 46;
const COLON = 58;
const UPPER_T = 0x54;
const UPPER_Z = 0x5a;
const MILLI = 1000;

/** Forms that DuckDB's CSV reader reads as we do. */
const NATIVE = DATE | DATETIME_DASH;

/**
 * `yyyy.M.d H:mm`, `yyyy-MM-dd HH:mm:ss[.f…]`, `yyyy-MM-dd`; with a zone also those that carry their own. Of a local time
 * that the zone has twice the earlier is meant; one that it skips does not fit.
 */
export const DATETIME: TypeFace = {
  type: 'datetime',
  accepts(b, start, end, zone) {
    return start === end || fitsWholly(classify(b, start, end, zone), 'datetime', zone !== undefined);
  },
  writeJson(b, start, end, out, at, zone) {
    if (start === end || isNull(b, start, end)) return writeNull(out, at);
    const form = parseTime(b, start, end);
    if (zone !== undefined) {
      const wall = civilSeconds();
      setCivil((form & DATETIME_ZONED) === 0 ? zone.toUtc(wall) : wall - FIELDS[OFFSET]);
    }
    return writeFields(out, at, zone !== undefined);
  },
  duckdb: (zoned) => (zoned ? 'TIMESTAMPTZ' : 'TIMESTAMP'),
  sql: sqlDatetime,
  sqlClean: sqlDatetimeClean,
  sqlFits: (expr, zone) => absentOr(expr, sqlDatetime(expr, zone)),
  native: (evidence, zoned) => !zoned && (evidence & NULL_TEXT) === 0 && (evidence & ~NATIVE) === 0,
  sqlText: sqlDatetimeText,
  jsonSchema: (zoned) => ({
    type: ['string', 'null'],
    format: 'date-time',
    airbyte_type: zoned ? 'timestamp_with_timezone' : 'timestamp_without_timezone',
  }),
  arrow: (zoned) => ({ kind: 'timestamp', unit: 'microsecond', timezone: zoned ? 'UTC' : null }),
};

/** `"2026-01-02T03:04:00.000"`, six digits where there are micros. */
function writeFields(out: Uint8Array, at: number, zoned: boolean): number {
  out[at] = QUOTE;
  writeTwo(out, at + 1, (FIELDS[YEAR] / 100) | 0);
  writeTwo(out, at + 3, FIELDS[YEAR] % 100);
  out[at + 5] = DASH;
  writeTwo(out, at + 6, FIELDS[MONTH]);
  out[at + 8] = DASH;
  writeTwo(out, at + 9, FIELDS[DAY]);
  out[at + 11] = UPPER_T;
  writeTwo(out, at + 12, FIELDS[HOUR]);
  out[at + 14] = COLON;
  writeTwo(out, at + 15, FIELDS[MINUTE]);
  out[at + 17] = COLON;
  writeTwo(out, at + 18, FIELDS[SECOND]);
  out[at + 20] = DOT;
  let to = writeThree(out, at + 21, (FIELDS[MICROS] / MILLI) | 0);
  if (FIELDS[MICROS] % MILLI !== 0) to = writeThree(out, to, FIELDS[MICROS] % MILLI);
  if (zoned) out[to++] = UPPER_Z;
  out[to] = QUOTE;
  return to + 1;
}

function writeTwo(out: Uint8Array, at: number, value: number): void {
  out[at] = 48 + ((value / 10) | 0);
  out[at + 1] = 48 + (value % 10);
}

function writeThree(out: Uint8Array, at: number, value: number): number {
  out[at] = 48 + ((value / 100) | 0);
  writeTwo(out, at + 1, value % 100);
  return at + 3;
}
