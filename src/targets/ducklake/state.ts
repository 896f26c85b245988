import { configError } from '../../base/errors.ts';
import { jsonOf } from '../../base/json.ts';
import { plainCount } from '../../base/quantities.ts';
import type { TableName } from '../../table/columns.ts';
import { receiptsWith } from '../../table/receipts.ts';
import type { TableState } from '../../table/state.ts';
import { byPath, liveRows } from '../files/data-file.ts';
import { stateEntries, stateFrom } from '../files/log-entries.ts';
import { type CatalogContents, unusableError } from './contents.ts';
import { changedFile, dataFileOf } from './data-file.ts';
import type { CatalogFile } from './format/snapshot.ts';

/** The rows of `_dfinery_state` that hold a state. */
export function stateRows(state: TableState): Map<string, string> {
  const { timezone, tables, eventNames } = state;
  return stateEntries(state)
    .set('table', JSON.stringify({ timezone, tables }))
    .set('event_names', JSON.stringify(eventNames));
}

/**
 * What a catalog says of the tables; no snapshot if it has no state of this program. `changed`: the files that another
 * program wrote, or of which it deleted rows. `file` names the catalog in messages. Throws UserError.
 */
export function catalogSnapshotOf(contents: CatalogContents | undefined, file: string) {
  const text = contents?.state.get('table');
  if (contents === undefined || text === undefined) {
    const [foreign] = contents?.tables.keys() ?? [];
    if (foreign === undefined) return { snapshot: undefined, changed: [] };
    throw configError(`${file} has a table ${foreign} that this program did not make: give another catalog.`);
  }
  const failed = (name: string, why: string) =>
    unusableError(file, `its ${name} is not what this program writes: ${why}`);
  const read = <T>(name: string): T => {
    const value = jsonOf(contents.state.get(name) ?? 'null');
    if (value === undefined) throw failed(name, 'it is not JSON');
    return value as T;
  };
  const info = read<Pick<TableState, 'timezone' | 'tables'> | null>('table');
  if (!Array.isArray(info?.tables)) throw failed('table', 'it has no list of tables');
  const { timezone, tables } = info;
  const eventNames = read<string[]>('event_names');
  if (!Array.isArray(eventNames)) throw failed('event_names', 'it must be array');
  const { receipts, ...stored } = stateFrom(contents.state, failed);
  const changed: CatalogFile[] = [];
  const files = contents.files.map((one) => {
    const note = contents.notes.get(one.id);
    const { positions, files: deletes } = one.deleted;
    if (note !== undefined && positions.length === 0 && deletes.length === 0) return dataFileOf(one, note, file);
    changed.push(one);
    return changedFile(one);
  });
  for (const [table, rows] of contents.inlinedRows) throw insertedError(file, table, rows);
  const isOutdated = (name: TableName) => !contents.tables.has(name) || changed.some(({ table }) => table === name);
  return {
    changed,
    snapshot: {
      files: files.sort(byPath),
      outdated: new Set(tables.filter((name) => name !== 'events' && isOutdated(name))),
      state: {
        ...stored,
        timezone,
        tables,
        // Files that another program changed are taken in before a receipt is removed for having no rows.
        receipts: changed.length > 0 ? receipts : receiptsWith(receipts, liveRows(files)),
        eventNames,
      },
    },
  };
}

/** The failure for rows that belong to no window: this program cannot tell what would supersede or purge them. */
export const insertedError = (file: string, table: TableName, rows: number) =>
  configError(
    `${file}: another program inserted ${plainCount(rows, 'row')} into ${table}, which this one cannot ` +
      'keep: they belong to no export. Delete them there, or move them into another table, and run again.',
  );
