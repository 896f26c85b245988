import { addDays, type Day } from '../../base/days.ts';
import { anyOf, identifier, literal } from '../../cells/types/sql.ts';
import { identity, rescuedCells, rowsByDay } from '../../engine/rows/counts.ts';
import { withTypedRows } from '../../engine/rows/typed-rows.ts';
import type { Engine } from '../../engine/session/engine.ts';
import type { HashedColumns } from '../../extract/export-request.ts';
import type { DayDownload, RunProgress } from '../../extract/receipt.ts';
import { type Commit, finishBatch, type PlannedBatch, profilesAfter, rescuesNothing } from '../../table/batch.ts';
import { isRetyped, type PlannedColumn } from '../../table/column-plan.ts';
import type { PlaceState } from '../../table/place-state.ts';
import { nextChange } from '../../table/receipts.ts';
import { EVENTS, USER_PROFILES } from '../../table/tables.ts';
import { makeTables, writeState } from './file-state.ts';
import { refreshModels } from './models/analytics.ts';
import { alterEvents, insertRows, isAltered, makeTable } from './row-tables.ts';

// What one commit does inside its transaction: rows and state of a batch of days, or of a snapshot of profiles.

interface Storing {
  /** True for a file without tables of this program: they are made. */
  readonly isNew: boolean;
  readonly state: PlaceState;
  readonly planned: PlannedBatch;
}

/** Stores a batch of days. Returns the state after it, and what the commit reports. */
export async function storeBatch(
  engine: Engine,
  { isNew, state, planned }: Storing,
  unchanged: readonly DayDownload[],
  progress: RunProgress,
): Promise<{ readonly state: PlaceState; readonly commit: Commit }> {
  const { columns } = planned;
  const retyped = isNew ? new Set<Day>() : await retypedDays(engine, columns);
  if (isNew) await makeTables(engine, { ...state, columns });
  else if (columns.some(isAltered)) {
    await alterEvents(engine, columns, state.timezone);
    await refreshModels(engine, { ...state, columns });
  }
  const days = planned.days.map(({ download }) => download.receipt.day);
  let removed = await engine.run(`DELETE FROM ${inDays(days)}`);
  await withTypedRows(engine, planned, planned.days, (rows) => insertRows(engine, EVENTS, rows));
  const sharing = planned.days.flatMap(({ download }) => (download.mayShareRows ? [download.receipt.day] : []));
  for (const day of sharing) removed += await separateNeighbours(engine, day, columns);
  const touched = [...days, ...sharing.map((day) => addDays(day, -1))];
  const rowsAfter = await rowsOfDays(engine, touched);
  const stored = finishBatch(state, planned, {
    unchanged,
    retyped,
    rowsByDay: new Map(touched.map((day) => [day, rowsAfter.get(day) ?? 0])),
    rescued: rescuesNothing(planned) ? new Map() : await rescuedCells(engine, `(FROM ${inDays(days)})`),
    progress,
    changedAt: nextChange(state.receipts, engine.options.clock.now()),
  });
  await writeState(engine, stored.state);
  // The space of removed rows is used again.
  if (removed > 0) await engine.joinRowGroups();
  return stored;
}

/** `events` with a condition: the rows of these days. */
export const inDays = (days: readonly Day[]): string => `events WHERE event_date IN (${days.map(dateSql)})`;
export const rowsOfDays = (engine: Engine, days: readonly Day[]) => rowsByDay(engine, inDays(days));
const dateSql = (day: Day): string => `DATE ${literal(day)}`;

/** The days with a value in a column whose type changes. Called before it does. */
async function retypedDays(engine: Engine, columns: readonly PlannedColumn[]): Promise<ReadonlySet<Day>> {
  const hasValue = columns.filter(isRetyped).map(({ name }) => `${identifier(name)} IS NOT NULL`);
  return new Set(hasValue.length === 0 ? [] : (await rowsByDay(engine, `events WHERE ${anyOf(hasValue)}`)).keys());
}

/**
 * For a day that may share rows with its neighbours. A row that is also stored under the day after stays there alone.
 * One that is stored under the day before is taken from it. Returns the number of removed rows.
 */
async function separateNeighbours(engine: Engine, day: Day, columns: readonly PlannedColumn[]): Promise<number> {
  const same = identity(columns);
  const removeShared = (from: Day, neighbour: Day) =>
    engine.run(`
      DELETE FROM events
      WHERE event_date = ${dateSql(from)}
        AND ${same} IN (SELECT ${same} FROM events WHERE event_date = ${dateSql(neighbour)})`);
  return (await removeShared(day, addDays(day, 1))) + (await removeShared(addDays(day, -1), day));
}

/** Makes the table of profiles anew with the rows of a snapshot. Returns the state after it. */
export async function storeSnapshot(
  engine: Engine,
  { isNew, state, planned }: Storing,
  hashing: HashedColumns,
): Promise<PlaceState> {
  if (isNew) await makeTables(engine, state);
  const { name } = USER_PROFILES;
  await engine.run(`DROP TABLE IF EXISTS ${name}`);
  await makeTable(engine, USER_PROFILES, planned.columns, state.timezone);
  await withTypedRows(engine, planned, planned.days, (rows) => insertRows(engine, USER_PROFILES, rows));
  const changedAt = nextChange(state.receipts, engine.options.clock.now());
  const profiles = profilesAfter(planned, { rows: await engine.count(name), changedAt, hashing });
  const after = { ...state, profiles };
  await writeState(engine, after);
  await refreshModels(engine, after);
  return after;
}
