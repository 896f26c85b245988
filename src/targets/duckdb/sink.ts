// This folder: the target `duckdb`: one file with the table `events` (alter), the program's own tables (store,
// record-tables, runs), and analytical views (models). Beside loading, the file is read (read), checked (check),
// rewritten for a purge or `compact` (rewrite), and queried (query).

import { transientError } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import { finishBatch, type PlannedBatch, planBatch } from '../../engine/rows/batch.ts';
import { checkRowCount, rowsByWindow } from '../../engine/rows/counts.ts';
import { filesByHeader, filesQuery, type TypedRows, type WindowLoad } from '../../engine/rows/file-query.ts';
import { withStaged } from '../../engine/rows/staging.ts';
import {
  countNumbered,
  findSupersededRows,
  RENUMBERED,
  refuseSharedIds,
  renumber,
} from '../../engine/rows/superseded.ts';
import { checkDatabasePath, isWide } from '../../engine/session/database-file.ts';
import type { Engine, EngineOptions } from '../../engine/session/engine.ts';
import { isRefusedByIndex } from '../../engine/session/faults.ts';
import { openEngine } from '../../engine/session/open.ts';
import { identifier } from '../../engine/session/quote.ts';
import { hasDuplicateOrMissingIds, type Window } from '../../extract/window.ts';
import { logChanges } from '../../table/changes.ts';
import { incomingColumns } from '../../table/incoming.ts';
import { OWN_COLUMNS } from '../../table/names.ts';
import { plannedTogether, type Rules } from '../../table/plan.ts';
import { lastWindowNumber } from '../../table/receipts.ts';
import type { RunHistory } from '../../table/runs.ts';
import type { TableState } from '../../table/state.ts';
import { identityOf, moveIdentity } from '../copies/mark.ts';
import { publish } from '../copies/publish.ts';
import type { Commit, Sink } from '../sink.ts';
import { alterEvents, indexError, indexNames } from './alter.ts';
import { refreshModels } from './models/write.ts';
import { RunTable } from './runs.ts';
import { COPIED, createViews, prepareStore, readStoredState, writeState } from './store.ts';

/** Number of removed rows whose blocks are given back, so that a full re-read does not double the file. */
const CHECKPOINT_ROWS = 100_000;

export interface DuckDbSinkOptions extends Rules, EngineOptions {
  readonly logger: Logger;
}

export async function openDuckDbSink(options: DuckDbSinkOptions): Promise<DuckDbSink> {
  checkDatabasePath(options.file);
  const engine = await openEngine(options);
  try {
    const state = await engine.guarded(() => prepareStore(engine, options.timezone ?? null));
    return new DuckDbSink(engine, state, options);
  } catch (error) {
    await engine.close();
    throw error;
  }
}

/** A DuckDB file that is open for loading. Others can write to it only while a new file is remade for many columns. */
export class DuckDbSink implements Sink {
  readonly #engine: Engine;
  readonly #options: DuckDbSinkOptions;
  readonly runs: RunHistory;
  #state: TableState;
  readonly #lastBefore: number;
  /** Rows removed since their blocks were given back. */
  #removed = 0;
  #hasRemovedRows = false;

  constructor(engine: Engine, state: TableState, options: DuckDbSinkOptions) {
    this.#engine = engine;
    this.#state = state;
    this.#lastBefore = lastWindowNumber(state.receipts);
    this.#options = options;
    this.runs = new RunTable(engine);
  }

  get state(): TableState {
    return this.#state;
  }

