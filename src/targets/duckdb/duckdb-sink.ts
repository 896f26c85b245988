// This folder: the target `duckdb`: one file with the tables `events` and `user_profiles`, tables beside them, and
// views. `duckdb-sink.ts` loads it: it opens the file, and stores each batch in one transaction. `row-tables.ts` has the
// tables of rows, `file-state.ts` and `record-tables.ts` those of the state, `event-views.ts` the views of events.
// `file-maintenance.ts` verifies, reports and prunes, `file-people.ts` finds and purges people, `file-copy.ts` writes
// the file anew, `models/` makes analytical views.

import { constants, existsSync } from 'node:fs';
import { access } from 'node:fs/promises';
import { dirname } from 'node:path';
import { configError } from '../../base/errors.ts';
import { countRowsByDay } from '../../engine/rows/row-counts.ts';
import type { Engine } from '../../engine/session/engine.ts';
import { strayWalError, tableRefusalOf } from '../../engine/session/engine-errors.ts';
import { withEngine } from '../../engine/session/open-engine.ts';
import type { CheckedDay } from '../../extract/checked-day.ts';
import type { CommitInfo } from '../../extract/export-state.ts';
import { withDiskErrors } from '../../fs/disk-failure.ts';
import { checkLocalPath, realOrGivenPath, refuseDeadLink } from '../../fs/local-path.ts';
import { type PlannedBatch, planBatch } from '../../table/batch-plan.ts';
import { logWidened } from '../../table/column-plan.ts';
import { type CommitResult, commitResultOf, NOTHING_STORED, tableAfterBatch } from '../../table/commit.ts';
import { newTableState, type PlaceState, type RunRecord, withTable } from '../../table/place-state.ts';
import { warnOfAbsentDays } from '../../table/place-warnings.ts';
import { EVENTS, type Table } from '../../table/tables.ts';
import type { LoadOptions, Sink } from '../contract.ts';
import { checkColumnTypes, checkFingerprints, checkNotPurged, checkTimezone } from '../refusals.ts';
import { createStateTables, type FileState, readFileState, refuseForeignProfiles, writeState } from './file-state.ts';
import { refreshModels } from './models/write-models.ts';
import { addRecords, RUNS_TABLE } from './record-tables.ts';
import { alterTable, createTable, rowsOfDaysSql, storeBatch } from './row-tables.ts';

/** Longest wait (ms) for the lock of the file, to record a run that a signal has ended. */
const STOPPED_WAIT_MS = 2_000;

export async function openDuckDbSink(options: LoadOptions): Promise<Sink> {
  const file = options.address;
  checkLocalPath(file);
  await checkCanWrite(file);
  const { state, removedDays } = existsSync(file)
    ? await withEngine(file, 'read', options, (engine) => readStateForLoad(engine, options))
    : { state: undefined, removedDays: [] };
  checkColumnTypes(state, options);
  warnOfAbsentDays(options.logger, removedDays, state?.events);
  return new DuckDbSink(state, options);
}

/** Throws UserError if no file can be made or written at this path, before anything is downloaded. */
async function checkCanWrite(file: string): Promise<void> {
  const isThere = existsSync(file);
  if (isThere) await withDiskErrors({ path: file }, access(file, constants.W_OK));
  const subject = isThere ? `the folder of ${file}` : file;
  // DuckDB makes its write-ahead log beside the file. With `/.` a parent that is a file is refused even to root.
  await withDiskErrors({ path: file, subject }, access(`${dirname(realOrGivenPath(file))}/.`, constants.W_OK));
  // DuckDB would make that file itself: of its newest version, with the write-ahead log beside the link.
  await withDiskErrors({ path: file }, refuseDeadLink(file, 'file'));
  // In this order: another run may be making both.
  if (existsSync(`${file}.wal`) && !existsSync(file)) throw strayWalError(file);
}

/** Reads the state of a file, and throws UserError unless this run may load into it. */
async function readStateForLoad(engine: Engine, options: LoadOptions): Promise<FileState> {
  const fileState = await readFileState(engine);
  const { state } = fileState;
  if (options.loadsProfiles) await refuseForeignProfiles(engine, state);
  // The first load fixes that of events, too: somebody may have dropped the table of profiles before their first day.
  checkTimezone(state === undefined ? [] : [state.events], options);
  return fileState;
}

