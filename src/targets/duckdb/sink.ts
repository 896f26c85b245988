// This folder: the target `duckdb`: one file with the tables `events` and `user_profiles`, tables beside them, and
// views. `sink.ts` opens it for loading, `store-batch.ts` is one commit. `row-tables.ts` has the tables of rows,
// `file-state.ts` and `record-tables.ts` those of the state. `file-maintenance.ts` verifies, reports and prunes,
// `file-people.ts` finds and purges people, `file-copy.ts` writes the file anew, `models/` makes analytical views.

import { accessSync, constants, existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { Day } from '../../base/days.ts';
import { configError, messageOf } from '../../base/errors.ts';
import { rescuedCells } from '../../engine/rows/counts.ts';
import type { Engine } from '../../engine/session/engine.ts';
import { withFile } from '../../engine/session/open-engine.ts';
import type { HashedColumns } from '../../extract/export-request.ts';
import type { DayDownload, RunProgress } from '../../extract/receipt.ts';
import { diskError } from '../../fs/disk-failure.ts';
import { checkLocalPath } from '../../fs/local-path.ts';
import { type Commit, finishUnchanged, planBatch, planSnapshot, rescuesNothing } from '../../table/batch.ts';
import { logChanges } from '../../table/changes.ts';
import { newState, type PlaceState, type RunRecord } from '../../table/place-state.ts';
import { removedWarning } from '../../table/place-warnings.ts';
import { isLater, splitBatch } from '../../table/receipts.ts';
import { USER_PROFILES } from '../../table/tables.ts';
import type { OpenOptions, Sink } from '../contract.ts';
import { checkNotPurged, otherTimezone } from '../failures.ts';
import { type FileState, readFileState, refuseForeignProfiles, writeState } from './file-state.ts';
import { addRecords, RUNS } from './record-tables.ts';
import { rowsOfDays, storeBatch, storeSnapshot } from './store-batch.ts';

export async function openDuckDbSink(file: string, options: OpenOptions): Promise<Sink> {
  checkLocalPath(file);
  checkCanWrite(file);
  if (!existsSync(file)) return new DuckDbSink(file, undefined, options);
  const stored = await withFile({ ...options, file, readOnly: true }, (engine) => readChecked(engine, options));
  const removed = stored?.removed ?? [];
  if (removed.length > 0) options.logger.warn('days.removed', removedWarning(removed), { days: removed.length });
  return new DuckDbSink(file, stored?.state, options);
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

  commit(batch: readonly DayDownload[], progress: RunProgress, signal: AbortSignal): Promise<Commit> {
    return this.#withFile(batch, signal, async (engine, { isNew, state, removed }) => {
      const countRows = (days: readonly Day[]) => rowsOfDays(engine, days);
      const { changed, unchanged } = await splitBatch(state.receipts, batch, progress, countRows);
      if (changed.length === 0) {
        this.#state = isNew ? undefined : state;
        const done = finishUnchanged(state, unchanged, progress);
        if (unchanged.length > 0 && (removed.length > 0 || !isDeepStrictEqual(done.state, state))) {
          await engine.transaction(() => writeState(engine, done.state), signal);
          this.#state = done.state;
        }
        return done.commit;
      }
      const planned = planBatch({ ...state, isFirst: state.receipts.size === 0 }, changed, this.#options);
      const store = () => storeBatch(engine, { isNew, state, planned }, unchanged, progress);
      const done = await engine.transaction(store, signal).catch((error: unknown) => {
        throw isOfTable(error) ? alteredError(engine.file, error) : error;
      });
      this.#state = done.state;
      logChanges(this.#options.logger, planned.columns, done.commit.rescued);
      return done.commit;
    });
  }

  replaceProfiles(snapshot: DayDownload, hashing: HashedColumns, signal: AbortSignal): Promise<number | undefined> {
    return this.#withFile([snapshot], signal, async (engine, { isNew, state }) => {
      if (isLater(state.profiles, snapshot)) return undefined;
      const planned = planSnapshot(state.profiles, snapshot, this.#options);
      const store = () => storeSnapshot(engine, { isNew, state, planned }, hashing);
      this.#state = await engine.transaction(store, signal);
      const rescued = rescuesNothing(planned) ? new Map() : await rescuedCells(engine, USER_PROFILES.name);
      logChanges(this.#options.logger, planned.columns, rescued);
      return this.#state.profiles?.receipt.rows_stored;
    });
  }

  /** Opens the file for these downloads, and reads its state anew; `isNew`: it has no tables of this program yet. */
  #withFile<T>(
    downloads: readonly DayDownload[],
    signal: AbortSignal,
    work: (engine: Engine, stored: FileState & { readonly isNew: boolean }) => Promise<T>,
  ): Promise<T> {
    const { timezone = null } = this.#options;
    const columns = new Set(downloads.flatMap(({ files }) => files.flatMap(({ header }) => header))).size;
    return withFile({ ...this.#options, file: this.#file, columns, signal }, async (engine) => {
      const stored = await readChecked(engine, this.#options);
      checkNotPurged(engine.file, this.#opened, stored?.state);
      return work(engine, { state: newState(timezone), removed: [], ...stored, isNew: stored === undefined });
    });
  }

  /** Records a run; not if it ended before it made the file. */
  async recordRun(run: RunRecord): Promise<void> {
    if (!existsSync(this.#file)) return;
    // A run that a signal has ended is recorded, too.
    await withFile({ ...this.#options, file: this.#file, signal: undefined }, async (engine) => {
      if ((await readFileState(engine)) === undefined) return;
      await engine.transaction(() => addRecords(engine, RUNS, [run]));
    });
  }

  async close(): Promise<void> {}
}

/** Reads the state of a file, and throws UserError unless this run may load into it. */
async function readChecked(engine: Engine, options: OpenOptions): Promise<FileState | undefined> {
  const timezone = options.timezone ?? null;
  const stored = await readFileState(engine);
  if (options.userProfiles) await refuseForeignProfiles(engine, stored?.state);
  if (stored === undefined || stored.state.timezone === timezone) return stored;
  throw otherTimezone(engine.file, 'file', timezone, stored.state.timezone);
}

/** Throws UserError if no file can be made or written at this path, before anything is downloaded. */
function checkCanWrite(file: string): void {
  // Behind a file, `/.` is an error for root, too.
  const path = existsSync(file) ? file : `${dirname(resolve(file))}/.`;
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
