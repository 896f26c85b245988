import pLimit from 'p-limit';
import { daysBetween } from '../../base/days.ts';
import { hasDuplicateOrMissingIds, type Window } from '../../extract/window.ts';
import { typedColumns } from '../../table/columns.ts';
import { identifier } from '../sql/engine/quote.ts';
import { checkRowCount } from '../sql/rows/counts.ts';
import { fileQuery, type TypedRows, typedValues, type WindowLoad } from '../sql/rows/file-query.ts';
import { type Staged, type StagedExtra, withStaged } from '../sql/rows/staging.ts';
import { eventColumns } from './file-columns.ts';
import type { FileTable } from './file-table.ts';
import { PARTITION_COLUMN, type Writer, writeDates, writeFile } from './parquet-file.ts';
import { onlyDate, partitionSql } from './partition-date.ts';
import type { NewFile } from './table-log.ts';

/** Number of statements that run at the same time; each works in one thread. */
const CONCURRENCY = 2;

/** Files that were written before the batch of their window was complete. */
export interface PrewrittenFiles {
  /** The number of the window, and the names and types of the columns, as text. */
  readonly planText: string;
  readonly files: readonly NewFile[];
}

/**
 * Writes the files of windows while others are still downloaded. They serve a batch whose plan gives the same types to
 * the same columns: then the values are the same, too.
 */
export class Prewriter {
  readonly #table: FileTable;
  readonly #limit = pLimit(CONCURRENCY);
  readonly #files = new Map<Window, Promise<PrewrittenFiles | undefined>>();
  #isClosed = false;

  constructor(table: FileTable) {
    this.#table = table;
  }

  /** Begins to write the rows of a window; those that fail are written again for the batch, which reports it. */
  begin(load: WindowLoad): void {
    if (load.window.receipt.rows === 0 || hasDuplicateOrMissingIds(load.window)) return;
    const write = async () => {
      if (this.#isClosed || this.#table.engine.isLowOnMemory) return undefined;
      return { planText: planTextOf(load), files: await writePlain(this.#table, load) };
    };
    this.#files.set(
      load.window,
      this.#limit(write).catch(() => undefined),
    );
  }

  /** Waits for the files that were begun, and removes and returns them. */
  async drain(): Promise<Map<Window, PrewrittenFiles | undefined>> {
    const begun = [...this.#files];
    this.#files.clear();
    return new Map(await Promise.all(begun.map(async ([window, files]) => [window, await files] as const)));
  }

  /** Interrupts what is being written, and waits for its end. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#files.size > 0) this.#table.engine.interrupt();
    await this.drain();
  }
}

/** A text that is equal for two files of a window only if they have the same rows. */
const planTextOf = ({ windowNumber, planned }: WindowLoad): string =>
  JSON.stringify([windowNumber, ...typedColumns([...planned.values()]).map(({ name, type }) => [name, type])]);

/**
 * Writes all rows of the windows, typed and with keys, one file for each window and date; files in `prewritten` that
 * fit are used. Called inside a transaction. Throws UserError if a count differs.
 */
export async function writeIncoming(
  table: FileTable,
  loads: readonly WindowLoad[],
  prewritten: ReadonlyMap<Window, PrewrittenFiles | undefined>,
): Promise<NewFile[]> {
  const filled = loads.filter(({ window }) => window.receipt.rows > 0);
  const limit = pLimit(table.engine.isLowOnMemory ? 1 : CONCURRENCY);
  const beside = filled.map((load) => {
    const written = prewritten.get(load.window);
    if (written?.planText === planTextOf(load)) return written.files;
    return hasDuplicateOrMissingIds(load.window) ? undefined : limit(() => writePlain(table, load));
  });
  const plain = await Promise.all(beside);
  const files: NewFile[] = [];
  for (const [i, load] of filled.entries()) files.push(...(plain[i] ?? (await writeStaged(table, load))));
  return files;
}

function writePlain(table: FileTable, load: WindowLoad): Promise<NewFile[]> {
  const date = onlyDate(load);
  const partition = date === undefined ? partitionSql(load, 0) : undefined;
  const source = fileQuery(load, 0, partition?.texts);
  return writeDatesOf(table, table.writer({ isAside: true }), queryOf(source, partition?.sql, load), load, date);
}

/** Writes a window whose ids may be missing or repeated: its rows are staged in their order in a temporary table. */
function writeStaged(table: FileTable, load: WindowLoad): Promise<NewFile[]> {
  const date = onlyDate(load);
  const partition: StagedExtra = { type: 'DATE', valueOf: (index) => partitionSql(load, index) };
  const write = (staged: Staged) => {
    const query = queryOf(staged, date === undefined ? staged.extra : undefined, load);
    return writeDatesOf(table, table.writer(), query, load, date);
  };
  return withStaged(table.engine, load, write, partition);
}

/** The query of rows as a file of `events` has them. `date` is SQL; undefined if there is no column of the date. */
function queryOf(rows: TypedRows, date: string | undefined, load: WindowLoad): string {
  const names = typedColumns([...load.planned.values()]).map(({ name }) => identifier(name));
  const inner = [...typedValues(rows, load), `${rows.rescued} AS _rescued`];
  // A column that is the key is computed once.
  const key = rows.columns.find((_, i) => rows.values[i] === rows.key)?.name;
  if (key === undefined) inner.push(`${rows.key} AS _key`);
  if (date !== undefined) inner.push(`${date} AS ${PARTITION_COLUMN}`);
  const own = [
    key === undefined ? '_key' : `${identifier(key)} AS _key`,
    `CAST(${load.windowNumber} AS BIGINT) AS _dfinery_window`,
    'CAST(_rescued AS VARCHAR) AS _rescued',
  ];
  const all = [...own, ...names, ...(date === undefined ? [] : [PARTITION_COLUMN])];
  return `SELECT ${all.join(', ')} FROM (SELECT ${inner.join(', ')} FROM ${rows.from})`;
}

async function writeDatesOf(
  table: FileTable,
  writer: Writer,
  query: string,
  { window, windowNumber, planned, zone }: WindowLoad,
  date: string | undefined,
): Promise<NewFile[]> {
  const { receipt } = window;
  const days = date === undefined ? daysBetween(receipt.from, receipt.to) + 1 : 1;
  const columns = eventColumns([...planned.values()], zone);
  const sized = { table: 'events', query, rows: Math.floor(receipt.rows / days), date, columns } as const;
  const path = table.newPath('incoming');
  const byDate =
    date === undefined
      ? await writeDates(writer, sized, path)
      : new Map([[date, await writeFile(writer, sized, path)]]);
  const files = [...byDate].map(([day, written]) =>
    table.newFile(written, { table: 'events', date: day, windows: new Map([[windowNumber, written.rows]]) }),
  );
  const came = files.reduce((sum, { rows }) => sum + rows, 0);
  checkRowCount(window, came, table.place);
  return files;
}
