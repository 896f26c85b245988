import type { Receipt } from '../../extract/window.ts';
import { DETAIL_LOG_ID } from '../../schema/groups.ts';
import type { StoredColumn } from '../../table/columns.ts';
import { overlapOf, type StoredWindow } from '../../table/receipts.ts';
import type { Zone } from '../../types/zone.ts';
import type { Engine } from '../sql/engine/engine.ts';
import { countNumbered, findSupersededRows, RENUMBERED, type Reread, renumber } from '../sql/rows/superseded.ts';
import { nameOf } from '../sql/views.ts';

/** A window whose rows are in `events` already. */
interface LoadedWindow {
  readonly number: number;
  readonly receipt: Receipt;
  /** True if the service is known to leave `to_date` out. */
  readonly isExclusive: boolean;
  readonly hasRowsWithoutId: boolean;
  /** True if the ids of the window are its keys as they stand. */
  readonly idsAreKeys: boolean;
}

/** The windows of a batch, in order, and what `events` holds beside them. */
export interface LoadedBatch {
  readonly windows: readonly LoadedWindow[];
  readonly columns: readonly StoredColumn[];
  readonly zone: Zone | undefined;
  /** Older windows that have rows of their own. */
  readonly live: readonly StoredWindow[];
}

/** What a batch did to rows. */
interface Superseded {
  /** Rows that are gone. */
  readonly removed: number;
  /** Rows whose key has a number, because another row has their id, by window. */
  readonly idRepeats: ReadonlyMap<number, number>;
}

const rowsOf = (number: number): string => `(SELECT * FROM events WHERE _dfinery_window = ${number})`;

/**
 * Removes the rows that the windows of a batch supersede (S13) and gives rows whose key is taken another number, as if the windows
 * came one by one. Inside a transaction.
 */
export async function supersede(engine: Engine, batch: LoadedBatch): Promise<Superseded> {
  const { windows, columns, live } = batch;
  const isAlone = live.length === 0 && windows.length === 1;
  const together = isAlone ? 0 : await removeTogether(engine, batch);
  let removed = together ?? 0;
  const idRepeats = new Map<number, number>();
  for (const [i, window] of windows.entries()) {
    let isNumbered = !window.idsAreKeys;
    if (together === undefined) {
      const earlier = windows.slice(0, i).map(({ number, receipt: { from, to } }) => ({ number, from, to }));
      const merged = await merge(engine, window, { ...batch, live: [...live, ...earlier] });
      removed += merged.removed;
      isNumbered ||= merged.renumbered > 0;
    }
    if (isNumbered) idRepeats.set(window.number, await countNumbered(engine, rowsOf(window.number), columns));
  }
  return { removed, idRepeats };
}

/**
 * Removes superseded rows in one pass, if the batch is as nearly all are: every row has an id, no key a number, and the rows that share
 * an id with a window of the batch belong to a window all of whose days it re-reads. Else removes nothing and gives undefined.
 */
async function removeTogether(engine: Engine, { windows, columns, live }: LoadedBatch): Promise<number | undefined> {
  if (windows.some(({ hasRowsWithoutId, receipt }) => hasRowsWithoutId && receipt.rows > 0)) return undefined;
  /** By an older window the one of the batch that re-reads it whole. */
  const rereadBy = new Map<number, number>();
  for (const { number, receipt, isExclusive } of windows) {
    for (const stored of overlapOf(live, receipt, isExclusive).within) rereadBy.set(stored, number);
  }
  const first = windows[0].number;
  const id = nameOf(columns, DETAIL_LOG_ID);
  const incoming = `(SELECT CAST(${id} AS VARCHAR) AS id, _dfinery_window AS w FROM events WHERE _dfinery_window >= ${first})`;
  const pairs = [...rereadBy].map(([stored, number]) => `WHEN ${stored} THEN ${number}`);
  const next = pairs.length === 0 ? 'NULL' : `CASE _dfinery_window ${pairs.join(' ')} END`;
  const { others } = await engine.row(
    `SELECT (SELECT count(*) FROM events WHERE _dfinery_window >= ${first} AND contains(_key, '#')) +
      (SELECT count(*) FROM events JOIN ${incoming} i ON i.id = CAST(${id} AS VARCHAR)
       WHERE _dfinery_window < i.w AND i.w IS DISTINCT FROM ${next}) AS others`,
  );
  if (Number(others) > 0) return undefined;
  if (rereadBy.size === 0) return 0;
  return engine.run(
    `DELETE FROM events WHERE _dfinery_window IN (${[...rereadBy.keys()].join(', ')})
    AND (CAST(${id} AS VARCHAR), ${next}) IN (SELECT id, w FROM ${incoming})`,
  );
}

/** Removes the rows of earlier windows that one window supersedes, whatever their ids mean. */
async function merge(engine: Engine, window: LoadedWindow, { columns, zone, live }: LoadedBatch) {
  const { number, receipt, isExclusive, hasRowsWithoutId } = window;
  const others = `events WHERE _dfinery_window < ${number}`;
  const stored = `(SELECT * FROM ${others})`;
  const overlap = overlapOf(live, receipt, isExclusive);
  const reread: Reread = { stored, incoming: rowsOf(number), columns, hasRowsWithoutId, overlap, zone };
  const found = await findSupersededRows(engine, reread);
  let removed = 0;
  for (const condition of found.conditions) removed += await engine.run(`DELETE FROM ${others} AND ${condition}`);
  const renumbered = await renumber(engine, reread, found, stored);
  if (renumbered > 0) {
    await engine.run(
      `UPDATE events SET _key = r.next FROM ${RENUMBERED} r WHERE _dfinery_window = ${number} AND events._key = r.key`,
    );
  }
  return { removed, renumbered };
}
