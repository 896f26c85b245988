import type { PlannedColumn } from '../../../table/plan.ts';
import type { Engine } from '../engine/engine.ts';

/** Cells in `_rescued` by source column. `from`: a relation with that column. */
export async function rescuedCells(engine: Engine, from: string): Promise<Map<string, number>> {
  const rows = await engine.rows(
    `SELECT name, count(*) AS n FROM (SELECT unnest(json_keys(CAST(_rescued AS JSON))) AS name FROM ${from}
    WHERE _rescued IS NOT NULL) GROUP BY name ORDER BY name`,
  );
  return new Map(rows.map(({ name, n }) => [String(name), Number(n)]));
}

/** The same of the rows of a batch, which are not read where its plan rescues nothing; undefined: it has no row. */
export async function rescuedOfBatch(
  engine: Engine,
  from: string | undefined,
  plan: readonly PlannedColumn[],
): Promise<Map<string, number>> {
  const rescuesNothing = plan.every((column) => column.isClean && !column.isRefused);
  return from === undefined || rescuesNothing ? new Map() : rescuedCells(engine, from);
}
