import type { CheckedDay } from '../../extract/checked-day.ts';
import type { CommitInfo } from '../../extract/export-state.ts';
import { planBatch } from '../../table/batch-plan.ts';
import { logWidened } from '../../table/column-plan.ts';
import { type CommitResult, NOTHING_STORED } from '../../table/commit.ts';
import { newPlaceState, newTableState, type PlaceState, type RunRecord, withTable } from '../../table/place-state.ts';
import { warnOfAbsentDays } from '../../table/place-warnings.ts';
import { EVENTS, type Table } from '../../table/tables.ts';
import type { LoadOptions, Sink } from '../contract.ts';
import { checkFingerprints, checkNotPurged, checkTimezone, loadedTables } from '../refusals.ts';
import type { FilesFormat, OpenPlace } from './format.ts';
import { closePlace, openPlace, warnOfDamage, withUserErrors } from './open-place.ts';
import type { PlaceChange, PlaceVersion } from './place-version.ts';
import { countRowsInFiles } from './read-files.ts';
import { writeBatch } from './write-batch.ts';

/** Opens a place for loading. Throws as `openPlace`. */
export async function openFilesSink(format: FilesFormat, options: LoadOptions): Promise<Sink> {
  const { place, version } = await openPlace(format, { purpose: 'load', options });
  warnOfAbsentDays(options.logger, version.removedDays, version.state.events);
  return new FilesSink(place, version, options);
}

/** A place that is open for loading. */
class FilesSink implements Sink {
  readonly kind = 'stateful';
  readonly #place: OpenPlace;
  readonly #options: LoadOptions;
  /** The state when the place was opened. */
  readonly #stateAtOpen: PlaceState;
  /** As read when the place was opened, or last committed. */
  #version: PlaceVersion;

  constructor(place: OpenPlace, version: PlaceVersion, options: LoadOptions) {
    this.#place = place;
    this.#options = options;
    this.#stateAtOpen = version.state;
    this.#version = version;
  }

  get state(): PlaceState | undefined {
    return this.#version.isLoaded ? this.#version.state : undefined;
  }

  async commit(batch: readonly CheckedDay[], commitInfo: CommitInfo, table: Table = EVENTS): Promise<CommitResult> {
    const prepareChange = (version: PlaceVersion) => this.#prepareChange(version, batch, commitInfo, table);
    const { version, result } = await withUserErrors(this.#place, () =>
      this.#place.format.commit(this.#place, this.#version, prepareChange),
    );
    this.#version = version;
    logWidened(this.#options.logger, result.changes);
    return result.commit;
  }

  recordRun(run: RunRecord): Promise<void> {
    // A run that a signal has ended is recorded, too.
    this.#place.engine.ignoreAborts();
    return withUserErrors(this.#place, () => this.#place.format.recordRun(this.#place, this.#version, run));
  }

  async close(): Promise<void> {
    const { logger, address, signal } = this.#options;
    const version = this.#version;
    try {
      if (version.isLoaded && !signal.aborted) {
        warnOfDamage(this.#place, version);
        await this.#place.format.removeExpired(this.#place, version);
      }
    } catch (error) {
      const message = `${address}: old files could not be removed; the next run tries again.`;
      logger.warn('files.expired', message, { error: String(error) });
    } finally {
      await closePlace(this.#place);
    }
  }

  /**
   * The change that stores a batch, and what its commit comes to. Throws if people were purged since the opening, or if
   * another run has loaded a first day with another time zone, or into a table of another target.
   */
  async #prepareChange(version: PlaceVersion, batch: readonly CheckedDay[], commitInfo: CommitInfo, table: Table) {
    const { address, logger, columnSettings } = this.#options;
    const place = this.#place;
    const state = version.isLoaded ? version.state : newPlaceState(columnSettings.timezone);
    checkNotPurged(address, this.#stateAtOpen, state);
    checkTimezone(loadedTables(state), this.#options);
    checkFingerprints(state, commitInfo.fingerprints);
    let tableBefore = state[table.name];
    if (!tableBefore?.receipts.size) {
      // A run of another target may have made its tables here meanwhile.
      await place.format.refuseForeignFiles(place.storage, table.name);
      // A first run that died before it stored rows may have had another time zone.
      tableBefore = newTableState(table, columnSettings.timezone);
    }
    const plan = await planBatch(tableBefore, batch, {
      table,
      commitInfo,
      columnSettings: { ...columnSettings, columnNameOf: place.format.layout.columnNameOf },
      logger,
      now: place.engine.clock.now(),
      countRows: (days) => countRowsInFiles(place.localFiles, version, days),
    });
    if (plan === undefined) return { change: undefined, result: { commit: NOTHING_STORED, changes: [] } };
    const { fileChanges, tableAfter, commit } = await place.engine.transaction(() =>
      writeBatch(place.localFiles, version, plan),
    );
    const change: PlaceChange = { kind: 'load', state: withTable(state, table, tableAfter), fileChanges };
    return { change, result: { commit, changes: plan.changes } };
  }
}
