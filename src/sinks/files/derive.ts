import { LOG_ID } from '../../schema/groups.ts';
import { type StoredColumn, TABLES, type TableName, typedColumns } from '../../table/columns.ts';
import { literal } from '../../types/sql.ts';
import { eventItems, eventLogs, nameOf, rank, sortedEventLogs } from '../sql/views.ts';
import { columnsIn } from './columns.ts';
import type { DataFile, NewFile } from './log.ts';
import { type FileTable, pathIn } from './open.ts';
import { FILE, readFiles } from './parquet-file.ts';
import { keyColumns } from './superseded.ts';

/** A change of `events` from which the other tables follow. */
export interface EventsChange {
  readonly removed: readonly DataFile[];
  readonly added: readonly NewFile[];
  readonly columns: readonly StoredColumn[];
  /** The tables that are kept. */
  readonly tables: readonly TableName[];
}

/** Files of tables that come and go. */
export interface Files {
  readonly removed: readonly DataFile[];
  readonly added: readonly NewFile[];
}

/** A file of `events` as it will be. */
interface EventFile {
  readonly file: DataFile;
  /** Where its key columns can be read. */
  readonly local: string;
  readonly isNew: boolean;
}

const SHARED = '_dfinery_shared';

/**
 * Writes the files of `event_items` and `event_logs` that change with `events`: each file of `events` has one in each. A table
 * that is new, or does not follow from the snapshot, is written whole. Inside a transaction.
 */
export async function derive(table: FileTable, change: EventsChange): Promise<Files> {
  const wanted = TABLES.filter((name) => name !== 'events' && change.tables.includes(name));
  if (wanted.length === 0) return { removed: [], added: [] };
  const stored = table.filesOf('events');
  const locals = await table.fetchColumns(stored, keyColumns(change.columns));
  const leaving = new Set(change.removed.map(({ id }) => id));
  const events: EventFile[] = [
    ...stored.filter(({ id }) => !leaving.has(id)).map((file) => ({ file, local: pathIn(locals, file), isNew: false })),
    ...change.added.map((file) => ({ file, local: file.local, isNew: true })),
  ];
  const left = change.removed.map((file) => pathIn(locals, file));
  const removed: DataFile[] = [];
  const added: NewFile[] = [];
  for (const name of wanted) {
    const isCurrent = table.log.snapshot?.stale.has(name) === false;
    const before = table.filesOf(name);
    const sources = new Set(isCurrent ? before.map(({ source }) => source) : []);
    const missing = events.filter(({ file }) => !sources.has(file.id));
    const written = name === 'event_logs' ? await logsToWrite(table, change, events, missing, left) : missing;
    for (const event of written) added.push(await write(table, change, name, event));
    if (name === 'event_logs') await table.engine.run(`DROP TABLE ${SHARED}`);
    const renewed = new Set(written.map(({ file }) => file.id));
    const kept = new Set(events.map(({ file }) => file.id));
    removed.push(...before.filter(({ source = '' }) => !isCurrent || renewed.has(source) || !kept.has(source)));
  }
  return { removed, added };
}

async function write(table: FileTable, change: EventsChange, name: TableName, event: EventFile): Promise<NewFile> {
  const { file, isNew } = event;
  const columns = columnsIn(change.columns, file.columns);
  const from = readFiles([isNew ? event.local : await table.fetchOne(file)]);
  const logs = table.isLowOnMemory ? sortedEventLogs : eventLogs;
  const query =
    name === 'event_items'
      ? eventItems(typedColumns(columns), from)
      : logs(typedColumns(columns), from, isOwnedBy(change.columns, event.local));
  const names = await table.engine.rows(`DESCRIBE ${query}`);
  const own = new Set(names.map((row) => String(row.column_name)));
  return table.write({ table: name, date: file.date, query, rows: file.rows, columns: own, source: file.id });
}

/**
 * `event_logs` has an event once, whatever files its rows are in: a file is written if its file of `events` is new, and also
 * if that has an event of one that comes or goes. Makes the table of the events that several files have.
 */
async function logsToWrite(
  table: FileTable,
  { columns }: EventsChange,
  events: readonly EventFile[],
  missing: readonly EventFile[],
  left: readonly string[],
): Promise<EventFile[]> {
  const others = events.filter((event) => !missing.includes(event));
  const touched = await filesWith(table, columns, pathsOf(others), [...left, ...pathsOf(missing)]);
  const written = [...others.filter(({ local }) => touched.has(local)), ...missing];
  await findShared(table, columns, pathsOf(written), pathsOf(events));
  return written;
}

const pathsOf = (files: readonly EventFile[]): string[] => files.map(({ local }) => local);

/** The files among `all` that have an event which some others have. */
async function filesWith(
  { engine }: FileTable,
  columns: readonly StoredColumn[],
  all: readonly string[],
  some: readonly string[],
): Promise<Set<string>> {
  if (all.length === 0 || some.length === 0) return new Set();
  const log = nameOf(columns, LOG_ID);
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
  const log = nameOf(columns, LOG_ID);
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
  const log = nameOf(columns, LOG_ID);
  return `(${log} IS NULL OR CAST(${log} AS VARCHAR) NOT IN (SELECT log FROM ${SHARED} WHERE owner <> ${literal(local)}))`;
}