/** A DuckDB file that is loaded. It is open, and so locked, only while something is written. */
class DuckDbSink implements Sink {
  readonly kind = 'stateful';
  state: PlaceState | undefined;
  readonly #stateAtOpen: PlaceState | undefined;
  readonly #options: LoadOptions;

  constructor(state: PlaceState | undefined, options: LoadOptions) {
    this.state = state;
    this.#stateAtOpen = state;
    this.#options = options;
  }

  commit(batch: readonly CheckedDay[], commitInfo: CommitInfo, table: Table = EVENTS): Promise<CommitResult> {
    const { address, columnSettings, logger } = this.#options;
    return withEngine(address, 'write', this.#options, async (engine) => {
      const { state: stateBefore } = await readStateForLoad(engine, this.#options);
      checkNotPurged(engine.file, this.#stateAtOpen, stateBefore);
      checkFingerprints(stateBefore, commitInfo.fingerprints);
      // Another run may have written to the file since, also if this batch stores nothing.
      this.state = stateBefore;
      const tableBefore = stateBefore?.[table.name] ?? newTableState(table, columnSettings.timezone);
      const plan = await planBatch(tableBefore, batch, {
        table,
        commitInfo,
        columnSettings,
        logger,
        now: engine.clock.now(),
        countRows: (days) => countRowsByDay(engine, rowsOfDaysSql(table, days)),
      });
      if (plan === undefined) return NOTHING_STORED;
      const { state, commit } = await this.#store(engine, stateBefore, plan);
      this.state = state;
      logWidened(logger, plan.changes);
      return commit;
    });
  }

  /** Stores a batch in one transaction. A batch after which all is as before leaves no trace. */
  async #store(engine: Engine, stateBefore: PlaceState | undefined, plan: PlannedBatch) {
    const { table } = plan;
    try {
      return await engine.transaction(async () => {
        await prepareTables(engine, stateBefore, plan);
        const storedBatch = await storeBatch(engine, plan);
        const tableAfter = tableAfterBatch(plan, storedBatch);
        const state = withTable(stateBefore, table, tableAfter);
        await writeState(engine, state);
        if (plan.changes.length > 0) await refreshModels(engine, state);
        return { state, commit: commitResultOf(plan, storedBatch, tableAfter) };
      });
    } catch (cause) {
      const refusal = tableRefusalOf(cause);
      if (refusal === undefined) throw cause;
      throw configError(
        `${engine.file}: another program changed the table ${table.name}, or made an index or a foreign key on it ` +
          `(${refusal}): undo that, or load into another file. Nothing was changed.`,
        { cause },
      );
    }
  }

  /** Records a run; not if it ended before it made the file. */
  async recordRun(run: RunRecord): Promise<void> {
    const { address, signal, lockWaitMs } = this.#options;
    if (!existsSync(address)) return;
    // A run that a signal has ended is recorded, too, unless the file stays in use.
    const waitMs = signal.aborted ? Math.min(lockWaitMs, STOPPED_WAIT_MS) : lockWaitMs;
    await withEngine(address, 'write', { ...this.#options, signal: undefined, lockWaitMs: waitMs }, async (engine) => {
      if ((await readFileState(engine)).state === undefined) return;
      await engine.transaction(() => addRecords(engine, RUNS_TABLE, [run]));
    });
  }

  async close(): Promise<void> {}
}

/** Creates the table of a batch, or alters its columns. In a new file it also creates all that is beside the rows. */
async function prepareTables(engine: Engine, stateBefore: PlaceState | undefined, plan: PlannedBatch): Promise<void> {
  const { table, tableBefore, columns, changes } = plan;
  const { timezone } = tableBefore;
  if (stateBefore === undefined) {
    await createStateTables(engine, timezone);
    // Profiles may come first: every file has a table of events.
    if (table !== EVENTS) await createTable(engine, EVENTS, newTableState(EVENTS, timezone));
  }
  const isNewTable = stateBefore?.[table.name] === undefined;
  if (isNewTable) await createTable(engine, table, { ...tableBefore, columns });
  else if (changes.length > 0) await alterTable(engine, plan);
}
