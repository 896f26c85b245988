import { addDays, type Day } from '../../base/days.ts';
import { DETAIL_LOG_ID } from '../../cells/columns/groups.ts';
import { anyOf, identifier } from '../../cells/types/sql.ts';
import { identity, rescuedCells, rowsByDay } from '../../engine/rows/counts.ts';
import { checkRowCount, rowsIn, selectRows, withTypedRows } from '../../engine/rows/typed-rows.ts';
import { type PlannedBatch, type PlannedDay, rescuesNothing } from '../../table/batch.ts';
import { isRetyped, type PlannedColumn } from '../../table/column-plan.ts';
import type { StoredProfiles, TableState } from '../../table/place-state.ts';
import type { Receipts, StoredReceipt } from '../../table/receipts.ts';
import type { FilesPlace } from './files-place.ts';
import type { DayFile, NewFile } from './format.ts';
import { readParquet } from './parquet-file.ts';

/** Writes the local files of a planned batch, or of a planned snapshot of profiles. */
export class BatchFiles {
  readonly #place: FilesPlace;
  readonly #planned: PlannedBatch;
  readonly #changedAt: string;
  readonly #stored: ReadonlyMap<Day, DayFile>;

  constructor(place: FilesPlace, planned: PlannedBatch, changedAt: string) {
    this.#place = place;
    this.#planned = planned;
    this.#changedAt = changedAt;
    this.#stored = place.log.version?.files ?? new Map();
  }

