// This folder: the target `parquet`: a folder of datasets. `dataset/` is the folder, `commit/` how a window changes it.

import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import type { PriorLoads, Window } from '../../extract/window.ts';
import { type ColumnChange, changeRecords, logChanges } from '../../table/changes.ts';
import { TABLES, type TableName } from '../../table/columns.ts';
import { incomingColumns } from '../../table/incoming.ts';
import type { PlannedColumn } from '../../table/plan.ts';
import { Zone } from '../../types/zone.ts';
import { otherTimezone } from '../prior-loads.ts';
import { type Commit, commitEach, type Sink } from '../sink.ts';
import { failureOf } from '../sql/files/folder-failure.ts';
import { idsAreKeys } from '../sql/rows/file-query.ts';
import type { TargetOptions } from '../target.ts';
import { prepareWindow, type Settings } from './commit/commit.ts';
import { type Dataset, openDataset } from './dataset/dataset.ts';
import { FolderHistory } from './history.ts';
import { priorLoadsOf } from './prior-loads.ts';
import { addTables } from './tables.ts';

export interface ParquetSinkOptions extends TargetOptions {
  readonly dir: string;
  /** Datasets wanted beside `events`, which is always kept: the others follow from it. */
  readonly tables: readonly TableName[];
  readonly lockWaitMs: number;
}

/**
 * Opens a folder of Parquet datasets for loading; creates it if missing. Finishes a change that a dead run had begun and
 * removes its leftovers. Throws Failure.
 */
export async function openParquetSink(options: ParquetSinkOptions): Promise<Sink> {
  const dataset = await openDataset(options);
  try {
    const zone = options.timezone === undefined ? undefined : new Zone(options.timezone);
    const wanted = TABLES.filter((name) => name === 'events' || options.tables.includes(name));
    checkTimezone(dataset, options.timezone ?? null);
    const rules = {
      zoned: zone !== undefined,
      columnTypes: options.columnTypes,
      pinned: options.pinned,
      mode: options.schemaMode,
    };
    if (dataset.manifest !== undefined) await addTables(dataset, dataset.manifest, wanted, options.signal);
    const last = dataset.manifest?.receipts
      .map(({ id }) => id)
      .sort()
      .at(-1);
    const history = await FolderHistory.open(dataset.places.own, last);
    return new FolderSink(dataset, { rules, zone, tables: wanted }, history, options);
  } catch (error) {
    await dataset.close();
    options.signal?.throwIfAborted();
    throw failureOf(error, options.dir);
  }
}

class FolderSink implements Sink {
  readonly #dataset: Dataset;
  readonly #settings: Settings;
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly runs: FolderHistory;

  constructor(dataset: Dataset, settings: Settings, history: FolderHistory, { logger, clock }: ParquetSinkOptions) {
    this.#dataset = dataset;
    this.#settings = settings;
    this.#logger = logger;
    this.#clock = clock;
    this.runs = history;
  }

  async readPriorLoads(): Promise<PriorLoads> {
    return priorLoadsOf(this.#dataset.manifest);
  }

  commit(batch: readonly Window[], signal: AbortSignal): Promise<Commit> {
    return commitEach(batch, (window) => this.#commit(window, signal));
  }

  async #commit(window: Window, signal: AbortSignal): Promise<Commit> {
    const dataset = this.#dataset;
    try {
      await dataset.engine.run(`SET preserve_insertion_order = ${!idsAreKeys(window)}`);
      const work = () => prepareWindow(dataset, window, this.#settings);
      const { change, commit, plan } = await dataset.prepare(work, signal);
      await this.runs.add(this.#changes(plan, window));
      await dataset.change(change);
      await dataset.clear();
      logChanges(this.#logger, plan, commit.rescued);
      return commit;
    } catch (error) {
      signal.throwIfAborted();
      throw failureOf(error, dataset.places.root);
    }
  }

  #changes(plan: readonly PlannedColumn[], window: Window): ColumnChange[] {
    const changedAt = new Date(this.#clock.now()).toISOString();
    const windows = [{ id: window.receipt.id, columns: incomingColumns(window.files).columns }];
    const isFirst = (this.#dataset.manifest?.receipts.length ?? 0) === 0;
    return changeRecords(plan, { windows, changedAt, isFirst, missed: this.runs.missed });
  }

  close(): Promise<void> {
    return this.#dataset.close();
  }
}

function checkTimezone({ manifest, places }: Dataset, wanted: string | null): void {
  if (manifest === undefined || manifest.receipts.length === 0 || manifest.timezone === wanted) return;
  throw otherTimezone(places.root, 'folder', { wanted, stored: manifest.timezone });
}
