import { QUOTE, UPPER_Z, ZERO } from '../../base/ascii.ts';
import { castSql, matchesSql, varcharSql } from '../../base/sql.ts';
import type { ScalarCodec } from './codec.ts';
import { type CellForms, DATE, DATETIME_BEYOND, DATETIME_DASH, DATETIME_DOT, DATETIME_OFFSET } from './forms.ts';
import { writeString } from './string.ts';
import { WallTime } from './wall-time.ts';
import { isInYearRangeSql, toInstantSql, toWallTimeSql, type Zone } from './zone.ts';

const MICROS_PER_MILLI = 1000;

/** The forms of times by a wall clock. */
const WALL_FORMS = DATE | DATETIME_DASH | DATETIME_DOT;

const CLOCK = '([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?';
/** The years 0001 to 9999. */
const YEAR = '([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])';
const DATE_PATTERN = `${YEAR}-[0-9]{2}-[0-9]{2}`;
const DASH_PATTERN = `${DATE_PATTERN}([ T]${CLOCK})?`;
const DOT_PATTERN = `${YEAR}\\.[0-9]{1,2}\\.[0-9]{1,2} ([0-9]|[01][0-9]|2[0-3]):[0-5][0-9]`;
const OFFSET_PATTERN = '(Z|[+-](0[0-9]|1[0-5]):?[0-5][0-9])';
const ZONED_PATTERN = `${DATE_PATTERN}[ T]${CLOCK}${OFFSET_PATTERN}`;
const DOT_FORMAT = "'%Y.%m.%d %H:%M'";

const MILLIS_LENGTH = 'yyyy-MM-dd HH:mm:ss.SSS'.length;

/** SQL of the TIMESTAMP of a text without a zone; NULL for any other text. */
const checkedWallTimeSql = (expr: string): string =>
  `CASE WHEN ${matchesSql(expr, DASH_PATTERN)} THEN TRY_CAST(${expr} AS TIMESTAMP) ` +
  `WHEN ${matchesSql(expr, DOT_PATTERN)} THEN TRY_STRPTIME(${expr}, ${DOT_FORMAT}) END`;

/** As `uncheckedSql` for times by a wall clock: `CAST` reads dashes, `strptime` dots. */
function uncheckedWallTimeSql(expr: string, forms: CellForms): string | undefined {
  if ((forms & DATETIME_DOT) === 0) return undefined;
  const dots = `strptime(${expr}, ${DOT_FORMAT})`;
  const hasDashes = (forms & (DATE | DATETIME_DASH)) !== 0;
  return hasDashes ? `CASE WHEN contains(${expr}, '-') THEN ${castSql(expr, 'TIMESTAMP')} ELSE ${dots} END` : dots;
}

/** SQL of the canonical text of a TIMESTAMP: `2026-01-02 03:04:00.000`, six digits if there are micros, or a date. */
function wallTextSql(wall: string, zoneMark: 'Z' | '' = ''): string {
  const micros = `epoch_us(${wall}) % ${MICROS_PER_MILLI}`;
  const length = `CASE WHEN ${micros} = 0 THEN ${MILLIS_LENGTH} ELSE ${MILLIS_LENGTH + 3} END`;
  const text = `left(strftime(${wall}, '%Y-%m-%d %H:%M:%S.%f'), ${length}) || '${zoneMark}'`;
  return `regexp_replace(${text}, ' 00:00:00\\.000$', '')`;
}

const TIME_TEMPLATE = Buffer.from('"0000-00-00T00:00:00.000"');

/** Writes a time as in TIME_TEMPLATE, with six digits if there are micros, and `Z` for an instant. */
function writeTime(time: WallTime, out: Uint8Array, at: number, hasZ: boolean): number {
  out.set(TIME_TEMPLATE, at);
  writeTwoDigits(out, at + 1, (time.year / 100) | 0);
  writeTwoDigits(out, at + 3, time.year % 100);
  writeTwoDigits(out, at + 6, time.month);
  writeTwoDigits(out, at + 9, time.day);
  writeTwoDigits(out, at + 12, time.hour);
  writeTwoDigits(out, at + 15, time.minute);
  writeTwoDigits(out, at + 18, time.second);
  let to = writeThreeDigits(out, at + 21, (time.micros / MICROS_PER_MILLI) | 0);
  if (time.micros % MICROS_PER_MILLI !== 0) to = writeThreeDigits(out, to, time.micros % MICROS_PER_MILLI);
  if (hasZ) out[to++] = UPPER_Z;
  out[to] = QUOTE;
  return to + 1;
}

