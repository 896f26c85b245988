import type { StoredColumn } from '../../table/columns.ts';
import type { IncomingWindow, StoredWindow } from '../../table/receipts.ts';
import type { Zone } from '../../types/zone.ts';
import type { Engine } from '../sql/engine/engine.ts';
import {
  countNumbered,
  findSupersededRows,
  mayShareIds,
  RENUMBERED,
  type Reread,
  renumber,
} from '../sql/rows/superseded.ts';

/** A window whose rows are in `events` already. */
interface LoadedWindow extends IncomingWindow {
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

/**
 * Removes the rows that the windows of a batch supersede (S13) and gives rows whose key is taken another number, as if the windows
 * came one by one. Inside a transaction.
 */
export async function supersede(engine: Engine, batch: LoadedBatch): Promise<Superseded> {
  const { windows, columns, live } = batch;
  const from = `(SELECT * FROM events WHERE _dfinery_window >= ${windows[0].number})`;
  const isOneByOne = windows.length > 1 && (await mayShareIds(engine, from));
  let [removed, renumbered] = [0, 0];
  for (const step of isOneByOne ? windows.map((window) => [window]) : [windows]) {
    const older = [...live, ...windows.slice(0, windows.indexOf(step[0]))];
    if (older.length === 0) continue;
    const merged = await merge(engine, { ...batch, windows: step, live: older });
    removed += merged.removed;
    renumbered += merged.renumbered;
  }
  const isNumbered = renumbered > 0 || windows.some(({ idsAreKeys }) => !idsAreKeys);
  return { removed, idRepeats: isNumbered ? await countNumbered(engine, from, columns) : new Map() };
}

/** Removes the rows of earlier windows that windows which share no id supersede, whatever their ids mean. */
async function merge(engine: Engine, { windows, columns, zone, live }: LoadedBatch) {
  const [first, last] = [windows[0].number, windows[windows.length - 1].number];
  const others = `events WHERE _dfinery_window < ${first}`;
  const isIncoming = `_dfinery_window BETWEEN ${first} AND ${last}`;
  const stored = `(SELECT * FROM ${others})`;
  const incoming = `(SELECT * FROM events WHERE ${isIncoming})`;
  const hasRowsWithoutId = windows.some((window) => window.hasRowsWithoutId);
  const reread: Reread = { stored, incoming, columns, hasRowsWithoutId, windows, live, zone };
  const found = await findSupersededRows(engine, reread);
  let removed = 0;
  for (const condition of found.conditions) removed += await engine.run(`DELETE FROM ${others} AND ${condition}`);
  const renumbered = await renumber(engine, reread, found, stored);
  if (renumbered > 0) {
    await engine.run(
      `UPDATE events SET _key = r.next FROM ${RENUMBERED} r WHERE ${isIncoming} AND events._key = r.key`,
    );
  }
  return { removed, renumbered };
}
