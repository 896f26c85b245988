import type { Day } from '../base/days.ts';
import { EVENT_NAME, LOG_ID, SERVER_DATETIME } from '../cells/columns/groups.ts';
import type { Zone } from '../cells/types/zone.ts';
import { type StoredColumn, typedColumns } from '../table/columns.ts';
import { REPORTED_NAMES, type ReportedColumn, type ReportedEvents, type TargetReport } from '../table/place-report.ts';
import { rescuedCells } from './rows/counts.ts';
import type { Engine, Row } from './session/engine.ts';
import { identifier } from './session/quote.ts';
import { localTime, occurredAt } from './times.ts';
import { columnOfSource } from './views.ts';

export interface ReportSource {
  /** SQL of all rows, with `_rescued`, as it may stand after FROM. */
  readonly events: string;
  readonly columns: readonly StoredColumn[];
  /** The zone of the datetimes, where they are instants. */
  readonly zone: Zone | undefined;
}

const COUNTED_AT_ONCE = 200;
const HOURS = 24;

type CountedRows = Pick<TargetReport, 'rows' | 'lastEventAt' | 'events' | 'hours'>;

export const NO_EVENTS: CountedRows = { rows: 0, lastEventAt: null, events: [], hours: Array(HOURS).fill(0) };

/** Counts for a report in the rows; `columns` may be the system columns alone. */
export async function countEvents(engine: Engine, { events, columns, zone }: ReportSource): Promise<CountedRows> {
  const typed = typedColumns(columns);
  const columnOf = (name: string) => columnOfSource(typed, name);
  const { rows, last } = await engine.row(`
    SELECT count(*) AS rows, CAST(${localTime(`max(${columnOf(SERVER_DATETIME)})`, zone)} AS VARCHAR) AS last
    FROM ${events}`);
  // A row an event. Hashes take less memory than ids, and a least time less than the row of the lowest position.
  const logs = `(
    SELECT
      event_date AS day, ${columnOf(EVENT_NAME)} AS name, hash(coalesce(${columnOf(LOG_ID)}, _key)) AS event,
      min(${occurredAt(columnOf)}) AS occurred
    FROM ${events}
    GROUP BY ALL
  )`;
  return {
    rows: Number(rows),
    lastEventAt: typeof last === 'string' ? last : null,
    events: await eventsByDay(engine, logs),
    hours: await eventsByHour(engine, logs, zone),
  };
}

/** Events of each `event_date`, the most frequent names separately. */
async function eventsByDay(engine: Engine, logs: string): Promise<ReportedEvents[]> {
  const found = await engine.rows(`
    WITH counted AS MATERIALIZED (SELECT day, name, count(*) AS n FROM ${logs} GROUP BY ALL),
    frequent AS (
      SELECT name
      FROM counted
      WHERE name IS NOT NULL
      GROUP BY name
      ORDER BY sum(n) DESC, name
      LIMIT ${REPORTED_NAMES}
    )
    SELECT
      CAST(day AS VARCHAR) AS day,
      CASE WHEN name IN (SELECT name FROM frequent) THEN name END AS name,
      CAST(sum(n) AS BIGINT) AS events
    FROM counted
    GROUP BY ALL
    ORDER BY day, name`);
  return found.map((row: Row) => ({
    day: String(row.day) as Day,
    name: typeof row.name === 'string' ? row.name : null,
    events: Number(row.events),
  }));
}

async function eventsByHour(engine: Engine, logs: string, zone: Zone | undefined): Promise<number[]> {
  const found = await engine.rows(`
    SELECT date_part('hour', ${localTime('occurred', zone)}) AS hour, count(*) AS events
    FROM ${logs}
    WHERE occurred IS NOT NULL
    GROUP BY hour`);
  const hours = new Map(found.map(({ hour, events }) => [Number(hour), Number(events)]));
  return Array.from({ length: HOURS }, (_, hour) => hours.get(hour) ?? 0);
}

/** Counts for every column its rows with a value, and its cells in `_rescued`. */
export async function countColumns(
  engine: Engine,
  { events, columns }: Pick<ReportSource, 'events' | 'columns'>,
): Promise<ReportedColumn[]> {
  const filled = new Map<string, number>();
  const typed = typedColumns(columns);
  for (let i = 0; i < typed.length; i += COUNTED_AT_ONCE) {
    const some = typed.slice(i, i + COUNTED_AT_ONCE);
    const counts = some.map(({ name }, n) => `count(${identifier(name)}) AS c${n}`);
    const row = await engine.row(`SELECT ${counts.join(', ')} FROM ${events}`);
    some.forEach(({ name }, n) => {
      filled.set(name, Number(row[`c${n}`]));
    });
  }
  return reportedColumns(columns, filled, await rescuedCells(engine, events));
}

/** `filled`: rows with a value by name; `rescued`: cells by source name. */
export function reportedColumns(
  columns: readonly StoredColumn[],
  filled: ReadonlyMap<string, number> = new Map(),
  rescued: ReadonlyMap<string, number> = new Map(),
): ReportedColumn[] {
  return columns.map(({ name, source, group, type }) => ({
    name,
    source,
    group,
    type,
    filled: filled.get(name) ?? 0,
    rescued: rescued.get(source) ?? 0,
  }));
}