function writeTwoDigits(out: Uint8Array, at: number, value: number): void {
  out[at] = ZERO + ((value / 10) | 0);
  out[at + 1] = ZERO + (value % 10);
}

function writeThreeDigits(out: Uint8Array, at: number, value: number): number {
  out[at] = ZERO + ((value / 100) | 0);
  writeTwoDigits(out, at + 1, value % 100);
  return at + 3;
}

/** The time of the cell that `writeJson` writes. */
const cellTime = new WallTime();

const datetimeSchema = (airbyteType: 'timestamp_with_timezone' | 'timestamp_without_timezone') =>
  ({ type: ['string', 'null'], format: 'date-time', airbyte_type: airbyteType }) as const;

/** Times by a wall clock: `yyyy.M.d H:mm`, `yyyy-MM-dd HH:mm:ss[.f…]` or `yyyy-MM-dd`. */
export const WALL_TIME_CODEC: ScalarCodec = {
  forms: WALL_FORMS,
  duckdbType: 'TIMESTAMP',
  jsonSchema: datetimeSchema('timestamp_without_timezone'),
  checkedSql: checkedWallTimeSql,
  uncheckedSql: uncheckedWallTimeSql,
  textSql: wallTextSql,
  writeJson(bytes, start, end, out, at) {
    cellTime.read(bytes, start, end);
    return writeTime(cellTime, out, at, false);
  },
};

/**
 * Instants of the years 1 to 9999. A cell has a UTC offset, or is a wall-clock time of the zone. The canonical text is
 * by its clock. It is in UTC where the clock shows that time once more, later, or another year than 1 to 9999.
 */
export const instantCodec = (zone: Zone): ScalarCodec => ({
  forms: WALL_FORMS | DATETIME_OFFSET,
  duckdbType: 'TIMESTAMPTZ',
  jsonSchema: datetimeSchema('timestamp_with_timezone'),
  checkedSql(expr) {
    const inRange = (instant: string) => `CASE WHEN ${isInYearRangeSql(instant)} THEN ${instant} END`;
    return (
      `CASE WHEN ${matchesSql(expr, ZONED_PATTERN)} THEN ${inRange(`TRY_CAST(${expr} AS TIMESTAMPTZ)`)} ` +
      `ELSE ${inRange(toInstantSql(checkedWallTimeSql(expr), zone))} END`
    );
  },
  uncheckedSql(expr, forms) {
    if ((forms & WALL_FORMS) === 0) return undefined;
    const instant = toInstantSql(uncheckedWallTimeSql(expr, forms) ?? castSql(expr, 'TIMESTAMP'), zone);
    if ((forms & DATETIME_OFFSET) === 0) return instant;
    const cast = castSql(expr, 'TIMESTAMPTZ');
    return `CASE WHEN regexp_matches(${expr}, '${OFFSET_PATTERN}$') THEN ${cast} ELSE ${instant} END`;
  },
  textSql(expr) {
    const wall = toWallTimeSql(expr, zone);
    const utcText = wallTextSql(`timezone('UTC', ${expr})`, 'Z');
    const isShownAgain = `${toInstantSql(wall, zone)} <> ${expr}`;
    // The clock may skip midnight: a date is the first instant of its day.
    const isDate = `${toInstantSql(`date_trunc('day', ${wall})`, zone)} = ${expr}`;
    return (
      `CASE WHEN ${isShownAgain} OR NOT (${isInYearRangeSql(wall)}) THEN ${utcText} ` +
      `WHEN ${isDate} THEN strftime(${wall}, '%Y-%m-%d') ELSE ${wallTextSql(wall)} END`
    );
  },
  writeJson(bytes, start, end, out, at) {
    const form = cellTime.read(bytes, start, end);
    const wall = cellTime.seconds;
    cellTime.setSeconds((form & DATETIME_OFFSET) === 0 ? zone.toUtc(wall) : wall - cellTime.offset);
    return writeTime(cellTime, out, at, true);
  },
});

/** `yyyy-MM-dd`, a day of the years 1 to 9999. A date has no zone, so that DATETIME_BEYOND does not concern it. */
export const DATE_CODEC: ScalarCodec = {
  forms: DATE | DATETIME_BEYOND,
  duckdbType: 'DATE',
  jsonSchema: { type: ['string', 'null'], format: 'date' },
  // `TRY_CAST` refuses the days that do not exist.
  checkedSql: (expr) => `CASE WHEN ${matchesSql(expr, DATE_PATTERN)} THEN TRY_CAST(${expr} AS DATE) END`,
  textSql: varcharSql,
  writeJson: writeString,
};
