import type { Engine } from '../sql/engine/engine.ts';
import type { PlannedBatch } from '../sql/rows/batch.ts';
import { countNumbered, findSupersededRows, mayShareIds, RENUMBERED, renumber } from '../sql/rows/superseded.ts';

/** What a batch did to rows. */
interface Superseded {
  /** Rows that are gone. */
  readonly removed: number;
  /** Rows whose key has a number, because another row has their id, by window. */
  readonly idRepeats: ReadonlyMap<number, number>;
}

/**
 * Removes the rows that a batch, whose own rows are in `events` already, supersedes (S13), and gives rows whose key is taken
 * another number. Windows that share ids are taken one by one: a later one may supersede rows of the earlier. Inside a transaction.
 */
export async function supersede(engine: Engine, batch: PlannedBatch): Promise<Superseded> {
  const { windows, columns } = batch;
  const all = `(SELECT * FROM events WHERE _dfinery_window >= ${windows[0].window})`;
  const isOneByOne = windows.length > 1 && (await mayShareIds(engine, all));
  let [removed, renumbered] = [0, 0];
  for (const step of isOneByOne ? windows.map((window) => [window]) : [windows]) {
    const live = [...batch.live, ...windows.slice(0, windows.indexOf(step[0]))];
    if (live.length === 0) continue;
    const [first, last] = [step[0].window, step[step.length - 1].window];
    const older = `events WHERE _dfinery_window < ${first}`;
    const stored = `(SELECT * FROM ${older})`;
    const isIncoming = `_dfinery_window BETWEEN ${first} AND ${last}`;
    const reread = { ...batch, windows: step, live, stored, incoming: `(SELECT * FROM events WHERE ${isIncoming})` };
    const found = await findSupersededRows(engine, reread);
    for (const condition of found.conditions) removed += await engine.run(`DELETE FROM ${older} AND ${condition}`);
    const changed = await renumber(engine, reread, found, stored);
    if (changed === 0) continue;
    renumbered += changed;
    await engine.run(
      `UPDATE events SET _key = r.next FROM ${RENUMBERED} r WHERE ${isIncoming} AND events._key = r.key`,
    );
  }
  const isNumbered = renumbered > 0 || batch.hasDuplicateOrMissingIds;
  return { removed, idRepeats: isNumbered ? await countNumbered(engine, all, columns) : new Map() };
}
