import { messageOf } from '../../base/errors.ts';
import { groupBy } from '../../base/group.ts';
import type { Logger } from '../../base/log.ts';
import { plainCount } from '../../base/quantities.ts';
import { finishBatch, type PlannedBatch, planBatch } from '../../engine/rows/batch.ts';
import { Prewriter } from '../../engine/rows/prewriter.ts';
import { keyColumns } from '../../engine/rows/superseded.ts';
import type { Window } from '../../extract/window.ts';
import { logChanges } from '../../table/changes.ts';
import { TABLES, type TableName } from '../../table/columns.ts';
import { isRetyped, type PlannedColumn, plannedTogether, type Rules } from '../../table/plan.ts';
import { newState, type TableState } from '../../table/state.ts';
import { filesError, otherTimezone } from '../failures.ts';
import type { Commit, Sink } from '../sink.ts';
import { type DataFile, liveRows, type NewFile, type ReadableFile, windowsOf } from './data-file.ts';
import { derive } from './derive.ts';
import { columnsIn, selectAfter, withUnloggedColumns } from './file-columns.ts';
import { FileTable } from './file-table.ts';
import type { FilesFormat, OpenFilesOptions } from './files-format.ts';
import { writeIncoming, writePlain } from './incoming-files.ts';
import { readFiles } from './parquet-file.ts';
import { RunObjects, removeExpiredRuns } from './runs.ts';
import { findSuperseded, type Superseded } from './superseded.ts';
import { filesAfter, type Layout } from './table-log.ts';

export interface FilesSinkOptions extends Rules, OpenFilesOptions {
  /** Tables to keep beside `events`; they follow from `events`, which is always kept. */
  readonly tables: readonly TableName[];
}

/** Opens a place for loading, makes it if it is missing, and removes what dead runs left. Throws UserError. */
export async function openFilesSink(format: FilesFormat, options: FilesSinkOptions): Promise<Sink> {
  let table: FileTable | undefined;
  try {
    table = new FileTable(options.place, await format.open(options, 'load'));
    const state = table.latest?.state ?? newState(options.timezone ?? null, []);
    const wanted = options.timezone ?? null;
    if (state.receipts.length > 0 && state.timezone !== wanted) {
      throw otherTimezone(options.place, format.noun, wanted, state.timezone);
    }
    await clean(table, options.logger);
    const tables = TABLES.filter(
      (name) => name === 'events' || options.tables.includes(name) || state.tables.includes(name),
    );
    const initial = { ...state, timezone: wanted, tables };
    const sink = new FilesSink(table, initial, options);
    if (table.latest !== undefined) await sink.addTables(options.signal);
    return sink;
  } catch (error) {
    await table?.close();
    options.signal?.throwIfAborted();
    throw filesError(error, options.place);
  }
}

/** Removes old records of runs, and files that no reader needs any more. A failure is only logged. */
async function clean({ place, storage, log }: FileTable, logger: Logger): Promise<void> {
  try {
    await removeExpiredRuns(storage);
    const paths = (await log.expired?.()) ?? [];
    if (paths.length === 0) return;
    await storage.remove(paths);
    const message = `Removed ${plainCount(paths.length, 'file')} that no reader needs any more.`;
    logger.info('files.removed', message, { files: paths.length });
  } catch (error) {
    const message = `${place}: files that are no longer needed could not be removed; the next run tries again.`;
    logger.warn('files.rubbish', message, { error: messageOf(error) });
  }
}

class FilesSink implements Sink {
  readonly #table: FileTable;
  /** The state at the begin of a run if nothing is committed, with its tables and its time zone. */
  readonly #initial: TableState;
  readonly #options: FilesSinkOptions;
  readonly #rules: Rules;
  /** True after a failure, until the log has been read again. */
  #hasFailed = false;
  readonly #prewriter: Prewriter<NewFile[]>;
  #waiting: Window[] = [];
  readonly runs: RunObjects;

  constructor(table: FileTable, initial: TableState, options: FilesSinkOptions) {
    this.#table = table;
    this.#initial = initial;
    this.#options = options;
    this.#rules = { ...options, columnName: table.log.layout.columnName };
    this.#prewriter = new Prewriter(table.engine, (load) => writePlain(table, load));
    this.runs = new RunObjects(table.storage, table.isShared);
  }

  get state(): TableState | undefined {
    return this.#table.latest?.state;
  }

