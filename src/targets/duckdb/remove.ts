import { statSync } from 'node:fs';
import type { Day } from '../../base/days.ts';
import { UserError } from '../../base/errors.ts';
import { literal } from '../../cells/types/sql.ts';
import { findPeople, type PlaceLookup } from '../../engine/people/find.ts';
import type { PeopleFound, PeopleQuery } from '../../engine/people/query.ts';
import { rowsByDay } from '../../engine/rows/counts.ts';
import type { Engine, EngineOptions } from '../../engine/session/engine.ts';
import { withFile } from '../../engine/session/open.ts';
import { checkReplaceable } from '../../fs/atomic-file.ts';
import { profilesWithout, type TableState } from '../../table/place-state.ts';
import { nextChange, prunedBefore, withPruned, withRows } from '../../table/receipts.ts';
import { USER_PROFILES } from '../../table/tables.ts';
import type { Pruned, PurgeOptions, PurgePreview, PurgeResult } from '../contract.ts';
import { noTableError } from '../failures.ts';
import { foreignTables, rewriteDuckDb, withCopy } from './rewrite.ts';
import { reading, readOnly, readStored, searchedTables, writeProfiles, writeState } from './store.ts';

// Rows that leave a file: those of old days, and those of people. All throw UserError.

/** Works on a file that was loaded, which is open for writing. */
function writing<T>(options: EngineOptions, work: (engine: Engine, state: TableState) => Promise<T>): Promise<T> {
  readOnly(options);
  return withFile(options, async (engine) => {
    const stored = await readStored(engine);
    if (stored === undefined) throw noTableError(engine.file);
    return work(engine, stored.state);
  });
}

export function pruneDuckDb(options: EngineOptions & { readonly execute: boolean }, before: Day): Promise<Pruned> {
  if (!options.execute) return reading(options, async (_engine, state) => prunedBefore(state.receipts, before));
  return writing(options, async (engine, state) => {
    const { days, rows } = prunedBefore(state.receipts, before);
    if (days.length === 0) return { days, rows };
    const changedAt = nextChange(state.receipts, options.clock.now());
    await engine.transaction(async () => {
      await engine.run(`DELETE FROM events WHERE event_date IN (${days.map((day) => `DATE ${literal(day)}`)})`);
      await writeState(engine, state, { ...state, receipts: withPruned(state.receipts, days, changedAt) });
    });
    await engine.joinRowGroups();
    return { days, rows };
  });
}

/**
 * Looks the people up while the file is locked, and removes their rows. Then it writes the file anew, so that no byte
 * of them is left. If the process is killed between, the same purge finds nobody, and writes the file anew.
 */
export async function purgeDuckDb(
  options: EngineOptions & Pick<PurgeOptions, 'onFound'>,
  query: PeopleQuery,
): Promise<PurgeResult> {
  const { found, rowsRemoved } = await writing(options, async (engine, state) => {
    const lookup = await findPeople(searchedTables(engine, state), query);
    const suppressionLength = await options.onFound(lookup.found);
    const removed = await engine.transaction(() =>
      removeRows(engine, { ...state, suppressionLength }, lookup.conditions),
    );
    return { found: lookup.found, rowsRemoved: removed };
  });
  try {
    return { ...(await rewriteDuckDb(options)), rowsRemoved, found, unreached: [] };
  } catch (error) {
    options.signal?.throwIfAborted();
    if (!(error instanceof UserError)) throw error;
    const { size } = statSync(options.file);
    const unreached = [`${error.message} The rows are removed; bytes of them stay in ${options.file}: purge again.`];
    return { rows: 0, rowsRemoved, bytesBefore: size, bytesAfter: size, found, unreached };
  }
}

/** Removes the rows that meet the conditions, and corrects the receipts. Returns their number. */
async function removeRows(engine: Engine, state: TableState, conditions: PlaceLookup['conditions']): Promise<number> {
  const { events: condition } = conditions;
  const gone = await rowsByDay(engine, `events WHERE ${condition}`);
  const left = new Map([...gone].map(([day, n]) => [day, (state.receipts.get(day)?.rows_stored ?? n) - n]));
  const removed = await engine.run(`DELETE FROM events WHERE ${condition}`);
  const changedAt = nextChange(state.receipts, engine.options.clock.now());
  await writeState(engine, state, { ...state, receipts: withRows(state.receipts, left, changedAt) });
  const { profiles } = state;
  if (profiles === undefined) return removed;
  const removedProfiles = await engine.run(`DELETE FROM ${USER_PROFILES.name} WHERE ${conditions.profiles}`);
  if (removedProfiles > 0) await writeProfiles(engine, profilesWithout(profiles, removedProfiles, changedAt));
  return removed + removedProfiles;
}

export async function previewPurgeDuckDb(options: EngineOptions, query: PeopleQuery): Promise<PurgePreview> {
  const found = await writing(options, async (engine, state): Promise<PeopleFound> => {
    const lookup = await findPeople(searchedTables(engine, state), query);
    return lookup.found;
  });
  return withCopy(options, async (engine) => {
    checkReplaceable(engine.file);
    return { found, foreign: await foreignTables(engine) };
  });
}
