import { isDeepStrictEqual } from 'node:util';
import { addDays, type Day } from '../../base/days.ts';
import { DETAIL_LOG_ID } from '../../cells/columns/groups.ts';
import { anyOf, identifier } from '../../cells/types/sql.ts';
import { identity, rescuedCells, rowsByDay } from '../../engine/rows/counts.ts';
import { checkRowCount, rowsIn, selectRows, withTypedRows } from '../../engine/rows/typed-rows.ts';
import type { HashedColumns } from '../../extract/export-request.ts';
import type { DayDownload, RunProgress } from '../../extract/receipt.ts';
import {
  type Commit,
  finishBatch,
  finishUnchanged,
  type PlannedBatch,
  type PlannedDay,
  planBatch,
  planSnapshot,
  profilesAfter,
  rescuesNothing,
} from '../../table/batch.ts';
import { logChanges } from '../../table/changes.ts';
import { type ColumnRules, isRetyped, type PlannedColumn } from '../../table/column-plan.ts';
import { newState, type RunRecord, type StoredProfiles, type TableState } from '../../table/place-state.ts';
import { isLater, nextChange, type StoredReceipt, splitBatch } from '../../table/receipts.ts';
import type { OpenOptions, ProfilesSink, Sink, SnapshotCommit } from '../contract.ts';
import { checkNotPurged, filesError, otherTimezone } from '../failures.ts';
import type { CommitChange, DayFile, FilesFormat, FilesOptions, NewFile } from './format.ts';
import { readParquet } from './parquet-file.ts';
import { FilesPlace } from './place.ts';

type SinkOptions = FilesOptions & OpenOptions;

/** Opens a place for loading. Throws UserError. */
export async function openFilesSink(format: FilesFormat, options: SinkOptions): Promise<FilesSink> {
  let place: FilesPlace | undefined;
  try {
    place = await FilesPlace.open(format, options, 'load');
    const stored = place.log.snapshot?.state;
    if (options.userProfiles) await place.log.refuseForeignProfiles();
    if (stored === undefined || stored.timezone === (options.timezone ?? null) || stored.receipts.size === 0) {
      return new FilesSink(place, { ...options, columnName: format.columnName });
    }
    throw otherTimezone(options.place, 'folder', options.timezone ?? null, stored.timezone);
  } catch (error) {
    await place?.close();
    options.signal.throwIfAborted();
    throw filesError(error, options.place);
  }
}

/** A place that is open for loading. */
class FilesSink implements Sink {
  readonly #place: FilesPlace;
  readonly #options: SinkOptions & ColumnRules;
  readonly #opened: TableState | undefined;

  constructor(place: FilesPlace, options: SinkOptions) {
    this.#place = place;
    this.#options = options;
    this.#opened = this.state;
  }

  get state(): TableState | undefined {
    return this.#place.log.snapshot?.state;
  }

  commit(batch: readonly DayDownload[], progress: RunProgress, signal: AbortSignal): Promise<Commit> {
    const work = (commit: CommitChange) => this.#commit(batch, progress, signal, commit);
    return this.#guarded(() => this.#place.exclusively(work), signal);
  }

