import { isDeepStrictEqual } from 'node:util';
import { rescuedCells } from '../../engine/rows/counts.ts';
import { rowsIn } from '../../engine/rows/typed-rows.ts';
import type { DayDownload } from '../../extract/day-download.ts';
import type { HashedColumns } from '../../extract/export-request.ts';
import type { RunProgress } from '../../extract/export-state.ts';
import {
  type Commit,
  finishBatch,
  finishUnchanged,
  planBatch,
  planSnapshot,
  profilesAfter,
} from '../../table/batch.ts';
import { logChanges } from '../../table/changes.ts';
import type { ColumnRules } from '../../table/column-plan.ts';
import { newState, type PlaceState, type RunRecord } from '../../table/place-state.ts';
import { isLater, nextChange, splitBatch } from '../../table/receipts.ts';
import type { OpenOptions, Sink } from '../contract.ts';
import { checkNotPurged, filesError, otherTimezone } from '../failures.ts';
import { BatchFiles } from './batch-files.ts';
import { FilesPlace } from './files-place.ts';
import type { CommitChange, FilesFormat } from './format.ts';
import { readParquet } from './parquet-file.ts';

type SinkOptions = OpenOptions & { readonly place: string };

/** Opens a place for loading. Throws UserError. */
export async function openFilesSink(format: FilesFormat, options: SinkOptions): Promise<Sink> {
  let place: FilesPlace | undefined;
  try {
    place = await FilesPlace.open(format, options, 'load');
    const stored = place.log.version?.state;
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
  /** The state when the place was opened. */
  readonly #opened: PlaceState | undefined;

  constructor(place: FilesPlace, options: SinkOptions & ColumnRules) {
    this.#place = place;
    this.#options = options;
    this.#opened = this.state;
  }

  get state(): PlaceState | undefined {
    return this.#place.log.version?.state;
  }

  commit(batch: readonly DayDownload[], progress: RunProgress, signal: AbortSignal): Promise<Commit> {
    return this.#exclusively(signal, (commit) => this.#commit(batch, progress, signal, commit));
  }

  replaceProfiles(snapshot: DayDownload, hashing: HashedColumns, signal: AbortSignal): Promise<number | undefined> {
    return this.#exclusively(signal, (commit) => this.#replaceProfiles(snapshot, hashing, signal, commit));
  }

  recordRun(run: RunRecord): Promise<void> {
    return this.#guarded(() => this.#place.log.recordRun(run));
  }

  async close(): Promise<void> {
    const { logger, place, signal } = this.#options;
    try {
      if (this.state !== undefined && !signal.aborted) await this.#place.log.tidy();
    } catch (error) {
      const message = `${place}: old files could not be removed; the next run tries again.`;
      logger.warn('files.expired', message, { error: String(error) });
    } finally {
      await this.#place.close();
    }
  }

  /** The state to which a commit adds. Throws if people were purged since the place was opened. */
  #latestState(): PlaceState {
    const { timezone = null, place } = this.#options;
    const stored = this.state ?? newState(timezone);
    checkNotPurged(place, this.#opened, stored);
    return stored;
  }

  async #commit(
    batch: readonly DayDownload[],
    progress: RunProgress,
    signal: AbortSignal,
    commit: CommitChange,
  ): Promise<Commit> {
    const { timezone = null, clock, logger } = this.#options;
    const place = this.#place;
    const stored = this.#latestState();
    // A first run that died may have had another time zone.
    const before = stored.receipts.size === 0 ? { ...stored, timezone } : stored;
    const { changed, unchanged } = await splitBatch(before.receipts, batch, progress, (days) => place.countRows(days));
    if (changed.length === 0) {
      const { state, commit: report } = finishUnchanged(before, unchanged, progress);
      const isStored = unchanged.length === 0 || isDeepStrictEqual(state, stored);
      if (!isStored || place.log.version?.namesRemoved === true)
        await commit({ kind: 'load', state, events: { removed: [], added: [] } });
      return report;
    }
    const planned = planBatch({ ...before, isFirst: before.receipts.size === 0 }, changed, this.#options);
    const changedAt = nextChange(before.receipts, clock.now());
    const files = new BatchFiles(place, planned, changedAt);
    const written = await place.engine.transaction(() => files.write(before.receipts), signal);
    const { state, commit: report } = finishBatch(before, planned, {
      ...written,
      unchanged,
      progress,
      changedAt,
    });
    await commit({ kind: 'load', state, events: written });
    logChanges(logger, planned.columns, report.rescued);
    return report;
  }

  async #replaceProfiles(
    snapshot: DayDownload,
    hashing: HashedColumns,
    signal: AbortSignal,
    commit: CommitChange,
  ): Promise<number | undefined> {
    const { clock, logger } = this.#options;
    const { engine, log } = this.#place;
    const before = this.#latestState();
    if (isLater(before.profiles, snapshot)) return undefined;
    const planned = planSnapshot(before.profiles, snapshot, this.#options);
    const [plannedDay] = planned.days;
    const rows = rowsIn([plannedDay]);
    const changedAt = nextChange(before.receipts, clock.now());
    const profiles = profilesAfter(planned, { rows, changedAt, hashing });
    const files = new BatchFiles(this.#place, planned, changedAt);
    const added = await engine.transaction(() => files.writeDay(plannedDay, profiles), signal);
    const rescued = added === undefined ? new Map() : await rescuedCells(engine, readParquet([added.local]));
    const stored = log.version?.profiles;
    const change = { removed: stored === undefined ? [] : [stored], added: added === undefined ? [] : [added] };
    await commit({ kind: 'load', state: { ...before, profiles }, profiles: change });
    logChanges(logger, planned.columns, rescued);
    return rows;
  }

  #exclusively<T>(signal: AbortSignal, work: (commit: CommitChange) => Promise<T>): Promise<T> {
    return this.#guarded(() => this.#place.exclusively(work), signal);
  }

  async #guarded<T>(work: () => Promise<T>, signal = this.#options.signal): Promise<T> {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      throw filesError(error, this.#options.place);
    }
  }
}
