import { withTypedRows } from '../../engine/rows/typed-rows.ts';
import type { Engine } from '../../engine/session/engine.ts';
import type { HashedColumns } from '../../extract/export-request.ts';
import { type PlannedBatch, profilesAfter } from '../../table/batch.ts';
import { newState, type StoredProfiles, type TableState } from '../../table/place-state.ts';
import { EVENTS, FIRST_COLUMNS, USER_PROFILES } from '../../table/tables.ts';
import { createTable, insertRows } from './alter.ts';
import { refreshModels } from './models/write.ts';
import { commentTable, createTables, createViews, writeProfiles, writeState } from './store.ts';

interface Snapshot {
  /** Undefined for a file without tables of this program, which are made, too. */
  readonly before: TableState | undefined;
  readonly planned: PlannedBatch;
  readonly hashing: HashedColumns;
  readonly changedAt: string;
}

/** Makes the table of profiles anew with the rows of a snapshot. Called inside a transaction. */
export async function storeSnapshot(engine: Engine, { before, planned, hashing, changedAt }: Snapshot) {
  const { columns, timezone } = planned;
  const state = before ?? newState(timezone ?? null);
  if (before === undefined) await makeTables(engine, state);
  const { name } = USER_PROFILES;
  await engine.run(`DROP TABLE IF EXISTS ${name}`);
  await engine.run(createTable(USER_PROFILES, columns, timezone !== undefined));
  await withTypedRows(engine, planned, planned.days, (rows) => insertRows(engine, USER_PROFILES, rows));
  await commentTable(engine, USER_PROFILES, columns, true);
  const profiles: StoredProfiles = profilesAfter(planned, { rows: await engine.count(name), changedAt, hashing });
  await writeProfiles(engine, profiles);
  const after = { ...state, profiles };
  await refreshModels(engine, after);
  return after;
}

/** Makes the tables of a file that has no day yet. */
async function makeTables(engine: Engine, state: TableState): Promise<void> {
  await createTables(engine, FIRST_COLUMNS, state.timezone);
  await writeState(engine, state, state);
  await commentTable(
    engine,
    EVENTS,
    FIRST_COLUMNS.map((column) => ({ ...column, before: null })),
    true,
  );
  await createViews(engine, FIRST_COLUMNS);
}