  begin(window: Window): void {
    // Modes other than `evolve` plan each window by itself.
    if (this.#hasFailed || this.#rules.schemaMode !== 'evolve') return;
    this.#waiting.push(window);
    const { loads } = this.#planned(this.#waiting);
    this.#prewriter.begin(loads[loads.length - 1]);
  }

  async commit(batch: readonly Window[], signal: AbortSignal): Promise<Commit> {
    const table = this.#table;
    this.#waiting = [];
    try {
      await table.engine.withSignal(signal, () => this.#prewriter.waitForAll());
      if (this.#hasFailed) await table.log.read();
      this.#hasFailed = false;
      const windows = plannedTogether(this.#state.columns, batch, this.#rules);
      const { change, commit, columns } = await table.engine.transaction(() => this.#prepare(windows), signal);
      await table.commit(change);
      logChanges(this.#options.logger, columns, commit.rescued);
      return commit;
    } catch (error) {
      this.#hasFailed = true;
      signal.throwIfAborted();
      throw filesError(error, table.place);
    } finally {
      this.#prewriter.clear();
    }
  }

  /** Makes the tables that are not kept yet from `events`; they are kept from then on. */
  async addTables(signal: AbortSignal | undefined): Promise<void> {
    const table = this.#table;
    const { state } = table.snapshot;
    const { tables } = this.#initial;
    if (tables.every((name) => state.tables.includes(name))) return;
    const wanted = { ...state, tables };
    const change = await table.engine.transaction(() => derive(table, { removed: [], added: [] }, wanted), signal);
    await table.commit({ kind: 'rewrite', ...change, state: wanted });
  }

  async close(): Promise<void> {
    await this.#prewriter.close();
    await this.#table.close();
  }

  get #state(): TableState {
    const { timezone, tables } = this.#initial;
    return { ...(this.#table.latest?.state ?? this.#initial), timezone, tables };
  }

  #planned(windows: readonly Window[]): PlannedBatch {
    const columnsOf = this.#table.log.layout.hasOneFilePerDate === true ? undefined : columnsOfNewFiles;
    return planBatch(this.#state, windows, this.#rules, columnsOf);
  }

  /** Writes the files that the windows add or change to the local disk; the tables stay as they are. */
  async #prepare(windows: readonly Window[]) {
    const table = this.#table;
    const state = this.#state;
    const batch = this.#planned(windows);
    const { columns, loads } = batch;
    const incoming = await writeIncoming(table, loads, this.#prewriter);
    const stored = await table.fetch(table.filesOf('events'), keyColumns(columns));
    const superseded = await findSuperseded(table, stored, batch, incoming);
    const { files, idRepeats } = superseded;
    const events = await this.#changeOfEvents(batch, stored, superseded);
    const change = await derive(table, events, { columns, tables: state.tables });
    const { state: after, commit } = await finishBatch(table.engine, state, batch, {
      rows: files.length === 0 ? undefined : readFiles(files.map(({ local }) => local)),
      idRepeats,
      liveRows: liveRows(filesAfter(table.latest?.files ?? [], change)),
      now: this.#options.clock.now(),
    });
    return { change: { kind: 'load', ...change, state: after } as const, commit, columns };
  }

  async #changeOfEvents(batch: PlannedBatch, stored: readonly ReadableFile[], { files, counts, isKept }: Superseded) {
    const known = await withUnloggedColumns(this.#table.engine, stored, batch.columns.filter(isRetyped));
    const remaining = known.map((file) => ({ file, rows: file.rows - (counts.get(file.copy) ?? 0) }));
    const { removed, written } = eventsAfter(this.#table.log.layout, batch.columns, remaining, files);
    const added: NewFile[] = [];
    for (const file of written) added.push(await this.#write(file, batch, isKept));
    return { removed, added };
  }

  async #write({ date, kept, incoming }: FileAfter, { columns, zone }: PlannedBatch, isKept: string): Promise<NewFile> {
    const table = this.#table;
    if (kept === undefined && incoming.length === 1) return incoming[0];
    const losesRows = kept !== undefined && kept.rows < kept.file.rows;
    const parts = incoming.map(({ local }) => `SELECT * FROM ${readFiles([local])}`);
    if (kept !== undefined) {
      const [file] = await withUnloggedColumns(table.engine, await table.fetch([kept.file]), columns);
      const { columns: names } = file;
      const own = this.#table.log.layout.hasOneFilePerDate === true ? columns : columnsIn(columns, names);
      const from = `${readFiles([file.copy])}${losesRows ? ` WHERE ${isKept}` : ''}`;
      parts.unshift(`SELECT ${selectAfter(own, names, zone)} FROM ${from}`);
    }
    return table.write({
      table: 'events',
      date,
      query: parts.join(' UNION ALL '),
      rows: incoming.reduce((sum, { rows }) => sum + rows, kept?.rows ?? 0),
      windows: losesRows ? undefined : windowsOf([...(kept === undefined ? [] : [kept.file]), ...incoming]),
    });
  }
}

interface KeptRows {
  readonly file: ReadableFile;
  readonly rows: number;
}

/** A file of `events` to be written: the rows of a stored file that stay, and rows of a batch. */
interface FileAfter {
  readonly date: string | null;
  readonly kept: KeptRows | undefined;
  readonly incoming: readonly NewFile[];
}

/** The columns of new files that may lack some: those with a value, and those of which keys, dates, items are made. */
const columnsOfNewFiles = (plan: readonly PlannedColumn[]): readonly PlannedColumn[] =>
  plan.filter(({ isRefused, type, readAs, group }) => {
    const isEverywhere = group === 'system' || group === 'unified_id';
    return isRefused || (type !== null && (readAs !== null || isEverywhere));
  });

/** The files of `events` that a batch removes, and those to be written. `stored`: all files of `events`. */
function eventsAfter(
  { hasOneFilePerDate = false }: Layout,
  plan: readonly PlannedColumn[],
  stored: readonly KeptRows[],
  incoming: readonly NewFile[],
): { readonly removed: readonly DataFile[]; readonly written: readonly FileAfter[] } {
  const dates = new Set(hasOneFilePerDate ? incoming.map(({ date }) => date) : []);
  const retyped = plan.filter((column) => (hasOneFilePerDate ? column.type !== column.before : isRetyped(column)));
  const changed = stored.filter(
    ({ file, rows }) =>
      rows < file.rows ||
      dates.has(file.date) ||
      retyped.some(({ name }) => hasOneFilePerDate || file.columns.has(name)),
  );
  const files: FileAfter[] = [
    ...changed.filter(({ rows }) => rows > 0).map((kept) => ({ date: kept.file.date, kept, incoming: [] })),
    ...incoming.map((one) => ({ date: one.date, kept: undefined, incoming: [one] })),
  ];
  const byDate = [...groupBy(files, ({ date }) => date)].map(([date, group]) => ({
    date,
    kept: group[0].kept,
    incoming: group.flatMap((file) => file.incoming),
  }));
  return { removed: changed.map(({ file }) => file), written: hasOneFilePerDate ? byDate : files };
}