  async commit(batch: readonly Window[], signal: AbortSignal): Promise<Commit> {
    return this.#engine.guarded(async () => {
      const windows = plannedTogether(this.#state.columns, batch, this.#options);
      return await this.#commit(windows, signal);
    }, signal);
  }

  publish(copy: string): Promise<void> {
    return this.#engine.guarded(() => publish(COPIED, this.#engine, copy));
  }

  async close(): Promise<void> {
    if (this.#hasRemovedRows && this.#hasOlderRows) await this.#engine.joinRowGroups().catch(() => {});
    await this.#engine.close();
  }

  /** True if there are rows of earlier runs, between which removed rows may have left gaps. */
  get #hasOlderRows(): boolean {
    return this.#state.receipts.some(({ window, rows_live }) => window <= this.#lastBefore && rows_live > 0);
  }

  async #commit(windows: readonly Window[], signal: AbortSignal): Promise<Commit> {
    await this.#reclaim();
    await this.#prepareForColumns(windows);
    const done = await this.#engine
      .transaction(() => this.#write(windows), signal)
      .catch(async (error: unknown) => {
        throw isRefusedByIndex(error) ? indexError(this.#engine, await indexNames(this.#engine)) : error;
      });
    this.#state = done.state;
    this.#removed += done.removed;
    this.#hasRemovedRows ||= done.removed > 0;
    logChanges(this.#options.logger, done.columns, done.commit.rescued);
    return done.commit;
  }

  /** Recreates a new file without rows for a wide table, if the first batch shows that the table is wide. */
  async #prepareForColumns(windows: readonly Window[]): Promise<void> {
    if (!this.#engine.isNew || this.#state.receipts.length > 0) return;
    const { columns } = incomingColumns(windows.flatMap(({ files }) => files));
    if (!isWide(columns.size)) return;
    const before = identityOf(this.#engine.file);
    await this.#engine.remakeForWideTables();
    await moveIdentity(COPIED, this.#engine, { from: before, to: identityOf(this.#engine.file) });
    const { receipts, timezone } = await readStoredState(this.#engine);
    if (receipts.length === 0 && timezone === this.#state.timezone) return;
    throw transientError(`${this.#engine.file} was loaded by another run, which began at the same time: run again.`);
  }

  /** Gives the blocks of removed rows back: before a batch, so that no failure concerns rows just committed. */
  async #reclaim(): Promise<void> {
    if (this.#removed < CHECKPOINT_ROWS) return;
    this.#removed = 0;
    await this.#engine.checkpoint();
  }

  async #write(windows: readonly Window[]) {
    const engine = this.#engine;
    const before = this.#state;
    const batch = planBatch(before, windows, this.#options);
    const { columns, loads, zone } = batch;
    await alterEvents(engine, columns, zone);
    await loadRows(engine, loads);
    const counted = await rowsByWindow(engine, 'events');
    for (const { window, windowNumber } of loads) checkRowCount(window, counted.get(windowNumber) ?? 0, engine.file);
    const { removed, idRepeats } = await supersede(engine, batch);
    const after = removed > 0 ? await rowsByWindow(engine, 'events') : counted;
    // The removed rows are subtracted, so that a receipt that was wrong before stays wrong and `verify` finds it.
    const stored = before.receipts.map(({ window: windowNumber, rows_live: rowsLive }): [number, number] => [
      windowNumber,
      rowsLive - (counted.get(windowNumber) ?? 0) + (after.get(windowNumber) ?? 0),
    ]);
    const { state, commit } = await finishBatch(engine, before, batch, {
      rows: `(SELECT * FROM events WHERE _dfinery_window >= ${loads[0].windowNumber})`,
      idRepeats,
      liveRows: new Map([
        ...stored,
        ...loads.map(({ windowNumber }): [number, number] => [windowNumber, after.get(windowNumber) ?? 0]),
      ]),
      now: this.#options.clock.now(),
    });
    await writeState(engine, before, state);
    if (columns.some((column) => column.type !== column.before)) {
      await createViews(engine, columns);
      await refreshModels(engine, state);
    }
    return { commit, state, removed, columns };
  }
}

async function loadRows(engine: Engine, loads: readonly WindowLoad[]): Promise<void> {
  const filled = loads.filter(({ window }) => window.receipt.rows > 0);
  const plain = filled.filter(({ window }) => !hasDuplicateOrMissingIds(window));
  // A try that failed while a window was staged may have left the other setting.
  await engine.run('SET preserve_insertion_order = false');
  for (const parts of filesByHeader(plain)) {
    const rows = filesQuery(parts);
    await insert(engine, rows, rows.windowNumber);
  }
  for (const load of filled.filter((one) => !plain.includes(one))) {
    // The ids may be missing or repeated: the rows are staged in their order and numbered.
    await withStaged(engine, load, (rows) => insert(engine, rows, load.windowNumber));
  }
}

function insert(
  engine: Engine,
  { key, rescued, columns, values, from }: TypedRows,
  windowNumber: number | string,
): Promise<number> {
  const names = [...OWN_COLUMNS, ...columns.map(({ name }) => name)].map(identifier).join(', ');
  const select = [key, windowNumber, rescued, ...values].join(', ');
  return engine.run(`INSERT INTO events (${names})
    SELECT ${select}
    FROM ${from}`);
}

/**
 * Removes the rows that a batch, which is in `events` already, reads again and so supersedes, and numbers rows
 * whose key is taken. Returns the number of removed rows, and by window that of the batch's rows with a number in their
 * key. Throws SharedIds.
 */
async function supersede(
  engine: Engine,
  batch: PlannedBatch,
): Promise<{ readonly removed: number; readonly idRepeats: ReadonlyMap<number, number> }> {
  const { windows, liveWindows, columns } = batch;
  const [{ windowNumber: first }] = windows;
  const stored = `(SELECT * FROM events WHERE _dfinery_window < ${first})`;
  const incoming = `(SELECT * FROM events WHERE _dfinery_window >= ${first})`;
  await refuseSharedIds(engine, batch, incoming);
  let [removed, renumbered] = [0, 0];
  if (liveWindows.length > 0) {
    const reread = { ...batch, stored, incoming };
    const superseded = await findSupersededRows(engine, reread);
    for (const condition of superseded.conditions) {
      removed += await engine.run(`DELETE FROM events WHERE _dfinery_window < ${first} AND ${condition}`);
    }
    renumbered = await renumber(engine, reread, superseded, stored);
  }
  if (renumbered > 0) {
    await engine.run(`
      UPDATE events
      SET _key = r.next
      FROM ${RENUMBERED} AS r
      WHERE _dfinery_window >= ${first} AND events._key = r.key`);
  }
  const isNumbered = renumbered > 0 || batch.hasDuplicateOrMissingIds;
  const idRepeats = isNumbered ? await countNumbered(engine, incoming, columns) : new Map<number, number>();
  return { removed, idRepeats };
}
