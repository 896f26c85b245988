import type { Engine } from '../sql/engine/engine.ts';
import { identifier } from '../sql/engine/quote.ts';
import { HASH_KEY_LENGTH } from '../sql/rows/keys.ts';

/**
 * Removes the rows that older windows wrote and whose base id occurs in window `number`, and takes them off the
 * `rows_live` of those windows' receipts. `idName`: the table column of the id. Inside a transaction; returns the count.
 */
export async function removeReplaced(
  engine: Engine,
  number: number,
  idName: string,
  hasRowsWithoutId: boolean,
): Promise<number> {
  const before = await liveRows(engine, number);
  if (before.size === 0) return 0;
  const id = identifier(idName);
  const base = `left(_key, ${HASH_KEY_LENGTH})`;
  let removed = await engine.run(
    `DELETE FROM events WHERE _dfinery_window <> ${number} AND ${id} IN
    (SELECT ${id} FROM events WHERE _dfinery_window = ${number} AND ${id} IS NOT NULL)`,
  );
  if (hasRowsWithoutId) {
    removed += await engine.run(
      `DELETE FROM events WHERE _dfinery_window <> ${number} AND ${id} IS NULL AND ${base} IN
      (SELECT ${base} FROM events WHERE _dfinery_window = ${number} AND ${id} IS NULL)`,
    );
  }
  if (removed > 0) await takeOff(engine, before, await liveRows(engine, number));
  return removed;
}

/** Rows by window, of all windows but one. */
async function liveRows(engine: Engine, except: number): Promise<Map<number, number>> {
  const rows = await engine.rows(
    `SELECT _dfinery_window AS w, count(*) AS n FROM events WHERE _dfinery_window <> ${except} GROUP BY 1`,
  );
  return new Map(rows.map((row) => [Number(row.w), Number(row.n)]));
}

/** Subtracts what is gone, so that a receipt that was wrong before stays wrong and `verify` sees it. */
async function takeOff(engine: Engine, before: Map<number, number>, after: Map<number, number>): Promise<void> {
  for (const [window, had] of before) {
    const gone = had - (after.get(window) ?? 0);
    if (gone === 0) continue;
    await engine.run(`UPDATE _dfinery_windows SET rows_live = rows_live - ${gone} WHERE number = ${window}`);
  }
}
