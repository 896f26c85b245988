import { LOG_ID } from '../../cells/columns/groups.ts';
import { asText, literal } from '../../cells/types/sql.ts';
import { keyColumns } from '../../engine/rows/superseded.ts';
import { columnOfSource, eventItems, eventLogs, rank, sortedEventLogs } from '../../engine/views.ts';
import { type StoredColumn, TABLES, type TableName, typedColumns } from '../../table/columns.ts';
import type { TableState } from '../../table/state.ts';
import { type ReadableFile, without } from './data-file.ts';
import { columnsIn, withUnloggedColumns } from './file-columns.ts';
import { copiesOf, type FileTable } from './file-table.ts';
import { FILE, readFiles, readFilesWithPaths } from './parquet-file.ts';
import type { ChangedFiles } from './table-log.ts';

const SHARED = '_dfinery_shared';

/**
 * Extends a change of `events` to all tables, in which each file of `events` has a file. A table that is new, or
 * outdated in the snapshot, is written as a whole. Called inside a transaction.
 */
export async function derive(
  table: FileTable,
  change: ChangedFiles,
  { columns, tables }: Pick<TableState, 'columns' | 'tables'>,
): Promise<ChangedFiles> {
  const wanted = TABLES.filter((name) => name !== 'events' && tables.includes(name));
  if (wanted.length === 0) return change;
  const stored = await table.fetch(table.filesOf('events'), keyColumns(columns));
  const staying = without(stored, change.removed);
  const events: ReadableFile[] = [...staying, ...change.added.map((file) => ({ ...file, copy: file.local }))];
  const gone = without(stored, staying);
  const removed = [...change.removed];
  const added = [...change.added];
  for (const name of wanted) {
    const isCurrent = table.latest?.outdated.has(name) === false;
    const before = table.filesOf(name);
    const sources = new Set(isCurrent ? before.map(({ source }) => source) : []);
    const missing = events.filter(({ id }) => !sources.has(id));
    const written = name === 'event_logs' ? await logsToWrite(table, columns, { events, missing, gone }) : missing;
    const known = await withUnloggedColumns(table.engine, written, columns);
    for (const event of known) added.push(await writeDerived(table, columns, name, event));
    if (name === 'event_logs') await table.engine.run(`DROP TABLE ${SHARED}`);
    const renewed = new Set(written.map(({ id }) => id));
    const kept = new Set(events.map(({ id }) => id));
    removed.push(...before.filter(({ source = '' }) => !isCurrent || renewed.has(source) || !kept.has(source)));
  }
  return { removed, added };
}

async function writeDerived(table: FileTable, columns: readonly StoredColumn[], name: TableName, event: ReadableFile) {
  const own = typedColumns(columnsIn(columns, event.columns));
  const from = readFiles([await table.fetchOne(event)]);
  const logs = table.engine.isLowOnMemory ? sortedEventLogs : eventLogs;
  const log = columnOfSource(columns, LOG_ID);
  const owned = `SELECT log FROM ${SHARED} WHERE owner <> ${literal(event.copy)}`;
  const isOwned = `(${log} IS NULL OR ${asText(log)} NOT IN (${owned}))`;
  const query = name === 'event_items' ? eventItems(own, from) : logs(own, from, isOwned);
  return table.write({ table: name, date: event.date, query, rows: event.rows, source: event.id });
}

/**
 * The files of `events` whose file of `event_logs` must be written. These are the new files, and the files that share
 * an event with a file that is added or removed, since `event_logs` has an event only once. Makes the table of the
 * shared events, each with the file that owns it.
 */
async function logsToWrite(
  { engine }: FileTable,
  columns: readonly StoredColumn[],
  { events, missing, gone }: Readonly<Record<'events' | 'missing' | 'gone', readonly ReadableFile[]>>,
): Promise<ReadableFile[]> {
  const log = columnOfSource(columns, LOG_ID);
  const isIn = (files: readonly ReadableFile[]) =>
    files.length === 0 ? 'false' : `${log} IN (SELECT ${log} FROM ${rowsOf(files)} WHERE ${log} IS NOT NULL)`;
  const others = events.filter((event) => !missing.includes(event));
  const select = `SELECT DISTINCT ${FILE} AS path FROM ${rowsOf(others)} WHERE ${isIn([...gone, ...missing])}`;
  const touched = new Set((others.length === 0 ? [] : await engine.rows(select)).map(({ path }) => path));
  const written = [...others.filter(({ copy }) => touched.has(copy)), ...missing];
  const create = `CREATE OR REPLACE TEMP TABLE ${SHARED}`;
  if (events.length < 2) await engine.run(`${create} (log VARCHAR, owner VARCHAR)`);
  else {
    await engine.run(
      `${create} AS SELECT ${asText(log)} AS log, arg_min(${FILE}, ${rank(columns)}) AS owner
      FROM ${rowsOf(events)} WHERE ${isIn(written)} GROUP BY ${log} HAVING count(DISTINCT ${FILE}) > 1`,
    );
  }
  return written;
}

const rowsOf = (files: readonly ReadableFile[]): string => readFilesWithPaths(copiesOf(files));
