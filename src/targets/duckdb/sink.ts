// This folder: the target `duckdb`: one file with the table `events`, tables beside it, and views. `sink.ts` commits a
// batch, with `alter.ts` for new columns and `store.ts` for the state. `read.ts` verifies and reports, `remove.ts`
// prunes and purges, `rewrite.ts` writes the file anew, `models/` makes analytical views.

import { accessSync, constants } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { addDays, type Day } from '../../base/days.ts';
import { configError, messageOf } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import { anyOf, identifier, literal } from '../../cells/types/sql.ts';
import { zoneOf } from '../../cells/types/zone.ts';
import { identity, rescuedCells, rowsByDay } from '../../engine/rows/counts.ts';
import { withTypedRows } from '../../engine/rows/typed-rows.ts';
import { checkDatabasePath, fileExists } from '../../engine/session/database-file.ts';
import type { Engine, EngineOptions } from '../../engine/session/engine.ts';
import { withFile } from '../../engine/session/open.ts';
import type { HashedColumns } from '../../extract/export-request.ts';
import type { DayDownload, RunProgress } from '../../extract/receipt.ts';
import { diskError } from '../../fs/disk-failure.ts';
import {
  type Commit,
  finishBatch,
  finishUnchanged,
  type PlannedBatch,
  planBatch,
  planSnapshot,
  rescuesNothing,
} from '../../table/batch.ts';
import { logChanges } from '../../table/changes.ts';
import { type ColumnRules, isRetyped, type PlannedColumn } from '../../table/column-plan.ts';
import { removedWarning } from '../../table/differences.ts';
import { newState, type RunRecord, type TableState } from '../../table/place-state.ts';
import { isLater, nextChange, splitBatch } from '../../table/receipts.ts';
import { EVENTS, USER_PROFILES } from '../../table/tables.ts';
import type { ProfilesSink, Sink, SnapshotCommit } from '../contract.ts';
import { checkNotPurged, otherTimezone } from '../failures.ts';
import { alterEvents, insertRows } from './alter.ts';
import { refreshModels } from './models/write.ts';
import { storeSnapshot } from './profiles.ts';
import { addRecords, RUNS } from './side-tables.ts';
import {
  commentTable,
  createTables,
  createViews,
  readOnly,
  readStored,
  refuseForeignProfiles,
  writeState,
} from './store.ts';

export interface DuckDbSinkOptions extends ColumnRules, EngineOptions {
  readonly logger: Logger;
  /** True to load user profiles, too. */
  readonly userProfiles?: boolean;
}

export async function openDuckDbSink(options: DuckDbSinkOptions): Promise<DuckDbSink> {
  const { file, logger } = options;
  checkDatabasePath(file);
  checkWritable(file);
  if (!fileExists(file)) return new DuckDbSink(undefined, options);
  const stored = await withFile(readOnly(options), (engine) => readChecked(engine, options));
  const removed = stored?.removed ?? [];
  if (removed.length > 0) logger.warn('days.removed', removedWarning(removed), { days: removed.length });
  return new DuckDbSink(stored?.state, options);
}

/** A DuckDB file that is loaded. It is open, and so locked, only while a batch is committed. */
export class DuckDbSink implements Sink {
  readonly #options: DuckDbSinkOptions;
  readonly #opened: TableState | undefined;
  #state: TableState | undefined;

  constructor(state: TableState | undefined, options: DuckDbSinkOptions) {
    this.#state = state;
    this.#opened = state;
    this.#options = options;
  }

  get state(): TableState | undefined {
    return this.#state;
  }

