// This folder: the target `duckdb`: one file with the table `events`. `tables/` holds its tables, `models/` its
// analytical views.

import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import type { PriorLoads, Window } from '../../extract/window.ts';
import { changeRecords, columnChanges, logChanges } from '../../table/changes.ts';
import type { StoredColumn } from '../../table/columns.ts';
import { type IncomingColumns, incomingColumns } from '../../table/incoming.ts';
import { type PlannedColumn, planColumns, type Rules } from '../../table/plan.ts';
import type { RunHistory } from '../../table/runs.ts';
import { Zone } from '../../types/zone.ts';
import { type Commit, commitEach, type Sink } from '../sink.ts';
import { type Engine, openEngine } from '../sql/engine/engine.ts';
import { engineFailure, isOutOfMemory, isRefusedByIndex } from '../sql/engine/faults.ts';
import { isWide } from '../sql/engine/new-file.ts';
import { hasRowsWithoutId, idsAreKeys } from '../sql/rows/file-query.ts';
import { rescuedCounts } from '../sql/rows/rescued.ts';
import type { TargetOptions } from '../target.ts';
import { loadWindow } from './load.ts';
import { refreshModels } from './models/store.ts';
import { priorLoadsOf } from './prior-loads.ts';
import { publish } from './publish.ts';
import { alterEvents, indexFailure, indexNames } from './tables/alter.ts';
import { writeChanges } from './tables/changes.ts';
import { writeColumns } from './tables/columns.ts';
import { type Contents, liveWith, readContents, rowsWith } from './tables/contents.ts';
import { readLiveWindows, writeReceipt } from './tables/receipts.ts';
import { replaceRows } from './tables/replace.ts';
import { RunTable } from './tables/runs.ts';
import { addEventNames, prepareStore, writeState } from './tables/state.ts';
import { createViews } from './tables/views.ts';

/** Replaced rows after which their blocks are given back to the file, so that a full re-read does not double it. */
const CHECKPOINT_ROWS = 100_000;

/** Rows of a row group of DuckDB. */
const ROW_GROUP = 122_880;
const FEW_ROW_GROUPS = 4;

/**
 * True for a window whose rows DuckDB is to store in their order. Beside keys that need it, that is one of a few row groups:
 * in no order each thread stores groups that are not full, which are joined after that, and their blocks stay free (300,000
 * rows: a file of 40 MB instead of 25). Of many groups few are such, and the order costs memory.
 */
function keepsOrder(window: Window): boolean {
  const groups = window.receipt.rows / ROW_GROUP;
  return !idsAreKeys(window) || (groups > 1 && groups <= FEW_ROW_GROUPS);
}

export interface DuckDbSinkOptions extends TargetOptions {
  readonly file: string;
  readonly lockWaitMs: number;
}

/** Opens a DuckDB file for loading; creates it and its tables if missing. Throws Failure. */
export async function openDuckDbSink(options: DuckDbSinkOptions): Promise<FileSink> {
  const engine = await openEngine(options);
  try {
    await prepareStore(engine, options.timezone);
    return new FileSink(engine, options);
  } catch (error) {
    await engine.close();
    options.signal?.throwIfAborted();
    throw engineFailure(error, engine.file);
  }
}

/** The rows of a window in `events`, as what follows FROM. */
const rowsOfWindow = (number: number): string => `(SELECT * FROM events WHERE _dfinery_window = ${number})`;

export class FileSink implements Sink {
  readonly #engine: Engine;
  readonly #rules: Rules;
  readonly #zone: Zone | undefined;
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #options: DuckDbSinkOptions;
  readonly runs: RunHistory;
  #isPrepared = false;
  /** Rows replaced since their blocks were given back. */
  #replaced = 0;
  /** After the latest committed window; unknown before the first, and when a transaction has failed. */
  #contents: Contents | undefined;
  #keepsOrder = false;

