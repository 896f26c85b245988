import { addDays, type Day } from '../../base/days.ts';
import { DETAIL_LOG_ID } from '../../cells/columns/groups.ts';
import { identity, rescuedCells } from '../../engine/rows/counts.ts';
import { checkRowCount, rowsIn, selectRows, withTypedRows } from '../../engine/rows/typed-rows.ts';
import type { DayDownload, RunFacts } from '../../extract/receipt.ts';
import {
  type Commit,
  finishBatch,
  type PlannedBatch,
  type PlannedDay,
  planBatch,
  rescuesNothing,
} from '../../table/batch.ts';
import { logChanges } from '../../table/changes.ts';
import type { PlannedColumn, Rules } from '../../table/column-plan.ts';
import { newState, type TableState } from '../../table/place-state.ts';
import { currentDownloads, nextChange, type StoredReceipt } from '../../table/receipts.ts';
import type { RunRecord } from '../../table/runs.ts';
import type { OpenOptions, Sink } from '../contract.ts';
import { checkNotPurged, filesError, otherTimezone } from '../failures.ts';
import type { DayFile, FilesFormat, FilesOptions, NewFile } from './format.ts';
import { readParquet } from './parquet-file.ts';
import { FilesPlace } from './place.ts';
import { FILE_COLUMNS } from './rows.ts';

type SinkOptions = FilesOptions & OpenOptions;

/** Opens a place for loading. Throws UserError. */
export async function openFilesSink(format: FilesFormat, options: SinkOptions): Promise<FilesSink> {
  try {
    const place = await FilesPlace.open(format, options, 'load');
    const stored = place.log.snapshot?.state;
    if (stored === undefined || stored.timezone === (options.timezone ?? null) || stored.receipts.size === 0) {
      return new FilesSink(place, { ...options, columnName: format.columnName });
    }
    await place.close();
    throw otherTimezone(options.place, 'folder', options.timezone ?? null, stored.timezone);
  } catch (error) {
    options.signal.throwIfAborted();
    throw filesError(error, options.place);
  }
}

/** A place that is open for loading. */
class FilesSink implements Sink {
  readonly #place: FilesPlace;
  readonly #options: SinkOptions & Rules;
  readonly #opened: TableState | undefined;

  constructor(place: FilesPlace, options: SinkOptions) {
    this.#place = place;
    this.#options = options;
    this.#opened = this.state;
  }

  get state(): TableState | undefined {
    return this.#place.log.snapshot?.state;
  }

  get damaged(): readonly Day[] {
    return [...this.#place.log.damaged];
  }

  commit(batch: readonly DayDownload[], facts: RunFacts, signal: AbortSignal): Promise<Commit> {
    return this.#guarded(() => this.#place.log.exclusively(() => this.#commit(batch, facts, signal)), signal);
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

  async #commit(batch: readonly DayDownload[], facts: RunFacts, signal: AbortSignal): Promise<Commit> {
    const timezone = this.#options.timezone ?? null;
    const stored = this.state ?? newState(timezone);
    checkNotPurged(this.#options.place, this.#opened, stored);
    // A first run that died may have had another time zone.
    const before = stored.receipts.size === 0 ? { ...stored, timezone } : stored;
    const downloads = currentDownloads(before.receipts, batch);
    const planned = planBatch(before, downloads, this.#options);
    const { engine } = this.#place;
    const changedAt = nextChange(before.receipts, this.#options.clock.now());
    const written = await engine.transaction(() => this.#write(planned, before, changedAt), signal);
    const { state, commit } = finishBatch(before, planned, {
      rowsByDay: new Map(written.rows),
      rescued: await this.#rescued(planned, written.added),
      facts,
      changedAt,
    });
    if (downloads.length === 0) return commit;
    await this.#place.commit({ kind: 'load', state, ...written });
    logChanges(this.#options.logger, planned.columns, commit.rescued);
    return commit;
  }

  /** Writes the files of the days, and those that a change of types or a neighbouring day makes necessary. */
  async #write(planned: PlannedBatch, before: TableState, changedAt: string) {
    const place = this.#place;
    const stored = place.log.snapshot?.files ?? new Map<Day, DayFile>();
    const rows = new Map<Day, number>();
    const added: NewFile[] = [];
    const replaced = new Set(planned.days.map(({ download }) => download.receipt.day));
    const after = { columns: planned.columns, timezone: planned.timezone ?? null, receipts: before.receipts };
    const reduced = new Set<Day>();
    for (const day of planned.days) {
      let file = await this.#writeDay(planned, day, changedAt);
      if (day.download.mayShareRows && file !== undefined) {
        file = await this.#withoutRowsOfNext(file, day, stored, planned, changedAt);
        const previous = file && stored.get(addDays(file.day, -1));
        const lost = file && previous && (await this.#countShared(previous, file, planned));
        if (file !== undefined && previous !== undefined && lost !== undefined && lost > 0) {
          const without = shared(file.local, planned);
          const rest = await place.rewrite(previous, after, { without, lost, changedAt });
          if (rest !== undefined) added.push(rest);
          rows.set(previous.day, rest?.rows ?? 0);
          reduced.add(previous.day);
        }
      }
      if (file !== undefined) added.push(file);
      rows.set(day.download.receipt.day, file?.rows ?? 0);
    }
    for (const file of place.log.outdated(planned.columns)) {
      if (replaced.has(file.day) || reduced.has(file.day)) continue;
      const written = await place.rewrite(file, after);
      if (written === undefined) continue;
      added.unshift(written);
      reduced.add(file.day);
    }
    const removed = [...stored.values()].filter(({ day }) => replaced.has(day) || reduced.has(day));
    return { added, removed, rows };
  }

  async #writeDay(planned: PlannedBatch, day: PlannedDay, changedAt: string): Promise<NewFile | undefined> {
    const { engine, log } = this.#place;
    const rows = rowsIn([day]);
    const written: NewFile[] = [];
    await withTypedRows(engine, planned, [day], async (typed) => {
      const filled = new Set(typed.columns.map(({ key }) => key));
      const isWanted = ({ key, group }: PlannedColumn) => log.isUniform || group === 'system' || filled.has(key);
      const columns = planned.columns.filter(isWanted);
      const query = selectRows(typed, { ...planned, columns }, FILE_COLUMNS);
      written.push(await this.#place.write(query, rows, receiptOf(day, rows, changedAt)));
    });
    checkRowCount([day], written[0]?.rows ?? 0, this.#place.name);
    return written[0];
  }

  /** The file of a day without the rows that are also stored under the next day; undefined if none is left. */
  async #withoutRowsOfNext(
    file: NewFile,
    day: PlannedDay,
    stored: ReadonlyMap<Day, DayFile>,
    planned: PlannedBatch,
    changedAt: string,
  ): Promise<NewFile | undefined> {
    const next = stored.get(addDays(file.day, 1));
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
