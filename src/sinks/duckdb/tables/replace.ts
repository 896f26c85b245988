import type { Receipt, State } from '../../../extract/window.ts';
import type { StoredColumn } from '../../sql/columns/stored.ts';
import type { Engine } from '../../sql/engine/engine.ts';
import {
  countNumbered,
  findReadAgain,
  overlapOf,
  RENUMBERED,
  type Rereading,
  renumber,
} from '../../sql/rows/read-again.ts';
import { readLiveWindows } from './receipts.ts';

/** A window whose rows are in `events` already. */
export interface LoadedWindow {
  readonly number: number;
  readonly receipt: Receipt;
  readonly state: State;
  readonly columns: readonly StoredColumn[];
  readonly hasRowsWithoutId: boolean;
  /** True when the ids of the window are its keys as they stand. */
  readonly idsAreKeys: boolean;
}

/** What a window did to the rows of older ones. */
export interface Replaced {
  /** Rows of older windows that were read again and are gone. */
  readonly removed: number;
  /** Rows of the window whose key has a number, because another row has their id. */
  readonly idRepeats: number;
}

/**
 * Removes the rows that a window reads again (S13) and takes them off the `rows_live` of their receipts; gives rows of
 * the window whose key is taken another number. Inside a transaction.
 */
export async function replaceRows(engine: Engine, window: LoadedWindow): Promise<Replaced> {
  const { number, columns } = window;
  const incoming = `(SELECT * FROM events WHERE _dfinery_window = ${number})`;
  const before = await liveRows(engine, number);
  const changes = before.size === 0 ? NOTHING : await merge(engine, window, incoming);
  if (changes.removed > 0) await subtractRows(engine, before, await liveRows(engine, number));
  const isNumbered = changes.renumbered > 0 || !window.idsAreKeys;
  return { removed: changes.removed, idRepeats: isNumbered ? await countNumbered(engine, incoming, columns) : 0 };
}

const NOTHING = { removed: 0, renumbered: 0 };

async function merge(engine: Engine, window: LoadedWindow, incoming: string): Promise<typeof NOTHING> {
  const { number, receipt, state, columns, hasRowsWithoutId } = window;
  const others = `events WHERE _dfinery_window <> ${number}`;
  const stored = `(SELECT * FROM ${others})`;
  const overlap = overlapOf(await readLiveWindows(engine), receipt, state.to_date_inclusive === false);
  const rereading: Rereading = { stored, incoming, columns, hasRowsWithoutId, overlap };
  const found = await findReadAgain(engine, rereading);
  let removed = 0;
  for (const condition of found.conditions) removed += await engine.run(`DELETE FROM ${others} AND ${condition}`);
  const renumbered = await renumber(engine, rereading, found, stored);
  if (renumbered > 0) {
    await engine.run(
      `UPDATE events SET _key = r.next FROM ${RENUMBERED} r WHERE _dfinery_window = ${number} AND events._key = r.key`,
    );
  }
  return { removed, renumbered };
}

/** Rows by window, of all windows but one. */
async function liveRows(engine: Engine, except: number): Promise<Map<number, number>> {
  const rows = await engine.rows(
    `SELECT _dfinery_window AS w, count(*) AS n FROM events WHERE _dfinery_window <> ${except} GROUP BY 1`,
  );
  return new Map(rows.map((row) => [Number(row.w), Number(row.n)]));
}

/** Subtracts what is gone, so that a receipt that was wrong before stays wrong and `verify` sees it. */
async function subtractRows(engine: Engine, before: Map<number, number>, after: Map<number, number>): Promise<void> {
  for (const [window, had] of before) {
    const gone = had - (after.get(window) ?? 0);
    if (gone === 0) continue;
    await engine.run(`UPDATE _dfinery_windows SET rows_live = rows_live - ${gone} WHERE number = ${window}`);
  }
}
