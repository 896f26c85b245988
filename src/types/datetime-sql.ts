import { DATE, DATETIME_DASH, DATETIME_DOT, DATETIME_OVERLAP, DATETIME_ZONED, NULL_TEXT } from './evidence.ts';
import { literal, matches, withoutNullText } from './sql.ts';
import type { Evidence } from './type.ts';
import type { Zone } from './zone.ts';

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
const DAY_MICROS = '86400000000';

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

/** How a value that is needed more than once gets into an expression, under a name or as it stands. */
type Bind = (name: string, value: string, body: (value: string) => string) => string;

/** Computes it once: a conversion between zones costs more than all else here. SQL has no other `let`. */
const once: Bind = (name, value, body) => `list_transform([${value}], lambda ${name}: ${body(name)})[1]`;

/** Repeats it: DuckDB 1.5.6 fails an assertion, and the database with it, on nested lambdas in `ALTER … USING`. */
const repeated: Bind = (_name, value, body) => body(`(${value})`);

/**
 * The instant, in microseconds, of the wall-clock TIMESTAMP `wall`. DuckDB takes the later of two; the earlier is the
 * one whose offset held a day before, if the zone shows the same time there.
 */
function earliestMicros(wall: string, zone: string, bind: Bind): string {
  return bind('u', `epoch_us(timezone(${zone}, ${wall}))`, (later) => {
    const dayBefore = `make_timestamptz(${later} - ${DAY_MICROS})`;
    const offset = `(epoch_us(timezone(${zone}, ${dayBefore})) - ${later} + ${DAY_MICROS})`;
    return bind('e', `epoch_us(${wall}) - ${offset}`, (earlier) => {
      const isSame = `timezone(${zone}, make_timestamptz(${earlier})) = ${wall}`;
      return `CASE WHEN ${earlier} >= ${later} THEN ${later} WHEN ${isSame} THEN ${earlier} ELSE ${later} END`;
    });
  });
}

function inYears(micros: string): string {
  return `${micros} >= ${FIRST_MICROS} AND ${micros} < ${END_MICROS}`;
}

/** TIMESTAMP, or with a zone TIMESTAMPTZ, of a cell; NULL when it is none or the zone skips it. */
export function sqlDatetime(expr: string, zone: Zone | undefined): string {
  const wall = local(expr);
  if (zone === undefined) return wall;
  const name = literal(zone.name);
  const instant = once('w', wall, (w) =>
    once('m', earliestMicros(w, name, once), (m) => {
      const exists = `timezone(${name}, make_timestamptz(${m})) = ${w}`;
      return `CASE WHEN ${inYears(m)} AND ${exists} THEN make_timestamptz(${m}) END`;
    }),
  );
  const own = `TRY_CAST(${expr} AS TIMESTAMPTZ)`;
  return (
    `CASE WHEN starts_with(${expr}, '0000') THEN NULL ` +
    `WHEN ${matches(expr, ZONED_PATTERN)} THEN CASE WHEN ${inYears(`epoch_us(${own})`)} THEN ${own} END ` +
    `ELSE ${instant} END`
  );
}

/** The same for cells that all fit and have no other forms than `evidence` names. */
export function sqlDatetimeClean(expr: string, evidence: Evidence, zone: Zone | undefined): string {
  const present = (evidence & NULL_TEXT) === 0 ? expr : withoutNullText(expr);
  const wall = localClean(present, evidence);
  if (zone === undefined) return wall;
  const name = literal(zone.name);
  const first = () => once('w', wall, (w) => `make_timestamptz(${earliestMicros(w, name, once)})`);
  const instant = (evidence & DATETIME_OVERLAP) === 0 ? `timezone(${name}, ${wall})` : first();
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
  if (zone === undefined) return wallText(expr);
  const name = literal(zone.name);
  const wall = `timezone(${name}, ${expr})`;
  const isFirst = `${earliestMicros(wall, name, repeated)} = epoch_us(${expr})`;
  return `CASE WHEN ${isFirst} THEN ${wallText(wall)} ELSE ${wallText(`timezone('UTC', ${expr})`)} || 'Z' END`;
}

function wallText(wall: string): string {
  const millis = `strftime(${wall}, '%Y-%m-%d %H:%M:%S.%g')`;
  const micros = `strftime(${wall}, '%Y-%m-%d %H:%M:%S.%f')`;
  return `CASE WHEN epoch_us(${wall}) % 1000 = 0 THEN ${millis} ELSE ${micros} END`;
}