  constructor(engine: Engine, options: DuckDbSinkOptions) {
    this.#engine = engine;
    this.#zone = options.timezone === undefined ? undefined : new Zone(options.timezone);
    this.#logger = options.logger;
    this.#clock = options.clock;
    this.#options = options;
    this.runs = new RunTable(engine);
    this.#rules = {
      zoned: this.#zone !== undefined,
      columnTypes: options.columnTypes,
      pinned: options.pinned,
      mode: options.schemaMode,
    };
  }

  readPriorLoads(): Promise<PriorLoads> {
    return this.#guard(() => priorLoadsOf(this.#engine));
  }

  commit(batch: readonly Window[], signal: AbortSignal): Promise<Commit> {
    return commitEach(batch, (window) => this.#commit(window, signal));
  }

  async #commit(window: Window, signal: AbortSignal): Promise<Commit> {
    return this.#guard(async () => {
      await this.#reclaim();
      await this.#prepareForColumns(window);
      await this.#setOrder(keepsOrder(window));
      try {
        return await this.#store(window, signal);
      } catch (error) {
        if (isRefusedByIndex(error)) throw indexFailure(this.#engine, await indexNames(this.#engine));
        if (!isOutOfMemory(error)) throw error;
        return await this.#writeWithLessMemory(window, signal);
      }
    }, signal);
  }

  /** Publishes a checked copy of the file for readers (S52). */
  publish(copy: string): Promise<void> {
    return this.#guard(() => publish(this.#engine, copy, this.#options));
  }

  close(): Promise<void> {
    return this.#engine.close();
  }

  /** The first window tells how wide the table is: a file that was made for it and holds no row is recreated. */
  async #prepareForColumns(window: Window): Promise<void> {
    if (!this.#engine.isNew || this.#isPrepared) return;
    this.#isPrepared = true;
    if (isWide(incomingColumns(window.files).columns.size)) await this.#engine.remakeForWideTables();
  }

  /** Before a window and not after one: what a commit has stored is stored, whatever happens here. */
  async #reclaim(): Promise<void> {
    if (this.#replaced < CHECKPOINT_ROWS) return;
    this.#replaced = 0;
    await this.#engine.run('CHECKPOINT target');
  }

  /** Each thread holds a block of every column: of very many columns one thread's worth may fit where two do not. */
  async #writeWithLessMemory(window: Window, signal: AbortSignal): Promise<Commit> {
    await this.#engine.run('SET threads = 1');
    try {
      return await this.#store(window, signal);
    } finally {
      await this.#engine.run('RESET threads');
    }
  }

  async #setOrder(keepsOrder: boolean): Promise<void> {
    if (keepsOrder === this.#keepsOrder) return;
    await this.#engine.run(`SET preserve_insertion_order = ${keepsOrder}`);
    this.#keepsOrder = keepsOrder;
  }

  async #store(window: Window, signal: AbortSignal): Promise<Commit> {
    const before = this.#contents;
    this.#contents = undefined;
    const { commit, contents } = await this.#engine.transaction(
      async () => this.#write(window, before ?? (await readContents(this.#engine))),
      signal,
    );
    this.#contents = contents;
    return commit;
  }

  async #write(window: Window, before: Contents): Promise<{ commit: Commit; contents: Contents }> {
    const engine = this.#engine;
    const number = before.number + 1;
    const arrivals = incomingColumns(window.files);
    const columns = planColumns(before.columns, arrivals.columns, this.#rules, number === 1);
    const plan = new Map(columns.map((column) => [column.key, column]));
    await alterEvents(engine, columns, this.#zone);
    const load = { window, number, arrivals, plan, zone: this.#zone };
    await loadWindow(engine, load);
    const rescued = await rescuedCounts(engine, rowsOfWindow(number), columns);
    const { receipt, state } = window;
    const hashes = hasRowsWithoutId(load);
    const keys = { hasRowsWithoutId: hashes, idsAreKeys: idsAreKeys(window) };
    const loaded = { number, receipt, state, columns, zone: this.#zone, ...keys };
    const { removed, idRepeats, others } = await replaceRows(engine, loaded, before);
    this.#replaced += removed;
    await writeReceipt(engine, number, receipt, { rescued, idRepeats });
    await writeColumns(
      engine,
      columns.filter((column) => column.isChanged),
    );
    const eventNames = await addEventNames(engine, window.files, number, before.eventNames);
    await writeState(engine, state);
    const missed = await this.#keepChanges(columns, arrivals, window, before);
    if (columns.some((column) => column.type !== column.before)) await this.#renewViews(columns);
    logChanges(this.#logger, columns, rescued);
    const live = removed > 0 ? await readLiveWindows(engine) : liveWith(before.live, number, receipt);
    return {
      commit: { rows: receipt.rows, ...columnChanges(columns, number === 1), rescued, idRepeats },
      contents: { columns, number, rows: rowsWith(others, number, receipt), live, missed, eventNames },
    };
  }

  /** Gives the source names of all columns that a window lacked. */
  async #keepChanges(
    columns: readonly PlannedColumn[],
    arrivals: IncomingColumns,
    window: Window,
    { number, missed }: Contents,
  ): Promise<Contents['missed']> {
    const changedAt = new Date(this.#clock.now()).toISOString();
    const isFirst = number === 0;
    const windows = [{ id: window.receipt.id, columns: arrivals.columns }];
    const changes = changeRecords(columns, { windows, changedAt, isFirst, missed });
    await writeChanges(this.#engine, changes);
    const missing = changes.filter(({ change }) => change === 'missing');
    return new Set([...missed, ...missing.map(({ sourceName }) => sourceName)]);
  }

  async #renewViews(columns: readonly StoredColumn[]): Promise<void> {
    await createViews(this.#engine, columns);
    await refreshModels(this.#engine, columns);
  }

  async #guard<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    try {
      return await work();
    } catch (error) {
      signal?.throwIfAborted();
      throw engineFailure(error, this.#engine.file);
    }
  }
}
