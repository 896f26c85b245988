import { DAY_SECONDS } from './calendar.ts';
import { CYCLE, END_OF_INSTANTS, FIRST_INSTANT, type Zone, type ZoneSpan } from './zone.ts';

// SQL between instants and wall-clock times. The changes of the zone stand in it as literals: DuckDB's own database of
// time zones is never asked. Nothing here has a lambda, which `ALTER … USING` does not take (DuckDB 1.5.6).

/** More changes than these stand in a list, which `ALTER … USING` builds anew for every vector. */
const MAX_LISTED_CASES = 4;

/** A change of the offset (seconds): `offset` holds from `from` on, and no offset holds from `nullFrom` until then. */
interface Change {
  readonly nullFrom: number;
  readonly from: number;
  readonly offset: number;
}

/** SQL of the TIMESTAMPTZ of a wall-clock TIMESTAMP; NULL for a skipped time, or beyond the years 1 to 9999. */
export function sqlInstant(wall: string, zone: Zone): string {
  const micros = `epoch_us(${wall})`;
  const spans = spansOf(zone);
  const offset = offsetSql(micros, spans, (before, { from, offset }) => ({
    // A time that occurs twice still has the offset before the change.
    nullFrom: from + before,
    from: from + Math.max(before, offset),
  }));
  const instant = `make_timestamptz(${micros} - ${offset})`;
  const first = FIRST_INSTANT + spans[0].offset;
  const end = END_OF_INSTANTS + spans[spans.length - 1].offset;
  if (zone.range.first >= first && zone.range.last < end) return instant;
  return `CASE WHEN ${micros} >= ${microsOf(first)} AND ${micros} < ${microsOf(end)} THEN ${instant} END`;
}

/** SQL of the wall-clock TIMESTAMP of a TIMESTAMPTZ. */
export function sqlWall(instant: string, zone: Zone): string {
  const micros = `epoch_us(${instant})`;
  const offset = offsetSql(micros, spansOf(zone), (_, { from }) => ({ nullFrom: from, from }));
  return `make_timestamp(${micros} + ${offset})`;
}

/**
 * SQL of the wall-clock TIMESTAMP of a TIMESTAMPTZ; NULL for one that no text without an offset means: the second of
 * two with the same wall-clock time, and one whose wall-clock time is beyond the years 1 to 9999.
 */
export function sqlFirstWall(instant: string, zone: Zone): string {
  const micros = `epoch_us(${instant})`;
  const spans = spansOf(zone);
  const offset = offsetSql(micros, spans, (before, { from, offset }) => ({
    nullFrom: from,
    from: from + Math.max(0, before - offset),
  }));
  const wall = `make_timestamp(${micros} + ${offset})`;
  const first = FIRST_INSTANT - spans[0].offset;
  const end = END_OF_INSTANTS - spans[spans.length - 1].offset;
  if (zone.range.first - DAY_SECONDS >= first && zone.range.last + DAY_SECONDS < end) return wall;
  return `CASE WHEN ${micros} >= ${microsOf(first)} AND ${micros} < ${microsOf(end)} THEN ${wall} END`;
}

/** The spans of all instants in the zone's range; times after the first cycle have the spans of that cycle. */
function spansOf(zone: Zone): ZoneSpan[] {
  const [first, last] = [zone.range.first - DAY_SECONDS, zone.range.last + DAY_SECONDS];
  const end = CYCLE.from + CYCLE.seconds;
  return last < end ? zone.spans(first, last) : zone.spans(Math.min(first, CYCLE.from), end - 1);
}

/** SQL of the offset (microseconds) at `micros`, or NULL. `changeAt`: when a span replaces the one before. */
function offsetSql(
  micros: string,
  spans: readonly ZoneSpan[],
  changeAt: (before: number, span: ZoneSpan) => Omit<Change, 'offset'>,
): string {
  const changes = spans
    .slice(1)
    .map((span, i): Change => ({ ...changeAt(spans[i].offset, span), offset: span.offset }));
  const first = spans[0].offset;
  if (changes.length === 0) return `(${microsOf(first)})`;
  if (changes.length <= MAX_LISTED_CASES) return caseOf(micros, first, changes);
  const isCyclic = changes[changes.length - 1].from > CYCLE.from;
  return listed(isCyclic ? inFirstCycle(micros) : micros, first, changes);
}

function caseOf(micros: string, first: number, changes: readonly Change[]): string {
  const cases = changes.map(({ nullFrom, from }, i) => {
    const before = `WHEN ${micros} < ${microsOf(nullFrom)} THEN ${microsOf(i === 0 ? first : changes[i - 1].offset)}`;
    return nullFrom === from ? before : `${before} WHEN ${micros} < ${microsOf(from)} THEN NULL`;
  });
  return `(CASE ${cases.join(' ')} ELSE ${microsOf(changes[changes.length - 1].offset)} END)`;
}

/**
 * SQL that finds the offset in lists. Time is cut into steps as long as the shortest time between two changes, so that
 * each has one change at most. Three lists hold for each step: the time from which no offset holds, the time from which
 * the new offset holds, and the offset before that.
 */
function listed(micros: string, first: number, changes: readonly Change[]): string {
  const begin = changes[0].from;
  const end = changes[changes.length - 1].from;
  const step = changes.slice(1).reduce((least, { from }, i) => Math.min(least, from - changes[i].from), end - begin);
  const [nulls, froms, offsets]: [string[], string[], string[]] = [[], [], []];
  let next = 0;
  for (let start = begin; start <= end + step; start += step) {
    const isChanged = next < changes.length && changes[next].from < start + step;
    const change = changes.at(next);
    nulls.push(change === undefined ? NEVER : microsOf(change.nullFrom));
    froms.push(change === undefined ? NEVER : microsOf(change.from));
    offsets.push(microsOf(next === 0 ? first : changes[next - 1].offset));
    if (isChanged) next++;
  }
  const steps = `(${micros} - ${microsOf(begin)}) // ${microsOf(step)}`;
  const index = `(1 + greatest(0, least(${offsets.length - 1}, ${steps})))`;
  const element = (list: readonly string[], i: string) => `list_extract([${list.join(', ')}], ${i})`;
  return (
    `(CASE WHEN ${micros} >= ${element(froms, index)} THEN ${element(offsets, `${index} + 1`)} ` +
    `WHEN ${micros} < ${element(nulls, index)} THEN ${element(offsets, index)} END)`
  );
}

/** A time after every change (microseconds). */
const NEVER = '9223372036854775807';

/** SQL of the same time of the same weekday in the first 400 years whose rules all later years repeat. */
function inFirstCycle(micros: string): string {
  const [from, length] = [microsOf(CYCLE.from), microsOf(CYCLE.seconds)];
  return `(${micros} - ${length} * greatest(0, (${micros} - ${from}) // ${length}))`;
}

const microsOf = (seconds: number): string => (seconds === 0 ? '0' : `${seconds}000000`);