  get profiles(): ProfilesSink | undefined {
    if (!this.#options.userProfiles) return undefined;
    return {
      replace: (snapshot, hashing, signal) => {
        const work = (commit: CommitChange) => this.#replaceProfiles(snapshot, hashing, signal, commit);
        return this.#guarded(() => this.#place.exclusively(work), signal);
      },
    };
  }

  async #replaceProfiles(
    snapshot: DayDownload,
    hashing: HashedColumns,
    signal: AbortSignal,
    commit: CommitChange,
  ): Promise<SnapshotCommit> {
    const { timezone = null, place: name, clock, logger } = this.#options;
    const { engine, log } = this.#place;
    const before = this.state ?? newState(timezone);
    checkNotPurged(name, this.#opened, before);
    if (isLater(before.profiles, snapshot)) return { rows: undefined };
    const planned = planSnapshot(before.profiles, snapshot, this.#options);
    const [unit] = planned.days;
    const rows = rowsIn([unit]);
    const changedAt = nextChange(before.receipts, clock.now());
    const profiles = profilesAfter(planned, { rows, changedAt, hashing });
    const added = await engine.transaction(() => this.#writeDay(planned, unit, changedAt, profiles), signal);
    const rescued = added === undefined ? new Map() : await rescuedCells(engine, readParquet([added.local]));
    const files = { removed: log.snapshot?.profiles, added };
    await commit({ kind: 'load', state: { ...before, profiles }, removed: [], added: [], profiles: files });
    logChanges(logger, planned.columns, rescued);
    return { rows };
  }

  recordRun(run: RunRecord): Promise<void> {
    return this.#guarded(() => this.#place.log.recordRun(run));
  }

  async close(): Promise<void> {
    try {
      if (this.state !== undefined && !this.#options.signal.aborted) await this.#place.log.tidy();
    } catch (error) {
      const { place } = this.#options;
      this.#options.logger.warn(
        'files.expired',
        `${place}: old files could not be removed; the next run tries again.`,
        {
          error: String(error),
        },
      );
    } finally {
      await this.#place.close();
    }
  }

  async #guarded<T>(work: () => Promise<T>, signal = this.#options.signal): Promise<T> {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      throw filesError(error, this.#options.place);
    }
  }

  async #commit(
    batch: readonly DayDownload[],
    progress: RunProgress,
    signal: AbortSignal,
    commit: CommitChange,
  ): Promise<Commit> {
    const { timezone = null, place: name, clock, logger } = this.#options;
    const place = this.#place;
    const stored = this.state ?? newState(timezone);
    checkNotPurged(name, this.#opened, stored);
    // A first run that died may have had another time zone.
    const before = stored.receipts.size === 0 ? { ...stored, timezone } : stored;
    const { changed, unchanged } = await splitBatch(before.receipts, batch, progress, (days) => place.countRows(days));
    if (changed.length === 0) {
      const { state, commit: report } = finishUnchanged(before, unchanged, progress);
      const isStored = unchanged.length === 0 || (!place.log.isAhead && isDeepStrictEqual(state, stored));
      if (!isStored) await commit({ kind: 'load', state, removed: [], added: [] });
      return report;
    }
    const planned = planBatch({ ...before, isFirst: before.receipts.size === 0 }, changed, this.#options);
    const changedAt = nextChange(before.receipts, clock.now());
    const written = await place.engine.transaction(() => this.#write(planned, before, changedAt), signal);
    const { state, commit: report } = finishBatch(before, planned, { ...written, unchanged, progress, changedAt });
    await commit({ kind: 'load', state, added: written.added, removed: written.removed });
    logChanges(logger, planned.columns, report.rescued);
    return report;
  }

  /** Writes the files of the days, and those that a neighbouring day or a change of types makes necessary. */
  async #write(planned: PlannedBatch, before: TableState, changedAt: string) {
    const place = this.#place;
    const stored = place.log.snapshot?.files ?? new Map<Day, DayFile>();
    const retyped = await this.#retypedDays(planned);
    const table = { columns: planned.columns, timezone: planned.timezone ?? null, receipts: before.receipts };
    const added: NewFile[] = [];
    const rowsByDay = new Map<Day, number>();
    for (const day of planned.days) {
      let file = await this.#writeDay(planned, day, changedAt);
      // A day that may share rows is alone in its batch.
      if (day.download.mayShareRows && file !== undefined) {
        file = await this.#withoutRowsOfNext(file, day, planned, changedAt);
        const previous = stored.get(addDays(day.download.receipt.day, -1));
        const lost =
          file === undefined || previous === undefined ? 0 : await this.#countShared(previous, file, planned);
        if (file !== undefined && previous !== undefined && lost > 0) {
          const rest = await place.rewrite(previous, table, { without: shared(file.local, planned), lost, changedAt });
          if (rest !== undefined) added.push(rest);
          rowsByDay.set(previous.day, previous.rows - lost);
        }
      }
      if (file !== undefined) added.push(file);
      rowsByDay.set(day.download.receipt.day, file?.rows ?? 0);
    }
    const rescued = await this.#rescued(planned, added);
    const outdated = place.log.outdated(planned.columns).filter(({ day }) => !rowsByDay.has(day));
    for (const file of outdated) {
      const written = await place.rewrite(file, table, retyped.has(file.day) ? { changedAt } : {});
      if (written !== undefined) added.unshift(written);
    }
    const leaving = new Set([...rowsByDay.keys(), ...outdated.map(({ day }) => day)]);
    const removed = [...stored.values()].filter(({ day }) => leaving.has(day));
    return { added, removed, rowsByDay, retyped, rescued };
  }

  /** The stored days with a value in a column whose type changes. */
  async #retypedDays(planned: PlannedBatch): Promise<ReadonlySet<Day>> {
    const names = planned.columns.filter(isRetyped).map(({ name }) => name);
    const files = [...(this.#place.log.snapshot?.files.values() ?? [])];
    const having = files.filter(({ columns }) => names.some((name) => columns.has(name)));
    const from = names.length === 0 ? undefined : await this.#place.rowsOf(having);
    if (from === undefined) return new Set();
    const hasValue = names.map((name) => `${identifier(name)} IS NOT NULL`);
    return new Set((await rowsByDay(this.#place.engine, `${from} WHERE ${anyOf(hasValue)}`)).keys());
  }

  async #writeDay(
    planned: PlannedBatch,
    day: PlannedDay,
    changedAt: string,
    profiles?: StoredProfiles,
  ): Promise<NewFile | undefined> {
    const { engine, log } = this.#place;
    const rows = rowsIn([day]);
    const written: NewFile[] = [];
    await withTypedRows(engine, planned, [day], async (typed) => {
      const filled = new Set(typed.columns.map(({ key }) => key));
      const isWanted = ({ key, group }: PlannedColumn) => log.isUniform || group === 'system' || filled.has(key);
      const table = { columns: planned.columns.filter(isWanted), timezone: planned.timezone ?? null };
      const own = log.columnsOf({ ...table, columns: [] });
      const query = selectRows(typed, { ...planned, columns: table.columns }, own);
      written.push(await this.#place.write(query, rows, receiptOf(day, rows, changedAt), profiles));
    });
    checkRowCount([day], written[0]?.rows ?? 0, this.#place.name);
    return written[0];
  }

  /** The file of a day without the rows that are also stored under the next day; undefined if none is left. */
  async #withoutRowsOfNext(
    file: NewFile,
    day: PlannedDay,
    planned: PlannedBatch,
    changedAt: string,
  ): Promise<NewFile | undefined> {
    const next = this.#place.log.snapshot?.files.get(addDays(file.day, 1));
    if (next === undefined) return file;
    const isShared = shared(await this.#place.fetchColumns(next, idColumns(planned)), planned);
    const lost = await this.#place.engine.count(`${readParquet([file.local])} WHERE ${isShared}`);
    if (lost === 0) return file;
    const rows = file.rows - lost;
    if (rows === 0) return undefined;
    const query = `SELECT * FROM ${readParquet([file.local])} WHERE NOT ${isShared}`;
    return this.#place.write(query, rows, receiptOf(day, rows, changedAt));
  }

  async #countShared(previous: DayFile, { local }: NewFile, planned: PlannedBatch): Promise<number> {
    const from = readParquet([await this.#place.fetchColumns(previous, idColumns(planned))]);
    return this.#place.engine.count(`${from} WHERE ${shared(local, planned)}`);
  }

  async #rescued(planned: PlannedBatch, added: readonly NewFile[]): Promise<ReadonlyMap<string, number>> {
    const days = new Set(planned.days.map(({ download }) => download.receipt.day));
    const paths = added.filter(({ day }) => days.has(day)).map(({ local }) => local);
    if (paths.length === 0 || rescuesNothing(planned)) return new Map();
    return rescuedCells(this.#place.engine, readParquet(paths));
  }
}

const receiptOf = ({ download: { receipt } }: PlannedDay, rows: number, changed_at: string): StoredReceipt => ({
  ...receipt,
  rows_stored: rows,
  changed_at,
});

/** The columns by which neighbouring days are compared. */
const idColumns = ({ columns }: PlannedBatch): string[] => {
  const id = columns.find(({ source, occurrence }) => source === DETAIL_LOG_ID && occurrence === 1);
  return ['_key', ...(id === undefined ? [] : [id.name])];
};

/** SQL that is TRUE for a row which another file also has. */
const shared = (path: string, { columns }: PlannedBatch): string =>
  `coalesce(${identity(columns)} IN (SELECT ${identity(columns)} FROM ${readParquet([path])}), false)`;
