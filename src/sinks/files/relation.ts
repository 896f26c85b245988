import { groupBy } from '../../base/group.ts';
import type { StoredColumn } from '../../table/columns.ts';
import type { Zone } from '../../types/zone.ts';
import { columnsIn, selectOf } from './columns.ts';
import type { DataFile } from './log.ts';
import { pathIn } from './open.ts';
import { FILE, readFiles } from './parquet-file.ts';

/**
 * The rows of files of `events`, as a relation with these columns, some of our own (`own`) and the local path of the row's
 * file; of a column that a file lacks NULL. `locals`: where the files can be read, by id. Undefined if there is no file.
 */
export function eventRows(
  files: readonly DataFile[],
  locals: ReadonlyMap<string, string>,
  columns: readonly StoredColumn[],
  zone: Zone | undefined,
  own?: readonly string[],
): string | undefined {
  const groups = groupBy(files, (file) => JSON.stringify(columnsIn(columns, file.columns).map(({ name }) => name)));
  const parts = [...groups.values()].map((group) => {
    const paths = group.map((file) => pathIn(locals, file));
    return `SELECT ${selectOf(columns, group[0].columns, zone, own)}, ${FILE} FROM ${readFiles(paths, true)}`;
  });
  return parts.length === 0 ? undefined : `(${parts.join(' UNION ALL ')})`;
}
