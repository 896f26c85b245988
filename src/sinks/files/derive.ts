import { LOG_ID } from '../../schema/groups.ts';
import { type StoredColumn, TABLES, type TableName, typedColumns } from '../../table/columns.ts';
import type { TableState } from '../../table/state.ts';
import { literal } from '../../types/sql.ts';
import { keyColumns } from '../sql/rows/superseded.ts';
import { columnOfSource, eventItems, eventLogs, rank, sortedEventLogs } from '../sql/views.ts';
import { columnsIn } from './columns.ts';
import { copiesOf, type FileTable } from './file-table.ts';
import type { DataFile, NewFile, ReadableFile } from './log.ts';
import { FILE, readFiles } from './parquet-file.ts';

export interface Files {
  readonly removed: readonly DataFile[];
  readonly added: readonly NewFile[];
}

const SHARED = '_dfinery_shared';

/**
 * Extends a change of `events` to all tables, in which each file of `events` has a file. A table that is new, or stale
 * in the snapshot, is written as a whole. Called inside a transaction.
 */
export async function derive(
  table: FileTable,
  change: Files,
  { columns, tables }: Pick<TableState, 'columns' | 'tables'>,
): Promise<Files> {
  const wanted = TABLES.filter((name) => name !== 'events' && tables.includes(name));
  if (wanted.length === 0) return change;
  const stored = await table.fetch(table.filesOf('events'), keyColumns(columns));
  const leaving = new Set(change.removed.map(({ id }) => id));
  /** The files of `events` after the change, to read their keys. */
  const events: ReadableFile[] = [
    ...stored.filter(({ id }) => !leaving.has(id)),
    ...change.added.map((file) => ({ ...file, copy: file.local })),
  ];
  const left = stored.filter(({ id }) => leaving.has(id));
  const removed = [...change.removed];
  const added = [...change.added];
  for (const name of wanted) {
    const isCurrent = table.log.snapshot?.stale.has(name) === false;
    const before = table.filesOf(name);
    const sources = new Set(isCurrent ? before.map(({ source }) => source) : []);
    const missing = events.filter(({ id }) => !sources.has(id));
    const written = name === 'event_logs' ? await logsToWrite(table, columns, events, missing, left) : missing;
    for (const event of written) added.push(await writeDerived(table, columns, name, event));
    if (name === 'event_logs') await table.engine.run(`DROP TABLE ${SHARED}`);
    const renewed = new Set(written.map(({ id }) => id));
    const kept = new Set(events.map(({ id }) => id));
    removed.push(...before.filter(({ source = '' }) => !isCurrent || renewed.has(source) || !kept.has(source)));
  }
  return { removed, added };
}

async function writeDerived(
  table: FileTable,
  columns: readonly StoredColumn[],
  name: TableName,
  event: ReadableFile,
): Promise<NewFile> {
  const own = typedColumns(columnsIn(columns, event.columns));
  const from = readFiles([await table.fetchOne(event)]);
  const logs = table.engine.isLowOnMemory ? sortedEventLogs : eventLogs;
  const query = name === 'event_items' ? eventItems(own, from) : logs(own, from, isOwnedBy(columns, event.copy));
  return table.write({ table: name, date: event.date, query, rows: event.rows, source: event.id });
}

/**
 * The files of `events` whose file of `event_logs` must be written: the new ones, and those that share an event with a
 * file that is added or removed, since `event_logs` has an event once. Makes the table of the shared events.
 */
async function logsToWrite(
  table: FileTable,
  columns: readonly StoredColumn[],
  events: readonly ReadableFile[],
  missing: readonly ReadableFile[],
  left: readonly ReadableFile[],
): Promise<ReadableFile[]> {
  const others = events.filter((event) => !missing.includes(event));
  const touched = await filesWith(table, columns, copiesOf(others), copiesOf([...left, ...missing]));
  const written = [...others.filter(({ copy }) => touched.has(copy)), ...missing];
  await findShared(table, columns, copiesOf(written), copiesOf(events));
  return written;
}

/** The files among `all` that share an event with one of some others. */
async function filesWith(
  { engine }: FileTable,
  columns: readonly StoredColumn[],
  all: readonly string[],
  some: readonly string[],
): Promise<Set<string>> {
  if (all.length === 0 || some.length === 0) return new Set();
  const log = columnOfSource(columns, LOG_ID);
  const rows = await engine.rows(
    `SELECT DISTINCT ${FILE} AS path FROM ${readFiles(all, true)} WHERE ${log} IN (${logIds(log, some)})`,
  );
  return new Set(rows.map((row) => String(row.path)));
}

/** Makes the table of the events in `some` files that more than one of `all` has, each with the file that owns it. */
async function findShared(
  { engine }: FileTable,
  columns: readonly StoredColumn[],
  some: readonly string[],
  all: readonly string[],
): Promise<void> {
  const log = columnOfSource(columns, LOG_ID);
  const create = `CREATE OR REPLACE TEMP TABLE ${SHARED}`;
  if (all.length < 2 || some.length === 0) {
    await engine.run(`${create} (log VARCHAR, owner VARCHAR)`);
    return;
  }
  await engine.run(
    `${create} AS SELECT CAST(${log} AS VARCHAR) AS log, arg_min(${FILE}, ${rank(columns)}) AS owner
    FROM ${readFiles(all, true)} WHERE ${log} IN (${logIds(log, some)}) GROUP BY ${log} HAVING count(DISTINCT ${FILE}) > 1`,
  );
}

function logIds(log: string, files: readonly string[]): string {
  return `SELECT ${log} FROM ${readFiles(files)} WHERE ${log} IS NOT NULL`;
}

function isOwnedBy(columns: readonly StoredColumn[], local: string): string {
  const log = columnOfSource(columns, LOG_ID);
  return `(${log} IS NULL OR CAST(${log} AS VARCHAR) NOT IN (SELECT log FROM ${SHARED} WHERE owner <> ${literal(local)}))`;
}
