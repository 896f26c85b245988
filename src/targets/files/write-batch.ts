import { addDays, type Day } from '../../base/days.ts';
import { anyOfSql, identifier } from '../../base/sql.ts';
import { zoneOf } from '../../cells/types/zone.ts';
import { dayOfRowSql, sharedRowIdSql } from '../../engine/column-sql.ts';
import { countRescuedByKey, countRowsByDay } from '../../engine/rows/row-counts.ts';
import { selectRowsSql } from '../../engine/rows/rows-query.ts';
import { keptRowsOf, storeTypedRows } from '../../engine/rows/typed-rows.ts';
import { type CheckedDay, mayShareRows } from '../../extract/checked-day.ts';
import type { PlannedBatch } from '../../table/batch-plan.ts';
import { isWidened } from '../../table/column-plan.ts';
import { commitResultOf, type StoredBatch, tableAfterBatch } from '../../table/commit.ts';
import { type TableState, withoutRows } from '../../table/place-state.ts';
import { type StoredReceipt, withReceipts } from '../../table/receipts.ts';
import type { StoredColumn } from '../../table/tables.ts';
import { fileProgramColumns } from './file-layout.ts';
import type { LocalFiles } from './local-files.ts';
import { readParquetSql, writeTableFile } from './parquet-file.ts';
import { type FileChange, type NewFile, newFilesIn, type PlaceVersion, type TableFile } from './place-version.ts';
import { relationSqlOf } from './read-files.ts';
import { rewriteFile } from './rewrite-files.ts';

/**
 * Writes the files of the days of a batch, and those of neighbours that lose rows, on this machine. Gives the table
 * after them, too, and what their commit reports.
 */
export async function writeBatch(localFiles: LocalFiles, { files }: PlaceVersion, plan: PlannedBatch) {
  const { table, writtenDownloads } = plan;
  const filesBefore = files.filter((file) => file.tableName === table.name);
  const fileChanges: FileChange[] = [];
  for (const download of writtenDownloads) {
    fileChanges.push(...(await changesOfDay(localFiles, filesBefore, plan, download)));
  }
  const writtenDays = new Set(writtenDownloads.map(({ receipt }) => receipt.day));
  const writtenFiles = newFilesIn(fileChanges).filter(({ day }) => writtenDays.has(day));
  const writtenPaths = writtenFiles.map(({ localPath }) => localPath);
  const storedBatch: StoredBatch = {
    rowsByDay: new Map(fileChanges.map(({ day, newFile }) => [day, newFile?.rows ?? 0])),
    widenedDays: await findWidenedDays(localFiles, filesBefore, plan),
    // Those of a neighbour were counted when its rows came.
    rescuedCells:
      writtenPaths.length === 0 ? new Map() : await countRescuedByKey(localFiles.engine, readParquetSql(writtenPaths)),
  };
  const tableAfter = tableAfterBatch(plan, storedBatch);
  return { fileChanges, tableAfter, commit: commitResultOf(plan, storedBatch, tableAfter) };
}

/** The changes that store a day. A row that two days share belongs to the later: first it leaves the earlier one. */
async function changesOfDay(
  localFiles: LocalFiles,
  filesBefore: readonly TableFile[],
  plan: PlannedBatch,
  download: CheckedDay,
): Promise<FileChange[]> {
  const { table, tableBefore, columns, changedAt } = plan;
  const { day } = download.receipt;
  const receipt = { ...download.receipt, rows_stored: keptRowsOf(download), changed_at: changedAt };
  const newFile = await writeDay(localFiles, plan, download, receipt);
  const wholeChange: FileChange = { tableName: table.name, day, newFile };
  if (!mayShareRows(receipt)) return [wholeChange];
  // Such a day is alone in its batch: a neighbour is a stored file.
  const fileOf = (fileDay: Day) => filesBefore.find((file) => file.day === fileDay);
  const tableState = { ...tableBefore, columns, receipts: withReceipts(tableBefore.receipts, [receipt]) };
  const loseShared = (file: TableFile | undefined, laterFile: TableFile | undefined) =>
    file && laterFile && withoutSharedRows(localFiles, tableState, changedAt, file, laterFile);
  const change = (await loseShared(newFile, fileOf(addDays(day, 1)))) ?? wholeChange;
  const previousChange = await loseShared(fileOf(addDays(day, -1)), change.newFile);
  return previousChange === undefined ? [change] : [previousChange, change];
}

/** Writes a file without the rows that a later one has, too; undefined if there are none. */
async function withoutSharedRows(
  localFiles: LocalFiles,
  tableState: TableState,
  changedAt: string,
  file: TableFile,
  laterFile: TableFile,
): Promise<FileChange | undefined> {
  const { engine } = localFiles;
  const rowIdSql = sharedRowIdSql(tableState.columns);
  const laterIdsSql = `SELECT ${rowIdSql} FROM ${readParquetSql([await localFiles.localPathOf(laterFile)])}`;
  const isSharedSql = `coalesce(${rowIdSql} IN (${laterIdsSql}), false)`;
  const rowsLost = await engine.count(`${readParquetSql([await localFiles.localPathOf(file)])} WHERE ${isSharedSql}`);
  if (rowsLost === 0) return undefined;
  const tableAfter = withoutRows(tableState, new Map([[file.day, rowsLost]]), changedAt);
  return rewriteFile(localFiles, file, tableAfter, isSharedSql);
}

/** Writes the file of one day; undefined if it has no row. */
async function writeDay(localFiles: LocalFiles, plan: PlannedBatch, download: CheckedDay, receipt: StoredReceipt) {
  const { engine, layout } = localFiles;
  const { columns, table, tableBefore } = plan;
  const zone = zoneOf(tableBefore.timezone);
  const programColumns = fileProgramColumns(layout, tableBefore.timezone);
  let file: NewFile | undefined;
  // All rows of one download come by one query; without a row none comes.
  await storeTypedRows(engine, { ...plan, zone }, [download], async (rowsQuery) => {
    // The id is a system column: `sharedRowIdSql` reads it in the file itself, also if it has no value.
    const isInFile = ({ name, group }: StoredColumn) =>
      layout.hasAllColumns || group === 'system' || rowsQuery.filledColumns.has(name);
    const query = selectRowsSql(rowsQuery, columns.filter(isInFile), programColumns, zone);
    file = await writeTableFile(localFiles, table.name, query, receipt);
    return file.rows;
  });
  return file;
}

/** The stored days that have a value in a column that widens. */
async function findWidenedDays(localFiles: LocalFiles, filesBefore: readonly TableFile[], plan: PlannedBatch) {
  const { columns, table, tableBefore } = plan;
  const names = columns.filter(isWidened).map(({ name }) => name);
  const files = filesBefore.filter((file) => names.some((name) => file.columns.has(name)));
  if (files.length === 0) return new Set<Day>();
  const relation = await relationSqlOf(localFiles, table.name, tableBefore, files);
  const hasValueSql = anyOfSql(names.map((name) => `${identifier(name)} IS NOT NULL`));
  const daySql = dayOfRowSql(table, tableBefore.receipts.keys());
  return new Set((await countRowsByDay(localFiles.engine, `${relation} WHERE ${hasValueSql}`, daySql)).keys());
}
