import { addDays, type Day } from '../../base/days.ts';
import { anyOfSql, identifier } from '../../base/sql.ts';
import { DETAIL_LOG_ID } from '../../cells/csv/header.ts';
import { zoneOf } from '../../cells/types/zone.ts';
import { dayOfRowSql, sharedRowIdSql } from '../../engine/column-sql.ts';
import { countRescuedByKey, countRowsByDay } from '../../engine/rows/row-counts.ts';
import { checkStored, selectRowsSql, sumRows, typedRows } from '../../engine/rows/typed-rows.ts';
import { type CheckedDay, mayShareRows } from '../../extract/checked-day.ts';
import type { PlannedBatch } from '../../table/batch-plan.ts';
import { isWidened } from '../../table/column-plan.ts';
import { finishBatch } from '../../table/commit.ts';
import { type TableState, withoutRows } from '../../table/place-state.ts';
import type { StoredReceipt } from '../../table/receipts.ts';
import { EVENTS, findColumn } from '../../table/tables.ts';
import type { FilesPlace } from './files-place.ts';
import type { FileChange, LiveFile, NewFile } from './place-version.ts';
import { readParquetSql } from './read-parquet.ts';

/** Writes the local files of a planned batch. */
export class BatchFiles {
  readonly #place: FilesPlace;
  readonly #planned: PlannedBatch;
  readonly #changedAt: string;
  readonly #storedFiles: ReadonlyMap<Day, LiveFile>;

  constructor(place: FilesPlace, planned: PlannedBatch, changedAt: string) {
    this.#place = place;
    this.#planned = planned;
    this.#changedAt = changedAt;
    const stored = place.manifest.version?.files.filter(({ table }) => table === planned.table.name) ?? [];
    this.#storedFiles = new Map(stored.map((file) => [file.day, file]));
  }

