import type { Receipt, State } from '../../../extract/window.ts';
import type { StoredColumn } from '../../../table/columns.ts';
import { overlapOf } from '../../../table/receipts.ts';
import type { Zone } from '../../../types/zone.ts';
import type { Engine } from '../../sql/engine/engine.ts';
import { countNumbered, findReadAgain, RENUMBERED, type Rereading, renumber } from '../../sql/rows/read-again.ts';
import type { Contents } from './contents.ts';
import { countRows } from './receipts.ts';

/** A window whose rows are in `events` already. */
export interface LoadedWindow {
  readonly number: number;
  readonly receipt: Receipt;
  readonly state: State;
  readonly columns: readonly StoredColumn[];
  readonly hasRowsWithoutId: boolean;
  readonly zone: Zone | undefined;
  /** True when the ids of the window are its keys as they stand. */
  readonly idsAreKeys: boolean;
}

/** What a window did to the rows of older ones. */
export interface Replaced {
  /** Rows of older windows that were read again and are gone. */
  readonly removed: number;
  /** Rows of the window whose key has a number, because another row has their id. */
  readonly idRepeats: number;
  /** Rows that older windows have left, by number. */
  readonly others: ReadonlyMap<number, number>;
}

/**
 * Removes the rows that a window reads again (S13) and takes them off the `rows_live` of their receipts; gives rows of
 * the window whose key is taken another number. `before`: the tables without the window. Inside a transaction.
 */
export async function replaceRows(engine: Engine, window: LoadedWindow, before: Contents): Promise<Replaced> {
  const { number, columns } = window;
  const incoming = `(SELECT * FROM events WHERE _dfinery_window = ${number})`;
  const { removed, renumbered } = before.rows.size === 0 ? NOTHING : await merge(engine, window, incoming, before.live);
  const others = removed > 0 ? await subtractRows(engine, before.rows, number) : before.rows;
  const isNumbered = renumbered > 0 || !window.idsAreKeys;
  return { removed, idRepeats: isNumbered ? await countNumbered(engine, incoming, columns) : 0, others };
}

const NOTHING = { removed: 0, renumbered: 0 };

async function merge(
  engine: Engine,
  window: LoadedWindow,
  incoming: string,
  live: Contents['live'],
): Promise<typeof NOTHING> {
  const { number, receipt, state, columns, hasRowsWithoutId, zone } = window;
  const others = `events WHERE _dfinery_window <> ${number}`;
  const stored = `(SELECT * FROM ${others})`;
  const overlap = overlapOf(live, receipt, state.ranges_inclusive === false);
  const rereading: Rereading = { stored, incoming, columns, hasRowsWithoutId, overlap, zone };
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

/**
 * Subtracts what is gone, so that a receipt that was wrong before stays wrong and `verify` sees it. Gives the rows that are
 * left, without those of the window `except`.
 */
async function subtractRows(engine: Engine, before: Contents['rows'], except: number): Promise<Contents['rows']> {
  const after = await countRows(engine);
  after.delete(except);
  for (const [window, had] of before) {
    const gone = had - (after.get(window) ?? 0);
    if (gone === 0) continue;
    await engine.run(`UPDATE _dfinery_windows SET rows_live = rows_live - ${gone} WHERE number = ${window}`);
  }
  return after;
}
