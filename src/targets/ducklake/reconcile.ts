import { configError } from '../../base/errors.ts';
import { plainCount } from '../../base/quantities.ts';
import { describe } from '../../engine/conversions.ts';
import type { Engine } from '../../engine/session/engine.ts';
import { pathLiteral } from '../../engine/session/quote.ts';
import { OWN_COLUMNS } from '../../table/names.ts';
import type { TableState } from '../../table/state.ts';
import type { NewFile } from '../files/data-file.ts';
import { columnsIn, selectOf } from '../files/file-columns.ts';
import type { FileTable } from '../files/file-table.ts';
import { PARTITION_COLUMN, readFiles } from '../files/parquet-file.ts';
import { changeOf } from '../files/rewrite.ts';
import type { CatalogContents } from './contents.ts';
import { changedFile } from './data-file.ts';
import type { CatalogFile } from './format/snapshot.ts';
import { fieldsOf, sameType } from './format/types.ts';
import { insertedError } from './state.ts';

// Handles the changes that other programs made in this program's tables: takes in those that can be followed, and
// refuses the others.

/**
 * Rewrites the files of `events` that another program changed as files of this one: without deleted rows, and each row
 * of a known window. Returns the change of all tables that follows. Called inside a transaction.
 */
export async function rewriteChanged(table: FileTable, changed: readonly CatalogFile[], catalog: string) {
  const events = changed.filter((file) => file.table === 'events');
  const added: NewFile[] = [];
  for (const file of events) added.push(...(await rewriteFile(table, file, catalog)));
  return changeOf(table, 'rewrite', { removed: events.map(changedFile), added });
}

async function rewriteFile(table: FileTable, file: CatalogFile, catalog: string): Promise<NewFile[]> {
  const { engine } = table;
  const { state } = table.snapshot;
  const local = await table.fetchOne(changedFile(file));
  const described = await describe(engine, `SELECT * FROM ${readFiles([local])}`);
  const names = new Set(described.map(({ name }) => name));
  const from = `(SELECT * FROM read_parquet([${pathLiteral(local)}], hive_partitioning = false, file_row_number = true)
    WHERE ${await notDeleted(table, file)})`;
  const windows = state.receipts.map(({ window: windowNumber }) => windowNumber);
  const counted = OWN_COLUMNS.every((name) => names.has(name))
    ? await engine.row(
        `SELECT count(*) AS n, count(*) FILTER (_key IS NULL OR _dfinery_window IS NULL
          OR _dfinery_window NOT IN (${[...windows, 0].join(', ')})) AS inserted FROM ${from}`,
      )
    : { n: file.rows, inserted: file.rows };
  const [rows, inserted] = [Number(counted.n), Number(counted.inserted)];
  if (inserted > 0) throw insertedError(catalog, file.table, inserted);
  if (rows === 0) return [];
  if (file.date === undefined) throw undatedError(catalog, file, rows);
  const columns = columnsIn(state.columns, names);
  const query = `SELECT ${selectOf(columns, names, table.zone)} FROM ${from}`;
  return [await table.write({ table: 'events', date: file.date, query, rows })];
}

/** SQL condition of a row of a file that nobody deleted. */
async function notDeleted(table: FileTable, { deleted }: CatalogFile): Promise<string> {
  const positions = [...deleted.positions];
  for (const path of deleted.files) {
    const local = await table.storage.localFile(path, table.newPath('deleted'));
    const rows = await table.engine.rows(`SELECT pos FROM ${readFiles([local])}`);
    for (const { pos } of rows) positions.push(Number(pos));
  }
  return positions.length === 0 ? 'true' : `file_row_number NOT IN (${positions.join(', ')})`;
}

/** The failure for rows of known windows in a file without a date, so that their partition is unknown. */
const undatedError = (file: string, { table, path }: CatalogFile, rows: number) =>
  configError(
    `${file}: another program wrote ${path} without a value of ${PARTITION_COLUMN}, by which ${table} is partitioned, so ` +
      `its ${plainCount(rows, 'row')} cannot be kept. Delete the rows of that file there, then load their days ` +
      'again (--from, --to).',
  );

/** Throws UserError unless the tables have the columns of the state: other changes cannot be followed. */
export async function checkShape(
  engine: Engine,
  contents: CatalogContents,
  state: TableState,
  file: string,
): Promise<void> {
  if (!contents.tables.has('events')) {
    throw configError(`${file} has no table events any more: another program dropped or renamed it. Rename it back.`);
  }
  for (const table of state.tables) {
    const columns = contents.tables.get(table)?.columns;
    if (columns === undefined) continue;
    const byName = new Map(columns.map((column) => [column.name, column]));
    for (const field of await fieldsOf(engine, table, state)) {
      const column = byName.get(field.name);
      if (sameType(field, column)) continue;
      const how = column === undefined ? 'dropped or renamed' : 'changed the type of';
      throw configError(
        `${file}: another program has ${how} the column ${field.name} of ${table}. Give it its name and its type ` +
          `(${field.type}) back, or load into another catalog.`,
      );
    }
  }
}
