import { statSync } from 'node:fs';
import { UserError } from '../../base/errors.ts';
import { dayOfRowSql } from '../../engine/column-sql.ts';
import { findPeople, jsonOfRows, type RowConditions, type SearchedPlace } from '../../engine/people/find-people.ts';
import type { PeopleQuery } from '../../engine/people/people.ts';
import { countRowsByDay } from '../../engine/rows/row-counts.ts';
import type { Engine } from '../../engine/session/engine.ts';
import { engineError } from '../../engine/session/engine-errors.ts';
import { openEngine } from '../../engine/session/open-engine.ts';
import { checkNotMounted } from '../../fs/writability.ts';
import { type PlaceState, withoutRows } from '../../table/place-state.ts';
import { nextChangedAt } from '../../table/receipts.ts';
import { EVENTS, TABLES, USER_PROFILES } from '../../table/tables.ts';
import type { PeopleOperations, PlaceOptions, PurgeOptions, PurgeResult } from '../contract.ts';
import { compactDuckDb, withCopy } from './file-copy.ts';
import { checkExists, foreignTables, readLoadedState, withLoadedFile, writeState } from './file-state.ts';

export const PEOPLE: PeopleOperations = {
  find: (file, query, options) =>
    withLoadedFile(
      { ...options, file, access: 'read' },
      async (engine, state) => (await findPeople(searchedPlace(engine, state), query)).people,
    ),
  rows: rowsOfPeople,
  previewPurge: (file, query, options) =>
    withCopy(file, options, async ({ engine, state }) => {
      const { people } = await findPeople(searchedPlace(engine, state), query);
      checkNotMounted(engine.file);
      return { people, foreignNames: await foreignTables(engine, state) };
    }),
  purge,
};

/** The tables of a file in which people are looked for. */
function searchedPlace(engine: Engine, state: PlaceState): SearchedPlace {
  const relations = { events: EVENTS.name, user_profiles: state.user_profiles && USER_PROFILES.name };
  return { engine, name: engine.file, state, relations };
}

async function* rowsOfPeople(file: string, query: PeopleQuery, options: PlaceOptions): AsyncGenerator<string> {
  checkExists(file);
  const engine = await openEngine({ ...options, file, access: 'read' });
  try {
    const searched = searchedPlace(engine, await readLoadedState(engine));
    const { conditions } = await findPeople(searched, query);
    yield* jsonOfRows(searched, conditions);
  } catch (error) {
    options.signal?.throwIfAborted();
    throw engineError(error, engine.file);
  } finally {
    await engine.close();
  }
}

/**
 * Looks the people up while the file is locked, and removes their rows. Then it writes the file anew, so that no byte
 * of them is left. If the process is killed between, the same purge finds nobody, and writes the file anew.
 */
async function purge(file: string, query: PeopleQuery, options: PurgeOptions): Promise<PurgeResult> {
  const removed = await withLoadedFile({ ...options, file }, async (engine, state) => {
    const { people, conditions } = await findPeople(searchedPlace(engine, state), query);
    const suppressionLength = await options.onFound(people);
    const remove = () => removeRows(engine, { ...state, suppressionLength }, conditions);
    return { suppressionLength, rowsRemoved: await engine.transaction(remove) };
  });
  try {
    const { bytesBefore, bytesAfter } = await compactDuckDb(file, options);
    return { ...removed, bytesBefore, bytesAfter, unreached: [] };
  } catch (error) {
    options.signal?.throwIfAborted();
    if (!(error instanceof UserError)) throw error;
    const { size } = statSync(file);
    const unreached = [`${error.message} The rows are removed; bytes of them stay in ${file}: purge again.`];
    return { ...removed, bytesBefore: size, bytesAfter: size, unreached };
  }
}

/** Removes the rows that meet the conditions, and corrects the receipts. Returns their number. */
async function removeRows(engine: Engine, state: PlaceState, conditions: RowConditions): Promise<number> {
  let after = state;
  let removed = 0;
  for (const table of TABLES) {
    const before = state[table.name];
    if (before === undefined) continue;
    const rowsToRemoveSql = `${table.name} WHERE ${conditions[table.name]}`;
    const rowsLost = await countRowsByDay(engine, rowsToRemoveSql, dayOfRowSql(table, before.receipts.keys()));
    const changedAt = nextChangedAt(before.receipts, engine.clock.now());
    after = { ...after, [table.name]: withoutRows(before, rowsLost, changedAt) };
    removed += await engine.run(`DELETE FROM ${rowsToRemoveSql}`);
  }
  await writeState(engine, after);
  return removed;
}
