import { rowsIn } from '../../engine/rows/typed-rows.ts';
import type { CheckedDay } from '../../extract/checked-day.ts';
import type { HashedColumns } from '../../extract/export-request.ts';
import type { RunProgress } from '../../extract/export-state.ts';
import { planBatch, planSnapshot } from '../../table/batch-plan.ts';
import { logRescued, logWidened } from '../../table/changes.ts';
import { type Commit, finishBatch, finishUnchanged, profilesAfter } from '../../table/commit.ts';
import { newState, type PlaceState, type RunRecord } from '../../table/place-state.ts';
import { nextChangedAt, splitBatch } from '../../table/receipts.ts';
import type { OpenOptions, Sink } from '../contract.ts';
import { checkNotPurged, otherTimezoneError } from '../failures.ts';
import { BatchFiles } from './batch-files.ts';
import { FilesPlace, guarded } from './files-place.ts';
import type { FilesFormat } from './format.ts';
import type { Change } from './place-version.ts';

type SinkOptions = OpenOptions & { readonly address: string };

/** Opens a place for loading. Throws as `guarded`. */
export function openFilesSink(format: FilesFormat, options: SinkOptions): Promise<Sink> {
  return guarded(options, async () => {
    const place = await FilesPlace.open(format, options, 'load');
    const stored = place.log.version?.state;
    if (stored === undefined || stored.timezone === (options.timezone ?? null) || stored.receipts.size === 0) {
      return new FilesSink(place, { ...options, columnName: format.columnName });
    }
    await place.close();
    const timezones = { configured: options.timezone ?? null, stored: stored.timezone };
    throw otherTimezoneError(options.address, timezones);
  });
}

/** A place that is open for loading. */
class FilesSink implements Sink {
  readonly #place: FilesPlace;
  readonly #options: SinkOptions;
  /** The state when the place was opened. */
  readonly #stateAtOpen: PlaceState | undefined;

  constructor(place: FilesPlace, options: SinkOptions) {
    this.#place = place;
    this.#options = options;
    this.#stateAtOpen = this.state;
  }

  get state(): PlaceState | undefined {
    return this.#place.log.version?.state;
  }

  async commit(batch: readonly CheckedDay[], progress: RunProgress): Promise<Commit> {
    const { commit, changes } = await guarded(this.#options, () => {
      return this.#place.commit(() => this.#changeOfDays(batch, progress));
    });
    logWidened(this.#options.logger, changes);
    logRescued(this.#options.logger, commit.rescued);
    return commit;
  }

  async replaceProfiles(snapshot: CheckedDay, hashing: HashedColumns): Promise<number | undefined> {
    const stored = await guarded(this.#options, () => {
      return this.#place.commit(() => this.#changeOfProfiles(snapshot, hashing));
    });
    if (stored === undefined) return undefined;
    logWidened(this.#options.logger, stored.changes);
    logRescued(this.#options.logger, stored.rescued);
    return stored.rows;
  }

  recordRun(run: RunRecord): Promise<void> {
    // A run that a signal has ended is recorded, too.
    this.#place.engine.ignoreAborts();
    return guarded(this.#options, () => this.#place.log.recordRun(run));
  }

  async close(): Promise<void> {
    const { logger, address, signal } = this.#options;
    try {
      if (this.state !== undefined && !signal.aborted) {
        this.#place.warnOfDamage();
        await this.#place.log.tidy?.();
      }
    } catch (error) {
      const message = `${address}: old files could not be removed; the next run tries again.`;
      logger.warn('files.expired', message, { error: String(error) });
    } finally {
      await this.#place.close();
    }
  }

  /** The change that stores a batch of days, and what is reported of it. */
  async #changeOfDays(batch: readonly CheckedDay[], progress: RunProgress) {
    const place = this.#place;
    const { before, changedAt } = this.#startingPoint();
    const { toWrite, unchanged } = await splitBatch(before.receipts, batch, progress, {
      logger: this.#options.logger,
      countRows: (days) => place.countRows(days),
    });
    if (toWrite.length === 0) {
      const { state, commit } = finishUnchanged(before, unchanged, progress);
      const change: Change = { kind: 'load', state, files: [] };
      return { change: unchanged.length === 0 ? undefined : change, report: { commit, changes: [] } };
    }
    const storedColumns = before.receipts.size === 0 ? undefined : before.columns;
    const planned = planBatch(storedColumns, toWrite, this.#options);
    const batchFiles = new BatchFiles(place, planned, changedAt);
    const { files, ...stored } = await place.engine.transaction(() => batchFiles.writeDays(before));
    const { state, commit } = finishBatch(before, planned, { ...stored, unchanged, progress, changedAt });
    const change: Change = { kind: 'load', state, files };
    return { change, report: { commit, changes: planned.changes } };
  }

  /** The change that replaces the table of profiles; none if a later snapshot is there. */
  async #changeOfProfiles(snapshot: CheckedDay, hashing: HashedColumns) {
    const { before, changedAt } = this.#startingPoint();
    const planned = planSnapshot(before.profiles, snapshot, this.#options);
    if (planned === undefined) return { change: undefined, report: undefined };
    const rows = rowsIn(planned.days);
    const profiles = profilesAfter(planned, { rows, changedAt, hashing });
    const batchFiles = new BatchFiles(this.#place, planned, changedAt);
    const { files, rescued } = await this.#place.engine.transaction(() => batchFiles.writeSnapshot(profiles));
    const change: Change = { kind: 'load', state: { ...before, profiles }, files };
    return { change, report: { rows, rescued, changes: planned.changes } };
  }

  /** The state to which a commit adds, and its instant. Throws if people were purged since the place was opened. */
  #startingPoint(): { readonly before: PlaceState; readonly changedAt: string } {
    const { timezone = null, address, clock } = this.#options;
    const stored = this.state ?? newState(timezone);
    checkNotPurged(address, this.#stateAtOpen, stored);
    // A first run that died may have had another time zone.
    const before = stored.receipts.size === 0 ? { ...stored, timezone } : stored;
    return { before, changedAt: nextChangedAt(before.receipts, clock.now()) };
  }
}
