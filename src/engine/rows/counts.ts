import { EVENT_NAME } from '../../cells/columns/groups.ts';
import { asText } from '../../cells/types/sql.ts';
import type { Window } from '../../extract/window.ts';
import type { StoredColumn } from '../../table/columns.ts';
import type { PlannedColumn } from '../../table/plan.ts';
import { MAX_EVENT_NAMES } from '../../table/state.ts';
import type { Engine } from '../session/engine.ts';
import { MisreadFile } from '../session/faults.ts';
import { columnOfSource } from '../views.ts';

// Counts of rows of `events`. `from` is a relation with such rows, and perhaps a condition.

/** Counts rows by the number of the window that wrote them last. */
export async function rowsByWindow(engine: Engine, from: string): Promise<Map<number, number>> {
  const rows = await engine.rows(`
    SELECT _dfinery_window AS w, count(*) AS n
    FROM ${from}
    GROUP BY 1
    ORDER BY 1`);
  return new Map(rows.map(({ w, n }) => [Number(w), Number(n)]));
}

/** Throws unless as many rows `came` as the window's export has. `place` is where they were to be stored. */
export function checkRowCount({ receipt: { from, to, rows } }: Window, came: number, place: string): void {
  if (came === rows) return;
  throw new MisreadFile(`a window of ${rows} rows came to ${came}: nothing of it was kept. Please report it.`, {
    where: { window: `${from}..${to}`, file: place },
  });
}

/** Counts the rows without a key, and the keys that are not unique. */
export async function countKeyFaults(
  engine: Engine,
  from: string,
): Promise<{ readonly absent: number; readonly repeated: number }> {
  const { absent, repeated } = await engine.row(`
    SELECT
      count(*) FILTER (_key IS NULL) AS absent,
      (
        SELECT count(*)
        FROM (SELECT _key FROM ${from} WHERE _key IS NOT NULL GROUP BY _key HAVING count(*) > 1)
      ) AS repeated
    FROM ${from}`);
  return { absent: Number(absent), repeated: Number(repeated) };
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

/** Counts the rescued cells of a batch, which may have no row, by source column. */
export async function rescuedOfBatch(
  engine: Engine,
  from: string | undefined,
  plan: readonly PlannedColumn[],
): Promise<Map<string, number>> {
  const rescuesNothing = plan.every((column) => column.isClean && !column.isRefused);
  return from === undefined || rescuesNothing ? new Map() : rescuedCells(engine, from);
}

/** The names of events among rows, sorted, at most as many as a target keeps. */
export async function eventNamesIn(engine: Engine, from: string, columns: readonly StoredColumn[]): Promise<string[]> {
  const name = asText(columnOfSource(columns, EVENT_NAME));
  const rows = await engine.rows(`
    SELECT DISTINCT ${name} AS name
    FROM ${from}
    WHERE ${name} IS NOT NULL
    ORDER BY 1
    LIMIT ${MAX_EVENT_NAMES}`);
  return rows.map((row) => String(row.name));
}
