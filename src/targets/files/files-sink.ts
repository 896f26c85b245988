import type { CheckedDay } from '../../extract/checked-day.ts';
import type { CommitInfo } from '../../extract/export-state.ts';
import { planBatch } from '../../table/batch-plan.ts';
import { logWidened } from '../../table/column-plan.ts';
import { type Commit, finishBatch, NOTHING_STORED } from '../../table/commit.ts';
import type { ColumnRules } from '../../table/new-columns.ts';
import { newState, newTable, type PlaceState, type RunRecord } from '../../table/place-state.ts';
import { nextChangedAt } from '../../table/receipts.ts';
import { EVENTS, type Table } from '../../table/tables.ts';
import type { OpenOptions, Sink } from '../contract.ts';
import { checkNotPurged, otherTimezoneError } from '../failures.ts';
import { BatchFiles } from './batch-files.ts';
import { FilesPlace, withUserErrors } from './files-place.ts';
import type { FilesFormat } from './format.ts';
import type { PlaceChange } from './place-version.ts';

/** Opens a place for loading. Throws as `withUserErrors`. */
export function openFilesSink(format: FilesFormat, options: OpenOptions): Promise<Sink> {
  return withUserErrors(options, async () => {
    const place = await FilesPlace.open(format, options, 'load');
    const stored = place.manifest.version?.state.events;
    const { timezone } = options.rules;
    if (stored === undefined || stored.timezone === timezone || stored.receipts.size === 0) {
      return new FilesSink(place, { ...options.rules, columnName: format.columnName }, options);
    }
    await place.close();
    throw otherTimezoneError(options.address, timezone, stored.timezone);
  });
}

/** A place that is open for loading. */
class FilesSink implements Sink {
  readonly #place: FilesPlace;
  readonly #rules: ColumnRules;
  readonly #options: OpenOptions;
  /** The state when the place was opened. */
  readonly #stateAtOpen: PlaceState | undefined;

  constructor(place: FilesPlace, rules: ColumnRules, options: OpenOptions) {
    this.#place = place;
    this.#rules = rules;
    this.#options = options;
    this.#stateAtOpen = this.state;
  }

  get state(): PlaceState | undefined {
    return this.#place.manifest.version?.state;
  }

  async commit(batch: readonly CheckedDay[], commitInfo: CommitInfo, table: Table = EVENTS): Promise<Commit> {
    const { commit, columns } = await withUserErrors(this.#options, () => {
      return this.#place.commit(() => this.#changeOf(batch, commitInfo, table));
    });
    logWidened(this.#options.logger, columns);
    return commit;
  }

  recordRun(run: RunRecord): Promise<void> {
    // A run that a signal has ended is recorded, too.
    this.#place.engine.ignoreAborts();
    return withUserErrors(this.#options, () => this.#place.manifest.recordRun(run));
  }

  async close(): Promise<void> {
    const { logger, address, signal } = this.#options;
    try {
      if (this.state !== undefined && !signal.aborted) {
        this.#place.warnOfDamage();
        await this.#place.manifest.tidy?.();
      }
    } catch (error) {
      const message = `${address}: old files could not be removed; the next run tries again.`;
      logger.warn('files.expired', message, { error: String(error) });
    } finally {
      await this.#place.close();
    }
  }

  /** The change that stores a batch, and what is reported of it. Throws if people were purged since the opening. */
  async #changeOf(batch: readonly CheckedDay[], commitInfo: CommitInfo, table: Table) {
    const { address, clock, logger } = this.#options;
    const place = this.#place;
    const rules = this.#rules;
    const state = this.state ?? newState(rules.timezone);
    checkNotPurged(address, this.#stateAtOpen, state);
    // A first run that died may have had another time zone.
    const stored = state[table.name];
    const before = stored === undefined || stored.receipts.size === 0 ? newTable(table, rules.timezone) : stored;
    const planned = await planBatch(before, batch, {
      table,
      commitInfo,
      rules,
      logger,
      countRows: (days) => place.countRows(days),
    });
    if (planned === undefined) return { change: undefined, report: { commit: NOTHING_STORED, columns: [] } };
    const changedAt = nextChangedAt(before.receipts, clock.now());
    const batchFiles = new BatchFiles(place, planned, changedAt);
    const { files, ...rows } = await place.engine.transaction(() => batchFiles.write());
    const { state: tableState, commit } = finishBatch(planned, rows, changedAt);
    const change: PlaceChange = { kind: 'load', state: { ...state, [table.name]: tableState }, files };
    return { change, report: { commit, columns: planned.columns } };
  }
}
