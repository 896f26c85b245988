import { identifier } from '../../base/sql.ts';
import type { TableState } from '../../table/place-state.ts';
import { EVENTS } from '../../table/tables.ts';
import { hasCurrentColumns, tableColumnsOf } from './file-layout.ts';
import type { LocalFiles } from './local-files.ts';
import { writeTableFile } from './parquet-file.ts';
import type { FileChange, PlaceChange, TableFile } from './place-version.ts';
import { relationSqlOf } from './read-files.ts';

/**
 * Writes a file anew, with the columns of its table after a change, in their types, and with its receipt there.
 * `leavingSql` is TRUE for the rows that leave, else FALSE.
 */
export async function rewriteFile(
  localFiles: LocalFiles,
  file: TableFile,
  tableState: TableState,
  leavingSql = 'false',
): Promise<FileChange> {
  const { tableName, day, path } = file;
  const receipt = tableState.receipts.get(day);
  if (receipt === undefined) throw new RangeError(`${path} has no receipt`);
  if (receipt.rows_stored === 0) return { tableName, day, newFile: undefined };
  const { layout } = localFiles;
  const tableColumns = [...tableColumnsOf(layout, tableState).keys()];
  const columns = tableColumns.filter((name) => layout.hasAllColumns || file.columns.has(name));
  // The condition may be about a column that the file lacks.
  const relation = await relationSqlOf(localFiles, tableName, tableState, [file]);
  const query = `SELECT ${columns.map(identifier).join(', ')} FROM ${relation} WHERE NOT ${leavingSql}`;
  const newFile = await writeTableFile(localFiles, tableName, query, receipt);
  if (newFile.rows === receipt.rows_stored) return { tableName, day, newFile };
  throw new RangeError(`${path} came to ${newFile.rows} rows instead of ${receipt.rows_stored}`);
}

/** Writes those files of days anew, one after the other, that have other columns after a change, or other types. */
export async function* rewriteOutdated(
  localFiles: LocalFiles,
  files: readonly TableFile[],
  { state, fileChanges }: PlaceChange,
): AsyncGenerator<FileChange> {
  const { layout } = localFiles;
  const tableColumns = tableColumnsOf(layout, state.events);
  for (const file of files) {
    const { tableName, day, columns } = file;
    const isReplaced = fileChanges.some((change) => change.tableName === tableName && change.day === day);
    if (isReplaced || tableName !== EVENTS.name || hasCurrentColumns(layout, columns, tableColumns)) continue;
    yield localFiles.engine.transaction(() => rewriteFile(localFiles, file, state.events));
  }
}
