import { identifier } from '../../base/sql.ts';
import { widenSql } from '../../cells/types/column-types.ts';
import { zoneOf } from '../../cells/types/zone.ts';
import { castToTypeSql } from '../../engine/column-sql.ts';
import type { TableState } from '../../table/place-state.ts';
import { EVENTS, typedColumns, USER_PROFILES } from '../../table/tables.ts';
import { columnTypeOf, fileColumns, fileProgramColumns, hasCurrentColumns } from './file-layout.ts';
import type { OpenPlace } from './format.ts';
import { readParquetSql, writeTableFile } from './parquet-file.ts';
import type { FileChange, NewFile, PlaceChange, TableFile } from './place-version.ts';
import { localPathOf } from './read-files.ts';

/**
 * Writes a file anew, with the columns of its table after a change, in their types, and with its receipt there.
 * `leavingSql` is TRUE for the rows that leave, else FALSE. Undefined if no row is left.
 */
export async function rewriteFile(
  place: OpenPlace,
  file: TableFile,
  tableState: TableState,
  leavingSql = 'false',
): Promise<NewFile | undefined> {
  const receipt = tableState.receipts.get(file.day);
  if (receipt === undefined) throw new RangeError(`${file.path} has no receipt`);
  if (receipt.rows_stored === 0) return undefined;
  const { layout } = place.format;
  const tableColumns = [...fileColumns(layout, tableState).keys()];
  const columns = tableColumns.filter((name) => layout.hasAllColumns || file.columns.has(name));
  // The condition may be about a column that the file lacks.
  const rowsSql = await fileRowsSql(place, file, tableState);
  const names = columns.map(identifier).join(', ');
  const query = `SELECT ${names} FROM (${rowsSql}) WHERE NOT ${leavingSql}`;
  const profilesState = file.table === USER_PROFILES.name ? tableState : undefined;
  const newFile = await writeTableFile(place, file.table, { query, receipt, profilesState });
  if (newFile.rows === receipt.rows_stored) return newFile;
  throw new RangeError(`${file.path} came to ${newFile.rows} rows instead of ${receipt.rows_stored}`);
}

/** Writes those files of days anew, one after the other, that have other columns after a change, or other types. */
export async function* rewriteOutdated(
  place: OpenPlace,
  files: readonly TableFile[],
  { state, fileChanges }: PlaceChange,
): AsyncGenerator<FileChange> {
  const { layout } = place.format;
  const tableColumns = fileColumns(layout, state.events);
  for (const file of files) {
    const { table, day, columns } = file;
    const isReplaced = fileChanges.some((change) => change.table === table && change.day === day);
    if (isReplaced || table !== EVENTS.name || hasCurrentColumns(layout, columns, tableColumns)) continue;
    yield { table, day, newFile: await place.engine.transaction(() => rewriteFile(place, file, state.events)) };
  }
}

/**
 * The SELECT of the rows of a file, with all columns of a table in their types. It widens values of an earlier type.
 * A column that the file lacks is NULL.
 */
async function fileRowsSql(place: OpenPlace, file: TableFile, { columns, timezone }: TableState): Promise<string> {
  const zone = zoneOf(timezone);
  const values = typedColumns(columns).map(({ name, type }) => {
    const typeBefore = columnTypeOf(file.columns.get(name), zone);
    const value = typeBefore === undefined ? 'NULL' : widenSql(identifier(name), typeBefore, type, zone);
    return `${castToTypeSql(value, type, zone)} AS ${identifier(name)}`;
  });
  const names = fileProgramColumns(place.format.layout, timezone).map(({ name }) => name);
  const localPath = await localPathOf(place, file);
  return `SELECT ${[...names, ...values].join(', ')} FROM ${readParquetSql([localPath])}`;
}
