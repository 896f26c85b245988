import { DATE, DATETIME_DASH, DATETIME_DOT, DATETIME_ZONED, NULL_TEXT } from './evidence.ts';
import { matches, withoutNullText } from './sql.ts';
import type { Evidence } from './type.ts';
import type { Zone } from './zone.ts';
import { sqlFirstWall, sqlInstant } from './zone-sql.ts';

const CLOCK = '([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?';
const DAY = '[0-9]{4}-[0-9]{2}-[0-9]{2}';
const DASH_PATTERN = `${DAY}([ T]${CLOCK})?`;
const DOT_PATTERN = '[0-9]{4}\\.[0-9]{1,2}\\.[0-9]{1,2} ([0-9]|[01][0-9]|2[0-3]):[0-5][0-9]';
const OFFSET_PATTERN = '(Z|[+-](0[0-9]|1[0-5]):?[0-5][0-9])';
const ZONED_PATTERN = `${DAY}[ T]${CLOCK}${OFFSET_PATTERN}`;
const DOT_FORMAT = "'%Y.%m.%d %H:%M'";
/** 0001-01-01 and 10000-01-01 in UTC, in microseconds. */
const FIRST_MICROS = '-62135596800000000';
const END_MICROS = '253402300800000000';
const MILLIS_LENGTH = 'yyyy-MM-dd HH:mm:ss.SSS'.length;

/** Wall-clock TIMESTAMP of a cell without a zone, NULL when it is none. */
function local(expr: string): string {
  return (
    `CASE WHEN starts_with(${expr}, '0000') THEN NULL ` +
    `WHEN ${matches(expr, DASH_PATTERN)} THEN TRY_CAST(${expr} AS TIMESTAMP) ` +
    `WHEN ${matches(expr, DOT_PATTERN)} THEN TRY_STRPTIME(${expr}, ${DOT_FORMAT}) END`
  );
}

/** The same when the forms are known: `CAST` reads the dashes, `strptime` the dots. */
function localClean(expr: string, evidence: Evidence): string {
  const cast = `CAST(${expr} AS TIMESTAMP)`;
  const dots = `strptime(${expr}, ${DOT_FORMAT})`;
  if ((evidence & DATETIME_DOT) === 0) return cast;
  if ((evidence & (DATE | DATETIME_DASH)) === 0) return dots;
  return `CASE WHEN contains(${expr}, '-') THEN ${cast} ELSE ${dots} END`;
}

function inYears(micros: string): string {
  return `${micros} >= ${FIRST_MICROS} AND ${micros} < ${END_MICROS}`;
}

/** TIMESTAMP, or with a zone TIMESTAMPTZ, of a cell; NULL when it is none or the zone skips it. */
export function sqlDatetime(expr: string, zone: Zone | undefined): string {
  const wall = local(expr);
  if (zone === undefined) return wall;
  const own = `TRY_CAST(${expr} AS TIMESTAMPTZ)`;
  return (
    `CASE WHEN starts_with(${expr}, '0000') THEN NULL ` +
    `WHEN ${matches(expr, ZONED_PATTERN)} THEN CASE WHEN ${inYears(`epoch_us(${own})`)} THEN ${own} END ` +
    `ELSE ${sqlInstant(wall, zone)} END`
  );
}

/** The same for cells that all fit and have no other forms than `evidence` names. */
export function sqlDatetimeClean(expr: string, evidence: Evidence, zone: Zone | undefined): string {
  const present = (evidence & NULL_TEXT) === 0 ? expr : withoutNullText(expr);
  const wall = localClean(present, evidence);
  if (zone === undefined) return wall;
  const instant = sqlInstant(wall, zone);
  if ((evidence & DATETIME_ZONED) === 0) return instant;
  const own = `CAST(${present} AS TIMESTAMPTZ)`;
  if ((evidence & (DATE | DATETIME_DASH | DATETIME_DOT)) === 0) return own;
  return `CASE WHEN regexp_matches(${present}, '[^-.]${OFFSET_PATTERN}$') THEN ${own} ELSE ${instant} END`;
}

/**
 * `2026-01-02 03:04:00.000`, six digits where there are micros: the zone's wall clock where there is a zone. The second
 * of two equal wall-clock times is told from the first by being written in UTC, with a Z.
 */
export function sqlDatetimeText(expr: string, zone: Zone | undefined): string {
  const length = `CASE WHEN epoch_us(${expr}) % 1000 = 0 THEN ${MILLIS_LENGTH} ELSE ${MILLIS_LENGTH + 3} END`;
  const text = (wall: string) => `left(strftime(${wall}, '%Y-%m-%d %H:%M:%S.%f'), ${length})`;
  if (zone === undefined) return text(expr);
  return `coalesce(${text(sqlFirstWall(expr, zone))}, ${text(`make_timestamp(epoch_us(${expr}))`)} || 'Z')`;
}
