import { COLON, DOT, HYPHEN, QUOTE, UPPER_T, UPPER_Z, ZERO } from '../../base/ascii.ts';
import { castSql, matchesSql, varcharSql } from '../../base/sql.ts';
import { CivilTime } from './civil-time.ts';
import { codecOf } from './codec.ts';
import { type CellForms, DATE, DATETIME_BEYOND, DATETIME_DASH, DATETIME_DOT, DATETIME_OFFSET } from './forms.ts';
import { writeString } from './json-text.ts';
import { instantSql, isInYearsSql, wallSql, type Zone } from './zone.ts';

const MILLI = 1000;

/** The forms of times by a wall clock. */
const WALL_FORMS = DATE | DATETIME_DOT | DATETIME_DASH;

const CLOCK = '([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?';
const DATE_PATTERN = '[0-9]{4}-[0-9]{2}-[0-9]{2}';
const DASH_PATTERN = `${DATE_PATTERN}([ T]${CLOCK})?`;
const DOT_PATTERN = '[0-9]{4}\\.[0-9]{1,2}\\.[0-9]{1,2} ([0-9]|[01][0-9]|2[0-3]):[0-5][0-9]';
const OFFSET_PATTERN = '(Z|[+-](0[0-9]|1[0-5]):?[0-5][0-9])';
const ZONED_PATTERN = `${DATE_PATTERN}[ T]${CLOCK}${OFFSET_PATTERN}`;
const DOT_FORMAT = "'%Y.%m.%d %H:%M'";

const MILLIS_LENGTH = 'yyyy-MM-dd HH:mm:ss.SSS'.length;

/** SQL of the wall-clock TIMESTAMP of a cell without a zone; NULL for any other cell. */
function sqlWallChecked(expr: string): string {
  return (
    `CASE WHEN starts_with(${expr}, '0000') THEN NULL ` +
    `WHEN ${matchesSql(expr, DASH_PATTERN)} THEN TRY_CAST(${expr} AS TIMESTAMP) ` +
    `WHEN ${matchesSql(expr, DOT_PATTERN)} THEN TRY_STRPTIME(${expr}, ${DOT_FORMAT}) END`
  );
}

/** SQL of the wall-clock TIMESTAMP of a cell of these forms: `CAST` reads dashes, `strptime` dots. */
function sqlWallClean(expr: string, forms: CellForms): string {
  const cast = `CAST(${expr} AS TIMESTAMP)`;
  const dots = `strptime(${expr}, ${DOT_FORMAT})`;
  if ((forms & DATETIME_DOT) === 0) return cast;
  if ((forms & (DATE | DATETIME_DASH)) === 0) return dots;
  return `CASE WHEN contains(${expr}, '-') THEN ${cast} ELSE ${dots} END`;
}

const ifInYears = (instant: string): string => `CASE WHEN ${isInYearsSql(instant)} THEN ${instant} END`;

/** SQL of the TIMESTAMP, or with a zone TIMESTAMPTZ, of a cell; NULL for any other cell. */
function sqlChecked(expr: string, zone: Zone | undefined): string {
  const wall = sqlWallChecked(expr);
  if (zone === undefined) return wall;
  const zoned = `TRY_CAST(${expr} AS TIMESTAMPTZ)`;
  return (
    `CASE WHEN starts_with(${expr}, '0000') THEN NULL ` +
    `WHEN ${matchesSql(expr, ZONED_PATTERN)} THEN ${ifInYears(zoned)} ` +
    `ELSE ${ifInYears(instantSql(wall, zone))} END`
  );
}

/** SQL of the TIMESTAMP, or with a zone TIMESTAMPTZ, of cells that all fit and have the forms of `forms`. */
function sqlValue(expr: string, forms: CellForms, zone: Zone | undefined): string {
  const wall = sqlWallClean(expr, forms);
  if (zone === undefined) return wall;
  const instant = instantSql(wall, zone);
  if ((forms & DATETIME_OFFSET) === 0) return instant;
  const zoned = `CAST(${expr} AS TIMESTAMPTZ)`;
  if ((forms & WALL_FORMS) === 0) return zoned;
  return `CASE WHEN regexp_matches(${expr}, '${OFFSET_PATTERN}$') THEN ${zoned} ELSE ${instant} END`;
}

/**
 * SQL of the canonical text, `2026-01-02 03:04:00.000`, with six digits if there are micros; by the zone's wall clock.
 */
