import type { Day } from '../../base/days.ts';
import { identifier } from '../../base/sql.ts';
import { EVENT_NAME, LOG_ID, SERVER_DATETIME } from '../../cells/header.ts';
import type { Zone } from '../../cells/types/zone.ts';
import { rescueKey, type StoredColumn } from '../../table/tables.ts';
import { columnValueSql, localTimeSql } from '../column-sql.ts';
import type { Engine } from '../session/engine.ts';
import { aggregateColumns, countRescuedByKey } from './row-counts.ts';

/** What a report counts in the rows of a place: names, counts and dates, but no values of people. */
export interface ReportCounts {
  readonly rows: number;
  /** Newest `df_server_datetime`. */
  readonly lastEventAt: string | null;
  /** The events of each day by their name, which is null for all but the most frequent names. */
  readonly eventCounts: readonly { readonly day: Day; readonly name: string | null; readonly count: number }[];
  readonly columns: readonly (Pick<StoredColumn, 'name' | 'source' | 'group' | 'type'> & {
    /** Number of rows with a value. */
    readonly filledRows: number;
    /** Number of cells in `_rescued`. */
    readonly rescuedCells: number;
  })[];
}

/** Maximum number of event names that a report counts individually; the others are counted together. */
const MAX_REPORTED_NAMES = 8;

/**
 * Counts for a report. `relation` is SQL after FROM that gives all rows, with `_rescued`. `zone` is that of the
 * datetimes, where they are instants.
 */
export async function countForReport(
  engine: Engine,
  relation: string,
  columns: readonly StoredColumn[],
  zone: Zone | undefined,
): Promise<ReportCounts> {
  const serverTimeSql = columnValueSql(columns, SERVER_DATETIME, 'datetime', zone);
  const { rows, last_event_at: lastEventAt } = await engine.row(`
    SELECT count(*) AS rows, CAST(${localTimeSql(`max(${serverTimeSql})`, zone)} AS VARCHAR) AS last_event_at
    FROM ${relation}`);
  return {
    rows: Number(rows),
    lastEventAt: typeof lastEventAt === 'string' ? lastEventAt : null,
    eventCounts: await countEvents(engine, relation, columns, zone),
    columns: await countColumns(engine, relation, columns),
  };
}

/** Counts the events of each `event_date`, the most frequent names separately. */
async function countEvents(
  engine: Engine,
  relation: string,
  columns: readonly StoredColumn[],
  zone: Zone | undefined,
): Promise<ReportCounts['eventCounts']> {
  const eventNameSql = columnValueSql(columns, EVENT_NAME, 'string', zone);
  const logIdSql = columnValueSql(columns, LOG_ID, 'string', zone);
  // Hashes take less memory than ids.
  const rows = await engine.rows(`
    WITH counts AS MATERIALIZED (
      SELECT event_date AS day, ${eventNameSql} AS name, count(DISTINCT hash(coalesce(${logIdSql}, _key))) AS events
      FROM ${relation}
      GROUP BY ALL
    ),
    frequent AS (
      SELECT name
      FROM counts
      WHERE name IS NOT NULL
      GROUP BY name
      ORDER BY sum(events) DESC, name
      LIMIT ${MAX_REPORTED_NAMES}
    )
    SELECT
      CAST(day AS VARCHAR) AS day,
      CASE WHEN name IN (SELECT name FROM frequent) THEN name END AS name,
      CAST(sum(events) AS BIGINT) AS events
    FROM counts
    GROUP BY ALL
    ORDER BY day, name`);
  return rows.map((row) => ({
    day: String(row.day) as Day,
    name: typeof row.name === 'string' ? row.name : null,
    count: Number(row.events),
  }));
}

/** Counts for every column its rows with a value, and its cells in `_rescued`. */
async function countColumns(engine: Engine, relation: string, columns: readonly StoredColumn[]) {
  // A column without a type is not in the table.
  const countSqls = columns.map(({ name, type }) => `count(${type === null ? 'NULL' : identifier(name)})`);
  const filledRows = await aggregateColumns(engine, relation, countSqls);
  const rescuedCells = await countRescuedByKey(engine, relation);
  return columns.map((column, i) => {
    return { ...column, filledRows: Number(filledRows[i]), rescuedCells: rescuedCells.get(rescueKey(column)) ?? 0 };
  });
}