  get profiles(): ProfilesSink | undefined {
    if (this.#options.userProfiles !== true) return undefined;
    return { replace: (...args) => this.#replaceProfiles(...args) };
  }

  async commit(batch: readonly DayDownload[], progress: RunProgress, signal: AbortSignal): Promise<Commit> {
    const names = new Set(batch.flatMap(({ files }) => files.flatMap(({ header }) => header)));
    const options = { ...this.#options, columns: names.size, signal };
    return withFile(options, async (engine) => {
      const { state: before, removed = [] } = (await readChecked(engine, this.#options)) ?? {};
      checkNotPurged(engine.file, this.#opened, before);
      const { timezone, clock, logger } = this.#options;
      const state = before ?? newState(timezone ?? null);
      const { changed, unchanged } = await splitBatch(state.receipts, batch, progress, (days) =>
        rowsOfDays(engine, days),
      );
      if (changed.length === 0) {
        const done = finishUnchanged(state, unchanged, progress);
        const isStored = unchanged.length === 0 || (removed.length === 0 && isDeepStrictEqual(done.state, state));
        if (!isStored) await engine.transaction(() => writeState(engine, state, done.state), signal);
        this.#state = isStored ? before : done.state;
        return done.commit;
      }
      const planned = planBatch({ ...state, isFirst: state.receipts.size === 0 }, changed, this.#options);
      const changedAt = nextChange(state.receipts, clock.now());
      const store = () => storeBatch(engine, { before, state, planned, unchanged, progress, changedAt });
      const done = await engine.transaction(store, signal).catch((error: unknown) => {
        throw isOfTable(error) ? alteredError(engine.file, error) : error;
      });
      this.#state = done.state;
      logChanges(logger, planned.columns, done.commit.rescued);
      // The space of removed rows is used again.
      if (done.removed > 0) await engine.joinRowGroups();
      return done.commit;
    });
  }

  async #replaceProfiles(snapshot: DayDownload, hashing: HashedColumns, signal: AbortSignal): Promise<SnapshotCommit> {
    const [{ header = [] } = {}] = snapshot.files;
    return withFile({ ...this.#options, columns: header.length, signal }, async (engine) => {
      const { state: before } = (await readChecked(engine, this.#options)) ?? {};
      checkNotPurged(engine.file, this.#opened, before);
      if (isLater(before?.profiles, snapshot)) return { rows: undefined };
      const planned = planSnapshot(before?.profiles, snapshot, this.#options);
      const changedAt = nextChange(before?.receipts ?? new Map(), this.#options.clock.now());
      const store = () => storeSnapshot(engine, { before, planned, hashing, changedAt });
      this.#state = await engine.transaction(store, signal);
      const rescued = rescuesNothing(planned) ? new Map() : await rescuedCells(engine, USER_PROFILES.name);
      logChanges(this.#options.logger, planned.columns, rescued);
      return { rows: this.#state.profiles?.receipt.rows_stored };
    });
  }

  /** Records a run; not if it ended before it made the file. */
  async recordRun(run: RunRecord): Promise<void> {
    if (!fileExists(this.#options.file)) return;
    const { signal: _signal, ...options } = this.#options;
    await withFile(options, async (engine) => {
      if ((await readStored(engine)) === undefined) return;
      await engine.transaction(() => addRecords(engine, RUNS, [run]));
    });
  }

  async close(): Promise<void> {}
}

/** Reads the state of a file, and throws UserError unless this run may load into it. */
async function readChecked(engine: Engine, { timezone: wanted, userProfiles = false }: DuckDbSinkOptions) {
  const timezone = wanted ?? null;
  const stored = await readStored(engine);
  if (userProfiles) await refuseForeignProfiles(engine, stored?.state);
  if (stored === undefined) return undefined;
  if (stored.state.timezone !== timezone) throw otherTimezone(engine.file, 'file', timezone, stored.state.timezone);
  return stored;
}

/** Throws UserError if no file can be made or written at this path, before anything is downloaded. */
function checkWritable(file: string): void {
  // Behind a file, `/.` is an error for root, too.
  const path = fileExists(file) ? file : `${dirname(resolve(file))}/.`;
  try {
    accessSync(path, constants.W_OK);
  } catch (error) {
    throw diskError(error, { what: file, path: file });
  }
}

/** True for DuckDB's refusals of a table that is not as this program left it. */
const isOfTable = (error: unknown): boolean => /^(Binder|Catalog|Constraint|Dependency) Error/.test(messageOf(error));

const alteredError = (file: string, cause: unknown) =>
  configError(
    `${file}: another program changed the table events or made an index on it (${messageOf(cause).split('\n', 1)[0]}): undo ` +
      'that, or load into another file. Nothing was changed.',
    { cause },
  );

interface Storing {
  /** Undefined for a file without tables of this program. */
  readonly before: TableState | undefined;
  readonly state: TableState;
  readonly planned: PlannedBatch;
  readonly unchanged: readonly DayDownload[];
  readonly progress: RunProgress;
  readonly changedAt: string;
}

/** Stores a batch. Called inside a transaction. */
async function storeBatch(engine: Engine, { before, state, planned, unchanged, progress, changedAt }: Storing) {
  const { columns } = planned;
  const retyped = before === undefined ? new Set<Day>() : await retypedDays(engine, columns);
  if (before === undefined) await createTables(engine, columns, state.timezone);
  const isMade = before === undefined || (await alterEvents(engine, columns, zoneOf(planned.timezone)));
  const days = planned.days.map(({ download }) => download.receipt.day);
  const replaced = await engine.run(`DELETE FROM ${inDays(days)}`);
  await withTypedRows(engine, planned, planned.days, (rows) => insertRows(engine, EVENTS, rows));
  const shared = await separateNeighbours(engine, planned);
  const touched = [...days, ...shared.before];
  const rowsAfter = await rowsOfDays(engine, touched);
  const stored = finishBatch(state, planned, {
    unchanged,
    retyped,
    rowsByDay: new Map(touched.map((day) => [day, rowsAfter.get(day) ?? 0])),
    rescued: rescuesNothing(planned) ? new Map() : await rescuedCells(engine, `(FROM ${inDays(touched)})`),
    progress,
    changedAt,
  });
  await writeState(engine, state, stored.state);
  if (isMade || columns.some((column) => column.type !== column.before)) {
    await commentTable(engine, EVENTS, columns, isMade);
    await createViews(engine, columns);
    await refreshModels(engine, stored.state);
  }
  return { ...stored, removed: replaced + shared.removed };
}

const dateSql = (day: Day): string => `DATE ${literal(day)}`;
const inDays = (days: readonly Day[]): string => `events WHERE event_date IN (${days.map(dateSql)})`;
const rowsOfDays = (engine: Engine, days: readonly Day[]) => rowsByDay(engine, inDays(days));

/** The days with a value in a column whose type changes. Called before it does. */
async function retypedDays(engine: Engine, columns: readonly PlannedColumn[]): Promise<ReadonlySet<Day>> {
  const hasValue = columns.filter(isRetyped).map(({ name }) => `${identifier(name)} IS NOT NULL`);
  return new Set(hasValue.length === 0 ? [] : (await rowsByDay(engine, `events WHERE ${anyOf(hasValue)}`)).keys());
}

/**
 * For a day that may share rows with its neighbours. A row that is also stored under the day after stays there alone.
 * One that is stored under the day before is taken from it. Returns the days before that may have lost rows, and the
 * number of removed rows.
 */
async function separateNeighbours(
  engine: Engine,
  { days, columns }: PlannedBatch,
): Promise<{ readonly before: readonly Day[]; readonly removed: number }> {
  const same = identity(columns);
  const removeShared = (from: Day, with_: Day) =>
    engine.run(`
      DELETE FROM events
      WHERE event_date = ${dateSql(from)}
        AND ${same} IN (SELECT ${same} FROM events WHERE event_date = ${dateSql(with_)})`);
  const sharing = days.flatMap(({ download }) => (download.mayShareRows ? [download.receipt.day] : []));
  let removed = 0;
  for (const day of sharing) {
    removed += await removeShared(day, addDays(day, 1));
    removed += await removeShared(addDays(day, -1), day);
  }
  return { before: sharing.map((day) => addDays(day, -1)), removed };
}
