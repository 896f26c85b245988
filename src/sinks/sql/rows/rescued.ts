import type { PlannedColumn } from '../../../table/plan.ts';
import type { Engine } from '../engine/engine.ts';

/**
 * Cells of a window that went to `_rescued`, by source column. `from`: what follows FROM for the rows of the window;
 * undefined when it has none.
 */
export async function rescuedCounts(
  engine: Engine,
  from: string | undefined,
  columns: readonly PlannedColumn[],
): Promise<Map<string, number>> {
  if (from === undefined || columns.every((column) => column.isClean && !column.isRefused)) return new Map();
  const rows = await engine.rows(
    `SELECT key, count(*) AS n FROM (SELECT unnest(json_keys(_rescued)) AS key FROM ${from}
    WHERE _rescued IS NOT NULL) GROUP BY key ORDER BY key`,
  );
  return new Map(rows.map((row) => [String(row.key), Number(row.n)]));
}