  /** Writes the files of the days, and anew those of other days that lose rows, or have a column of another type. */
  async write(receipts: Receipts) {
    const { columns, timezone = null, days } = this.#planned;
    const table = { columns, timezone, receipts };
    const added: NewFile[] = [];
    const rowsOfDays = new Map<Day, number>();
    for (const plannedDay of days) {
      const { mayShareRows, receipt } = plannedDay.download;
      let file = await this.writeDay(plannedDay);
      // Such a day is alone in its batch: a neighbour is a stored file.
      if (mayShareRows && file !== undefined) file = await this.#withoutRowsOfNext(file, plannedDay);
      if (mayShareRows && file !== undefined) {
        const previous = await this.#previousWithout(file, table);
        if (previous?.file !== undefined) added.push(previous.file);
        if (previous !== undefined) rowsOfDays.set(previous.day, previous.file?.rows ?? 0);
      }
      if (file !== undefined) added.push(file);
      rowsOfDays.set(receipt.day, file?.rows ?? 0);
    }
    const rescued = await this.#countRescued(added);
    const { retypedFiles, retyped } = await this.#findRetyped();
    // Where all files have all columns, the log writes the others anew.
    const outdated = this.#place.format.isUniform ? [] : retypedFiles.filter(({ day }) => !rowsOfDays.has(day));
    for (const file of outdated) {
      const anew = await this.#place.rewrite(file, table, retyped.has(file.day) ? { changedAt: this.#changedAt } : {});
      if (anew !== undefined) added.unshift(anew);
    }
    const leaving = new Set([...rowsOfDays.keys(), ...outdated.map(({ day }) => day)]);
    const removed = [...this.#stored.values()].filter(({ day }) => leaving.has(day));
    return { added, removed, rowsByDay: rowsOfDays, retyped, rescued };
  }

  /** Writes the file of one day, or of the profiles; undefined if it has no row. */
  async writeDay(plannedDay: PlannedDay, profiles?: StoredProfiles): Promise<NewFile | undefined> {
    const { engine, format, name } = this.#place;
    const { columns, timezone = null } = this.#planned;
    const rows = rowsIn([plannedDay]);
    let file: NewFile | undefined;
    await withTypedRows(engine, this.#planned, [plannedDay], async (typed) => {
      const filled = new Set(typed.columns.map(({ key }) => key));
      const isInFile = ({ key, group }: PlannedColumn) => format.isUniform || group === 'system' || filled.has(key);
      const ownColumns = format.columnsOf({ columns: [], timezone });
      const query = selectRows(typed, { ...this.#planned, columns: columns.filter(isInFile) }, ownColumns);
      file = await this.#place.write(query, rows, this.#receiptOf(plannedDay, rows), profiles);
    });
    checkRowCount([plannedDay], file?.rows ?? 0, name);
    return file;
  }

  /** The file of a day without the rows that are also stored under the next day; undefined if none is left. */
  async #withoutRowsOfNext(file: NewFile, plannedDay: PlannedDay): Promise<NewFile | undefined> {
    const next = this.#stored.get(addDays(file.day, 1));
    if (next === undefined) return file;
    const isShared = this.#isAlsoIn(await this.#place.fetchColumns(next, this.#idColumns));
    const lost = await this.#place.engine.count(`${readParquet([file.local])} WHERE ${isShared}`);
    if (lost === 0) return file;
    const rows = file.rows - lost;
    if (rows === 0) return undefined;
    const query = `SELECT * FROM ${readParquet([file.local])} WHERE NOT ${isShared}`;
    return this.#place.write(query, rows, this.#receiptOf(plannedDay, rows));
  }

  /** The day before, whose file loses the rows that a new file has; undefined if there are none of them. */
  async #previousWithout(newFile: NewFile, table: Pick<TableState, 'columns' | 'timezone' | 'receipts'>) {
    const previous = this.#stored.get(addDays(newFile.day, -1));
    if (previous === undefined) return undefined;
    const without = this.#isAlsoIn(newFile.local);
    const from = readParquet([await this.#place.fetchColumns(previous, this.#idColumns)]);
    const lost = await this.#place.engine.count(`${from} WHERE ${without}`);
    if (lost === 0) return undefined;
    const file = await this.#place.rewrite(previous, table, { without, lost, changedAt: this.#changedAt });
    return { day: previous.day, file };
  }

  /** The columns by which neighbouring days are compared. */
  get #idColumns(): string[] {
    const { columns } = this.#planned;
    const id = columns.find(({ source, occurrence }) => source === DETAIL_LOG_ID && occurrence === 1);
    return ['_key', ...(id === undefined ? [] : [id.name])];
  }

  /** SQL that is TRUE for a row which another file also has, else FALSE. */
  #isAlsoIn(path: string): string {
    const id = identity(this.#planned.columns);
    return `coalesce(${id} IN (SELECT ${id} FROM ${readParquet([path])}), false)`;
  }

  #receiptOf({ download: { receipt } }: PlannedDay, rows_stored: number): StoredReceipt {
    return { ...receipt, rows_stored, changed_at: this.#changedAt };
  }

  /** The cells of the batch's days in `_rescued`, by the source name of their column. */
  async #countRescued(added: readonly NewFile[]): Promise<ReadonlyMap<string, number>> {
    const days = new Set(this.#planned.days.map(({ download }) => download.receipt.day));
    const paths = added.filter(({ day }) => days.has(day)).map(({ local }) => local);
    if (paths.length === 0 || rescuesNothing(this.#planned)) return new Map();
    return rescuedCells(this.#place.engine, readParquet(paths));
  }

  /** The stored files that have a column whose type changes, and the days with a value in one. */
  async #findRetyped() {
    const names = this.#planned.columns.filter(isRetyped).map(({ name }) => name);
    const retypedFiles = [...this.#stored.values()].filter(({ columns }) => names.some((name) => columns.has(name)));
    const from = retypedFiles.length === 0 ? undefined : await this.#place.rows(retypedFiles);
    const hasValue = names.map((name) => `${identifier(name)} IS NOT NULL`);
    const counted = from === undefined ? [] : await rowsByDay(this.#place.engine, `${from} WHERE ${anyOf(hasValue)}`);
    return { retypedFiles, retyped: new Set([...counted].map(([day]) => day)) };
  }
}
