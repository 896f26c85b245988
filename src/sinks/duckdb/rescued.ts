import type { Engine } from './engine.ts';
import type { PlannedColumn } from './plan.ts';

/** Cells of window `number` that went to `_rescued`, by source column. */
export async function rescuedCounts(
  engine: Engine,
  number: number,
  columns: readonly PlannedColumn[],
): Promise<Map<string, number>> {
  if (columns.every((column) => column.isClean && !column.isRefused)) return new Map();
  const rows = await engine.rows(
    `SELECT key, count(*) AS n FROM (SELECT unnest(json_keys(_rescued)) AS key FROM events
    WHERE _dfinery_window = ${number} AND _rescued IS NOT NULL) GROUP BY key ORDER BY key`,
  );
  return new Map(rows.map((row) => [String(row.key), Number(row.n)]));
}
