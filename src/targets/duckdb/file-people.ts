import { statSync } from 'node:fs';
import { UserError } from '../../base/errors.ts';
import { dayOfRowSql } from '../../engine/column-sql.ts';
import { findPeople, jsonOfRows, type RowConditions } from '../../engine/people/find-people.ts';
import type { PeopleQuery, SearchedPlace } from '../../engine/people/people.ts';
import { countRowsByDay } from '../../engine/rows/row-counts.ts';
import type { Engine } from '../../engine/session/engine.ts';
import { engineError } from '../../engine/session/engine-errors.ts';
import { openEngine } from '../../engine/session/open-engine.ts';
import { type PlaceState, withoutRows } from '../../table/place-state.ts';
import { nextChangedAt } from '../../table/receipts.ts';
import { EVENTS, TABLES, USER_PROFILES } from '../../table/tables.ts';
import type { OnFound, PeopleOperations, PlaceOptions, Removal } from '../contract.ts';
import { compactFile, withCopy } from './file-copy.ts';
import { checkExists, foreignTableNames, readLoadedState, withLoadedFile, writeState } from './file-state.ts';

export const peopleOperationsOfFile = (options: PlaceOptions): PeopleOperations => ({
  find: (query) =>
    withLoadedFile(options, 'read', async (engine, state) => {
      const { findings } = await findPeople(placeToSearch(engine, state), query);
      return findings;
    }),
  rows: (query) => rowsOfPeople(options, query),
  // A purge replaces the file by a copy: what prevents one prevents the purge.
  previewPurge: (query) =>
    withCopy(options, async (engine, _copyPath, state) => {
      const { findings } = await findPeople(placeToSearch(engine, state), query);
      return { findings, foreignNames: await foreignTableNames(engine, state) };
    }),
  purge: (query, onFound) => purge(options, query, onFound),
});

/** The tables of a file in which people are looked for. */
function placeToSearch(engine: Engine, state: PlaceState): SearchedPlace {
  const relations = { events: EVENTS.name, user_profiles: state.user_profiles && USER_PROFILES.name };
  return { engine, placeName: engine.file, state, relations, warnings: [] };
}

/** The file stays open until the last row is taken, which the work of `withEngine` could not wait for. */
async function* rowsOfPeople(options: PlaceOptions, query: PeopleQuery): AsyncGenerator<string> {
  checkExists(options.address);
  const engine = await openEngine(options.address, 'read', options);
  try {
    const searchedPlace = placeToSearch(engine, await readLoadedState(engine));
    const { conditions } = await findPeople(searchedPlace, query);
    yield* jsonOfRows(searchedPlace, conditions);
  } catch (error) {
    options.signal.throwIfAborted();
    throw engineError(error, engine.file);
  } finally {
    await engine.close();
  }
}

/**
 * Looks the people up while the file is locked, and removes their rows. Then it writes the file anew, so that no byte
 * of them is left. If the process is killed between, the same purge finds nobody, and writes the file anew.
 */
async function purge(options: PlaceOptions, query: PeopleQuery, onFound: OnFound): Promise<Removal> {
  const removal = await withLoadedFile(options, 'write', async (engine, state) => {
    const { findings, conditions } = await findPeople(placeToSearch(engine, state), query);
    const suppressionLength = await onFound(findings);
    const bytesBefore = statSync(engine.file).size;
    const rowsRemoved = await engine.transaction(() => removeRows(engine, { ...state, suppressionLength }, conditions));
    return { bytesBefore, rowsRemoved };
  });
  try {
    const { bytesAfter } = await compactFile(options);
    return { ...removal, bytesAfter, unreached: [] };
  } catch (error) {
    options.signal.throwIfAborted();
    if (!(error instanceof UserError)) throw error;
    const bytesAfter = statSync(options.address).size;
    const unreached = [
      `The rows are removed, and bytes of them stay in ${options.address}: purge again. ${error.message}`,
    ];
    return { ...removal, bytesAfter, unreached };
  }
}

/** Removes the rows that meet the conditions, and corrects the receipts. Returns their number. */
async function removeRows(engine: Engine, state: PlaceState, conditions: RowConditions): Promise<number> {
  let stateAfter = state;
  let rowsRemoved = 0;
  for (const table of TABLES) {
    const tableState = state[table.name];
    if (tableState === undefined) continue;
    const relation = `${table.name} WHERE ${conditions[table.name]}`;
    const rowsLost = await countRowsByDay(engine, relation, dayOfRowSql(table, tableState.receipts.keys()));
    const changedAt = nextChangedAt(tableState.receipts, engine.clock.now());
    stateAfter = { ...stateAfter, [table.name]: withoutRows(tableState, rowsLost, changedAt) };
    rowsRemoved += await engine.run(`DELETE FROM ${relation}`);
  }
  await writeState(engine, stateAfter);
  return rowsRemoved;
}