function sqlText(expr: string, zone: Zone | undefined): string {
  const length = `CASE WHEN epoch_us(${expr}) % 1000 = 0 THEN ${MILLIS_LENGTH} ELSE ${MILLIS_LENGTH + 3} END`;
  const wall = zone === undefined ? expr : wallSql(expr, zone);
  return `left(strftime(${wall}, '%Y-%m-%d %H:%M:%S.%f'), ${length})`;
}

/** Writes a time as `"2026-01-02T03:04:00.000"`, with six digits if there are micros. */
function writeTime(time: CivilTime, out: Uint8Array, at: number, asInstants: boolean): number {
  out[at] = QUOTE;
  writeTwo(out, at + 1, (time.year / 100) | 0);
  writeTwo(out, at + 3, time.year % 100);
  out[at + 5] = HYPHEN;
  writeTwo(out, at + 6, time.month);
  out[at + 8] = HYPHEN;
  writeTwo(out, at + 9, time.day);
  out[at + 11] = UPPER_T;
  writeTwo(out, at + 12, time.hour);
  out[at + 14] = COLON;
  writeTwo(out, at + 15, time.minute);
  out[at + 17] = COLON;
  writeTwo(out, at + 18, time.second);
  out[at + 20] = DOT;
  let to = writeThree(out, at + 21, (time.micros / MILLI) | 0);
  if (time.micros % MILLI !== 0) to = writeThree(out, to, time.micros % MILLI);
  if (asInstants) out[to++] = UPPER_Z;
  out[to] = QUOTE;
  return to + 1;
}

function writeTwo(out: Uint8Array, at: number, value: number): void {
  out[at] = ZERO + ((value / 10) | 0);
  out[at + 1] = ZERO + (value % 10);
}

function writeThree(out: Uint8Array, at: number, value: number): number {
  out[at] = ZERO + ((value / 100) | 0);
  writeTwo(out, at + 1, value % 100);
  return at + 3;
}

/** The time of the cell that `writeValue` writes. */
const time = new CivilTime();

/**
 * A cell of the form `yyyy.M.d H:mm`, `yyyy-MM-dd HH:mm:ss[.f…]` or `yyyy-MM-dd`; with a zone also one with a UTC
 * offset. With a zone its instant is one of the years 1 to 9999.
 */
export const DATETIME_CODEC = codecOf({
  type: 'datetime',
  acceptedForms: (asInstants) => WALL_FORMS | (asInstants ? DATETIME_OFFSET : 0),
  duckdb: (asInstants) => (asInstants ? 'TIMESTAMPTZ' : 'TIMESTAMP'),
  writeValue(bytes, start, end, out, at, zone) {
    const form = time.read(bytes, start, end);
    if (zone !== undefined) {
      const wall = time.seconds;
      time.seconds = (form & DATETIME_OFFSET) === 0 ? zone.toUtc(wall) : wall - time.offset;
    }
    return writeTime(time, out, at, zone !== undefined);
  },
  isJson: false,
  sql: sqlChecked,
  sqlValue,
  nativeForms: (asInstants) => (asInstants ? 0 : DATE | DATETIME_DASH),
  sqlText,
  widenings: {},
  widenedText: (expr, zone) => `regexp_replace(${sqlText(expr, zone)}, ' 00:00:00\\.000$', '')`,
  jsonSchema: (asInstants) => ({
    type: ['string', 'null'],
    format: 'date-time',
    airbyte_type: asInstants ? 'timestamp_with_timezone' : 'timestamp_without_timezone',
  }),
});

/** A date has no zone, so that DATETIME_BEYOND does not concern it. */
const dateForms = () => DATE | DATETIME_BEYOND;

/** `yyyy-MM-dd`, a day of the years 1 to 9999. */
export const DATE_CODEC = codecOf({
  type: 'date',
  acceptedForms: dateForms,
  duckdb: () => 'DATE',
  writeValue: writeString,
  isJson: false,
  // No date has the year 0000; `TRY_CAST` refuses the other days that do not exist.
  sql: (expr) =>
    `CASE WHEN ${matchesSql(expr, DATE_PATTERN)} AND NOT starts_with(${expr}, '0000') ` +
    `THEN TRY_CAST(${expr} AS DATE) END`,
  sqlValue: (expr) => castSql(expr, 'DATE'),
  nativeForms: dateForms,
  sqlText: varcharSql,
  widenings: {
    datetime: (expr, zone) => {
      const wall = `CAST(${expr} AS TIMESTAMP)`;
      return zone === undefined ? wall : instantSql(wall, zone);
    },
  },
  widenedText: varcharSql,
  jsonSchema: () => ({ type: ['string', 'null'], format: 'date' }),
});
