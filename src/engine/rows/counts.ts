import type { Day } from '../../base/days.ts';
import { DETAIL_LOG_ID } from '../../cells/columns/groups.ts';
import { asText } from '../../cells/types/sql.ts';
import { type PlannedBatch, rescuesNothing } from '../../table/batch-plan.ts';
import type { KeyFaults } from '../../table/differences.ts';
import type { StoredColumn } from '../../table/tables.ts';
import type { Engine } from '../session/engine.ts';
import { columnOfSource } from '../views.ts';

// Counts of rows. `from` is a relation with rows of `events`, and perhaps a condition.

export async function rowsByDay(engine: Engine, from: string): Promise<Map<Day, number>> {
  const rows = await engine.rows(`
    SELECT CAST(event_date AS VARCHAR) AS day, count(*) AS n
    FROM ${from}
    GROUP BY 1
    ORDER BY 1`);
  return new Map(rows.map(({ day, n }) => [String(day), Number(n)]));
}

/** SQL of what is the same for a row that two neighbouring days have: its id, else its key. */
export const identity = (columns: readonly StoredColumn[]): string =>
  `coalesce(${asText(columnOfSource(columns, DETAIL_LOG_ID))}, _key)`;

/** Counts faults of keys. Keys that may occur twice are found by their hashes, which take less memory than texts. */
export async function countKeyFaults(engine: Engine, from: string): Promise<KeyFaults> {
  const { absent, repeated, shared } = await engine.row(`
    WITH many AS MATERIALIZED (SELECT hash(_key) FROM ${from} GROUP BY ALL HAVING count(*) > 1),
    keyed AS MATERIALIZED (
      SELECT _key, event_date, count(*) AS n
      FROM ${from}
      WHERE hash(_key) IN (FROM many)
      GROUP BY ALL
    )
    SELECT
      (SELECT count(*) FROM ${from} WHERE _key IS NULL) AS absent,
      (SELECT count(*) FROM keyed WHERE n > 1 AND _key IS NOT NULL) AS repeated,
      (SELECT count(*) FROM (SELECT _key FROM keyed WHERE _key IS NOT NULL GROUP BY _key HAVING count(*) > 1)) AS shared`);
  return { absent: Number(absent), repeated: Number(repeated), shared: Number(shared) };
}

/** Counts the cells that a batch put into `_rescued`, by source column; `from` has its rows. */
export async function countRescued(
  engine: Engine,
  batch: PlannedBatch,
  from: string,
): Promise<ReadonlyMap<string, number>> {
  return rescuesNothing(batch) ? new Map() : rescuedCells(engine, from);
}

/** Counts cells in `_rescued` by source column. */
export async function rescuedCells(engine: Engine, from: string): Promise<Map<string, number>> {
  const rows = await engine.rows(`
    SELECT name, count(*) AS n
    FROM (
      SELECT unnest(json_keys(CAST(_rescued AS JSON))) AS name
      FROM ${from}
      WHERE _rescued IS NOT NULL
    )
    GROUP BY name
    ORDER BY name`);
  return new Map(rows.map(({ name, n }) => [String(name), Number(n)]));
}