  /** Writes the files of the days, and those of neighbours that lose rows. */
  async write() {
    const { table, days } = this.#planned;
    const files: FileChange[] = [];
    for (const download of days) {
      const { receipt } = download;
      const written = await this.#writeDay(download);
      // Such a day is alone in its batch: a neighbour is a stored file.
      const sharesRows = mayShareRows(receipt);
      const file = sharesRows && written !== undefined ? await this.#withoutRowsOfNext(written, download) : written;
      const previousChange = sharesRows && file !== undefined ? await this.#previousWithout(file) : undefined;
      // First the day before: a row leaves it before a reader finds the row under this day.
      if (previousChange !== undefined) files.push(previousChange);
      files.push({ table: table.name, day: receipt.day, file });
    }
    const rowsByDay = new Map(files.map(({ day, file }) => [day, file?.rows ?? 0]));
    const widenedDays = await this.#findWidenedDays();
    return { files, rowsByDay, widenedDays, rescuedCells: await this.#countRescued(files) };
  }

  /** Writes the file of one day; undefined if it has no row. */
  async #writeDay(download: CheckedDay): Promise<NewFile | undefined> {
    const { engine, localFiles } = this.#place;
    const { hasAllColumns, columnsOf } = localFiles.layout;
    const { columns, table, tableBefore } = this.#planned;
    const { timezone } = tableBefore;
    const zone = zoneOf(timezone);
    const receipt = this.#receiptOf(download, sumRows(download.files));
    const snapshot = table.isSnapshot ? this.#tableAfter(receipt) : undefined;
    let file: NewFile | undefined;
    for await (const rows of typedRows(engine, { ...this.#planned, days: [download] }, zone)) {
      const filled = new Set(rows.columns.map(({ name }) => name));
      const fileColumns = columns.filter(({ name, group }) => hasAllColumns || group === 'system' || filled.has(name));
      const ownColumns = [...columnsOf({ columns: [], timezone })].map(([name, type]) => ({ name, type }));
      const query = selectRowsSql(rows, fileColumns, ownColumns, zone);
      file = await localFiles.write(table.name, { query, receipt, snapshot });
      checkStored(rows, file.rows);
    }
    return file;
  }

  /** The table after a batch of one day. The file of a snapshot says it: it may be newer than what the place says. */
  #tableAfter({ day, rows_stored }: StoredReceipt): TableState {
    const stored = { widenedDays: new Set<Day>(), rowsByDay: new Map([[day, rows_stored]]), rescuedCells: new Map() };
    return finishBatch(this.#planned, stored, this.#changedAt).state;
  }

  /** The file of a day without the rows that the next day has, too; undefined if no row is left. */
  async #withoutRowsOfNext(file: NewFile, download: CheckedDay): Promise<NewFile | undefined> {
    const next = this.#storedFiles.get(addDays(file.day, 1));
    if (next === undefined) return file;
    const sharedSql = this.#isAlsoInSql(await this.#place.localFiles.fetchColumns(next, this.#idColumns));
    const rowsLost = await this.#place.engine.count(`${readParquetSql([file.localPath])} WHERE ${sharedSql}`);
    if (rowsLost === 0) return file;
    if (rowsLost === file.rows) return undefined;
    const receipt = this.#receiptOf(download, file.rows - rowsLost);
    const query = `SELECT * FROM ${readParquetSql([file.localPath])} WHERE NOT ${sharedSql}`;
    return this.#place.localFiles.write(EVENTS.name, { query, receipt });
  }

  /** The change of the day before to its file without the rows that a new file has; undefined if it loses none. */
  async #previousWithout(newFile: NewFile): Promise<FileChange | undefined> {
    const previousFile = this.#storedFiles.get(addDays(newFile.day, -1));
    if (previousFile === undefined) return undefined;
    const leavingSql = this.#isAlsoInSql(newFile.localPath);
    const stored = readParquetSql([await this.#place.localFiles.fetchColumns(previousFile, this.#idColumns)]);
    const rowsLost = await this.#place.engine.count(`${stored} WHERE ${leavingSql}`);
    if (rowsLost === 0) return undefined;
    const { tableBefore, columns } = this.#planned;
    const events = withoutRows({ ...tableBefore, columns }, new Map([[previousFile.day, rowsLost]]), this.#changedAt);
    const file = await this.#place.localFiles.rewrite(previousFile, events, leavingSql);
    return { table: EVENTS.name, day: previousFile.day, file };
  }

  /** The columns by which neighbouring days are compared. */
  get #idColumns(): string[] {
    const id = findColumn(this.#planned.columns, DETAIL_LOG_ID);
    return ['_key', ...(id === undefined ? [] : [id.name])];
  }

  /** SQL that is TRUE for a row which another file also has, else FALSE. */
  #isAlsoInSql(path: string): string {
    const id = sharedRowIdSql(this.#planned.columns);
    return `coalesce(${id} IN (SELECT ${id} FROM ${readParquetSql([path])}), false)`;
  }

  #receiptOf({ receipt }: CheckedDay, rows_stored: number): StoredReceipt {
    return { ...receipt, rows_stored, changed_at: this.#changedAt };
  }

  /** The cells of the batch's days in `_rescued`, by the source name of their column. */
  async #countRescued(files: readonly FileChange[]): Promise<ReadonlyMap<string, number>> {
    const days = new Set(this.#planned.days.map(({ receipt }) => receipt.day));
    const paths = files.flatMap(({ day, file }) => (days.has(day) && file !== undefined ? [file.localPath] : []));
    if (paths.length === 0) return new Map();
    return countRescuedByKey(this.#place.engine, readParquetSql(paths));
  }

  /** The stored days that have a value in a column that widens. */
  async #findWidenedDays(): Promise<ReadonlySet<Day>> {
    const names = this.#planned.columns.filter(isWidened).map(({ name }) => name);
    const files = [...this.#storedFiles.values()].filter(({ columns }) => names.some((name) => columns.has(name)));
    const { table, tableBefore } = this.#planned;
    if (files.length === 0) return new Set();
    const rows = await this.#place.relationOf(table.name, tableBefore, files);
    const hasValueSql = anyOfSql(names.map((name) => `${identifier(name)} IS NOT NULL`));
    const daySql = dayOfRowSql(table, tableBefore.receipts.keys());
    return new Set((await countRowsByDay(this.#place.engine, `${rows} WHERE ${hasValueSql}`, daySql)).keys());
  }
}
