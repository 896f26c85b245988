// This folder: the target `duckdb`: one file with the tables `events` and `user_profiles`, tables beside them, and
// views. `sink.ts` loads it: it opens the file, and stores each batch in one transaction. `row-tables.ts` has the
// tables of rows, `file-state.ts` and `record-tables.ts` those of the state. `file-maintenance.ts` verifies, reports
// and prunes, `file-people.ts` finds and purges people, `file-copy.ts` writes the file anew, `models/` makes
// analytical views.

import { accessSync, constants, existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { addDays, type Day } from '../../base/days.ts';
import { configError, messageOf } from '../../base/errors.ts';
import { anyOfSql, identifier } from '../../base/sql.ts';
import { sharedRowIdSql } from '../../engine/column-sql.ts';
import { countRescuedByKey, rowsByDay } from '../../engine/rows/counts.ts';
import { dateSql } from '../../engine/rows/files-query.ts';
import type { Engine } from '../../engine/session/engine.ts';
import { isTableRefused } from '../../engine/session/faults.ts';
import { withFile } from '../../engine/session/open-engine.ts';
import type { CheckedDay } from '../../extract/checked-day.ts';
import type { HashedColumns } from '../../extract/export-request.ts';
import type { RunProgress } from '../../extract/export-state.ts';
import { diskError } from '../../fs/disk-failure.ts';
import { checkLocalPath } from '../../fs/local-path.ts';
import { type PlannedBatch, planBatch, planSnapshot } from '../../table/batch-plan.ts';
import { logRescued, logWidened } from '../../table/changes.ts';
import { isWidened, type PlannedColumn } from '../../table/column-plan.ts';
import { type Commit, finishBatch, finishUnchanged, profilesAfter } from '../../table/commit.ts';
import { newState, type PlaceState, type RunRecord } from '../../table/place-state.ts';
import { removedWarning } from '../../table/place-warnings.ts';
import { nextChangedAt, splitBatch } from '../../table/receipts.ts';
import { EVENTS, type Table, USER_PROFILES } from '../../table/tables.ts';
import type { OpenOptions, Sink } from '../contract.ts';
import { checkNotPurged, otherTimezoneError } from '../failures.ts';
import { makeTables, type ReadState, readState, refuseForeignProfiles, writeState } from './file-state.ts';
import { refreshModels } from './models/analytics.ts';
import { addRecords, RUNS_TABLE } from './record-tables.ts';
import { alterEvents, countRowsOfDays, insertRows, isAltered, makeTable, rowsOfDaysSql } from './row-tables.ts';

export async function openDuckDbSink(file: string, options: OpenOptions): Promise<Sink> {
  checkLocalPath(file);
  checkCanWrite(file);
  if (!existsSync(file)) return new DuckDbSink(file, undefined, options);
  const stored = await withFile({ ...options, file, access: 'read' }, (engine) => readStateToLoad(engine, options));
  const removedDays = stored?.removedDays ?? [];
  if (removedDays.length > 0) {
    options.logger.warn('days.removed', removedWarning(removedDays), { days: removedDays.length });
  }
  return new DuckDbSink(file, stored?.state, options);
}

/** Throws UserError if no file can be made or written at this path, before anything is downloaded. */
function checkCanWrite(file: string): void {
  // Behind a file, `/.` is an error for root, too.
  const path = existsSync(file) ? file : `${dirname(resolve(file))}/.`;
  try {
    accessSync(path, constants.W_OK);
  } catch (error) {
    throw diskError(error, { path: file });
  }
}

/** Reads the state of a file, and throws UserError unless this run may load into it. */
async function readStateToLoad(engine: Engine, options: OpenOptions): Promise<ReadState | undefined> {
  const timezone = options.timezone ?? null;
  const stored = await readState(engine);
  if (options.userProfiles) await refuseForeignProfiles(engine, stored?.state);
  if (stored === undefined || stored.state.timezone === timezone) return stored;
  throw otherTimezoneError(engine.file, { configured: timezone, stored: stored.state.timezone });
}

/** What a file holds before a commit. */
interface FileBefore extends ReadState {
  /** True for a file without tables of this program: the commit makes them. */
  readonly isNew: boolean;
}

/** A DuckDB file that is loaded. It is open, and so locked, only while a batch is committed. */
class DuckDbSink implements Sink {
  readonly #file: string;
  readonly #options: OpenOptions;
  readonly #opened: PlaceState | undefined;
  #state: PlaceState | undefined;

  constructor(file: string, state: PlaceState | undefined, options: OpenOptions) {
    this.#file = file;
    this.#state = state;
    this.#opened = state;
    this.#options = options;
  }

  get state(): PlaceState | undefined {
    return this.#state;
  }

  commit(batch: readonly CheckedDay[], progress: RunProgress): Promise<Commit> {
    return this.#commitTo(batch, async (engine, before) => {
      const { state } = before;
      const { toWrite, unchanged } = await splitBatch(state.receipts, batch, progress, {
        logger: this.#options.logger,
        countRows: (days) => countRowsOfDays(engine, days),
      });
      if (toWrite.length === 0) return this.#commitUnchanged(engine, before, unchanged, progress);
      const storedColumns = state.receipts.size === 0 ? undefined : state.columns;
      const planned = planBatch(storedColumns, toWrite, this.#options);
      const after = await transactionOn(EVENTS, engine, async () => {
        const stored = await storeBatch(engine, before, planned);
        const changedAt = nextChangedAt(state.receipts, engine.clock.now());
        const finished = finishBatch(state, planned, { ...stored, unchanged, progress, changedAt });
        await writeState(engine, finished.state);
        return finished;
      });
      this.#state = after.state;
      logWidened(this.#options.logger, planned.changes);
      logRescued(this.#options.logger, after.commit.rescued);
      return after.commit;
    });
  }

  /** Commits the receipts and the cursor of a batch whose rows are all there. */
  async #commitUnchanged(
    engine: Engine,
    { state, removedDays }: FileBefore,
    unchanged: readonly CheckedDay[],
    progress: RunProgress,
  ): Promise<Commit> {
    const after = finishUnchanged(state, unchanged, progress);
    const isStored = removedDays.length === 0 && isDeepStrictEqual(after.state, state);
    if (unchanged.length > 0 && !isStored) {
      await engine.transaction(() => writeState(engine, after.state));
      this.#state = after.state;
    }
    return after.commit;
  }

  replaceProfiles(snapshot: CheckedDay, hashing: HashedColumns): Promise<number | undefined> {
    return this.#commitTo([snapshot], async (engine, before) => {
      const planned = planSnapshot(before.state.profiles, snapshot, this.#options);
      if (planned === undefined) return undefined;
      this.#state = await transactionOn(USER_PROFILES, engine, () => storeSnapshot(engine, before, planned, hashing));
      logWidened(this.#options.logger, planned.changes);
      logRescued(this.#options.logger, await countRescuedByKey(engine, USER_PROFILES.name));
      return this.#state.profiles?.receipt.rows_stored;
    });
  }

  /** Opens the file for these downloads, and reads its state anew. */
  #commitTo<T>(downloads: readonly CheckedDay[], work: (engine: Engine, before: FileBefore) => Promise<T>): Promise<T> {
    const { timezone = null } = this.#options;
    const columnCount = new Set(downloads.flatMap(({ files }) => files.flatMap(({ header }) => header))).size;
    return withFile({ ...this.#options, file: this.#file, columnCount }, async (engine) => {
      const stored = await readStateToLoad(engine, this.#options);
      checkNotPurged(engine.file, this.#opened, stored?.state);
      this.#state = stored?.state;
      return work(engine, { state: newState(timezone), removedDays: [], ...stored, isNew: stored === undefined });
    });
  }

  /** Records a run; not if it ended before it made the file. */
  async recordRun(run: RunRecord): Promise<void> {
    if (!existsSync(this.#file)) return;
    // A run that a signal has ended is recorded, too.
    await withFile({ ...this.#options, file: this.#file, signal: undefined }, async (engine) => {
      if ((await readState(engine)) === undefined) return;
      await engine.transaction(() => addRecords(engine, RUNS_TABLE, [run]));
    });
  }

  async close(): Promise<void> {}
}

/** Runs work in a transaction that changes a table. Throws UserError if other programs keep DuckDB from it. */
const transactionOn = <T>({ name }: Table, engine: Engine, work: () => Promise<T>): Promise<T> =>
  engine.transaction(work).catch((cause: unknown) => {
    if (!isTableRefused(cause)) throw cause;
    throw configError(
      `${engine.file}: another program changed the table ${name}, or made an index or a foreign key on it ` +
        `(${messageOf(cause).split('\n', 1)[0]}): undo that, or load into another file. Nothing was changed.`,
      { cause },
    );
  });

/** Stores the rows of a batch of days, inside the transaction of its commit. */
async function storeBatch(engine: Engine, { isNew, state }: FileBefore, planned: PlannedBatch) {
  const { columns } = planned;
  const widenedDays = isNew ? new Set<Day>() : await daysToWiden(engine, columns);
  if (isNew) {
    await makeTables(engine, { ...state, columns });
  } else if (columns.some(isAltered)) {
    await alterEvents(engine, columns, state.timezone);
    await refreshModels(engine, { ...state, columns });
  }
  const days = planned.days.map(({ download }) => download.receipt.day);
  let removedRows = await engine.run(`DELETE FROM ${rowsOfDaysSql(days)}`);
  await insertRows(engine, planned);
  const sharingDays = planned.days.flatMap(({ download }) => (download.mayShareRows ? [download.receipt.day] : []));
  for (const day of sharingDays) removedRows += await separateNeighbours(engine, day, columns);
  const touchedDays = [...days, ...sharingDays.map((day) => addDays(day, -1))];
  const rowsAfter = await countRowsOfDays(engine, touchedDays);
  // Later rows take the space of the removed ones.
  if (removedRows > 0) await engine.joinRowGroups();
  return {
    widenedDays,
    rowsByDay: new Map(touchedDays.map((day) => [day, rowsAfter.get(day) ?? 0])),
    rescued: await countRescuedByKey(engine, `(FROM ${rowsOfDaysSql(days)})`),
  };
}

/** The days with a value in a column that widens. Called before it does. */
async function daysToWiden(engine: Engine, columns: readonly PlannedColumn[]): Promise<ReadonlySet<Day>> {
  const hasValue = columns.filter(isWidened).map(({ name }) => `${identifier(name)} IS NOT NULL`);
  return new Set(
    hasValue.length === 0 ? [] : (await rowsByDay(engine, `${EVENTS.name} WHERE ${anyOfSql(hasValue)}`)).keys(),
  );
}

/**
 * For a day that may share rows with its neighbours. A row that is also stored under the day after stays there alone.
 * One that is stored under the day before is taken from it. Returns the number of removed rows.
 */
async function separateNeighbours(engine: Engine, day: Day, columns: readonly PlannedColumn[]): Promise<number> {
  const rowId = sharedRowIdSql(columns);
  const removeShared = (from: Day, neighbour: Day) =>
    engine.run(`
      DELETE FROM ${EVENTS.name}
      WHERE event_date = ${dateSql(from)}
        AND ${rowId} IN (SELECT ${rowId} FROM ${EVENTS.name} WHERE event_date = ${dateSql(neighbour)})`);
  return (await removeShared(day, addDays(day, 1))) + (await removeShared(addDays(day, -1), day));
}

/** Makes the table of profiles anew with the rows of a snapshot. Returns the state after it. */
async function storeSnapshot(
  engine: Engine,
  { isNew, state }: FileBefore,
  planned: PlannedBatch,
  hashing: HashedColumns,
): Promise<PlaceState> {
  if (isNew) await makeTables(engine, state);
  const { name } = USER_PROFILES;
  await engine.run(`DROP TABLE IF EXISTS ${name}`);
  await makeTable(engine, USER_PROFILES, { ...state, columns: planned.columns });
  await insertRows(engine, planned);
  const changedAt = nextChangedAt(state.receipts, engine.clock.now());
  const profiles = profilesAfter(planned, { rows: await engine.count(name), changedAt, hashing });
  const after = { ...state, profiles };
  await writeState(engine, after);
  await refreshModels(engine, after);
  return after;
}
