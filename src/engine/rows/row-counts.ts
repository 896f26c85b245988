import type { Day } from '../../base/days.ts';
import type { Engine } from '../session/engine.ts';

// Counts of rows, and other aggregates over them. `relation` is SQL after FROM that gives rows of a table, or of a file
// with its columns.

/** Maximum number of columns that a query reads: blocks of all of them are in memory. */
const COLUMNS_PER_QUERY = 200;

/** The values of aggregates of one column each, over all rows. */
export async function aggregateColumns(
  engine: Engine,
  relation: string,
  aggregateSqls: readonly string[],
): Promise<unknown[]> {
  const values: unknown[] = [];
  for (let i = 0; i < aggregateSqls.length; i += COLUMNS_PER_QUERY) {
    const select = aggregateSqls.slice(i, i + COLUMNS_PER_QUERY).map((sql, n) => `${sql} AS c${n}`);
    values.push(...Object.values(await engine.row(`SELECT ${select.join(', ')} FROM ${relation}`)));
  }
  return values;
}

/** Counts rows by day. `relation` may end with WHERE and a condition. `daySql`: SQL of the day of a row. */
export async function countRowsByDay(
  engine: Engine,
  relation: string,
  daySql = 'event_date',
): Promise<Map<Day, number>> {
  const rows = await engine.rows(`
    SELECT CAST(${daySql} AS VARCHAR) AS day, count(*) AS n
    FROM ${relation}
    GROUP BY 1
    ORDER BY 1`);
  return new Map(rows.map(({ day, n }) => [String(day), Number(n)]));
}

/** Counts cells in `_rescued` by their key there, the `rescueKey` of their column. */
export async function countRescuedByKey(engine: Engine, relation: string): Promise<Map<string, number>> {
  const rows = await engine.rows(`
    SELECT name, count(*) AS n
    FROM (
      SELECT unnest(json_keys(CAST(_rescued AS JSON))) AS name
      FROM ${relation}
      WHERE _rescued IS NOT NULL
    )
    GROUP BY name
    ORDER BY name`);
  return new Map(rows.map(({ name, n }) => [String(name), Number(n)]));
}
