import { LOG_ID } from '../../../schema/groups.ts';
import { type StoredColumn, type TableName, typedColumns } from '../../../table/columns.ts';
import { literal } from '../../../types/sql.ts';
import type { Zone } from '../../../types/zone.ts';
import { FILE, readFiles, writeFile } from '../../sql/files/parquet-file.ts';
import { eventItems, eventLogs, nameOf, rank, sortedEventLogs } from '../../sql/views.ts';
import { setTable } from '../domains.ts';
import { addsOf, type DataFile, type NewFile, newFile, removeOf } from '../files/data-file.ts';
import { fieldsOf } from '../files/schema.ts';
import type { Lake } from '../lake.ts';
import type { Action } from '../log/actions.ts';
import { columnsIn } from './columns.ts';
import { METADATA } from './metadata.ts';

/** A file of `events` as it is after a change. */
export interface EventFile {
  readonly path: string;
  readonly date: string | null;
  /** Where its key columns can be read now. */
  readonly local: string;
  /** Where all of it can be read. */
  whole(): Promise<string>;
  readonly columns: ReadonlySet<string>;
}

/** A change of `events` from which the other tables follow. */
export interface Derivation {
  readonly id: string;
  readonly lake: Lake;
  readonly columns: readonly StoredColumn[];
  readonly zone: Zone | undefined;
  readonly window: number;
  readonly retentionMs: number;
  readonly now: number;
  /** All files of `events` as they will be. */
  readonly events: readonly EventFile[];
  /** Local paths of the files that leave `events`. */
  readonly left: readonly string[];
  /** False where the same rows only lie in other files. */
  readonly isChange: boolean;
}

/** What makes another table follow: files to store, then entries for its log. */
export interface Derived {
  readonly name: TableName;
  readonly files: readonly NewFile[];
  readonly removed: readonly DataFile[];
  readonly actions: readonly Action[];
}

export type Other = Exclude<TableName, 'events'>;

/**
 * Writes the files of another table that change with `events`: each file of `events` has one here. A table that does not
 * follow from the version before, as after a run that died between its commit and that of `events`, is rewritten.
 */
export async function deriveTable(derivation: Derivation, name: Other): Promise<Derived> {
  const { lake, events, columns, zone, window, now, retentionMs, isChange } = derivation;
  const table = lake.table(name);
  const isCurrent = lake.events.exists && followsEvents(lake, name);
  const there = table.files();
  const sources = new Set(there.map(({ source }) => source));
  const missing = events.filter(({ path }) => !isCurrent || !sources.has(path));
  const logs = name === 'event_logs' ? await logsToWrite(derivation, missing) : undefined;
  const written = logs?.written ?? missing;
  const files: NewFile[] = [];
  for (const event of written) files.push(await write(derivation, name, event));
  await logs?.done();
  const replaced = new Set(written.map(({ path }) => path));
  const kept = new Set(events.map(({ path }) => path));
  const removed = there.filter(({ source = '' }) => !isCurrent || replaced.has(source) || !kept.has(source));
  const fields = await fieldsOf(lake.engine, name, columns, zone);
  return {
    name,
    files,
    removed,
    actions: [
      ...table.shapeActions({ fields, zoned: zone !== undefined, retentionMs }, now),
      setTable({ table: name, window, source: lake.events.version + 1, source_change_id: derivation.id }),
      ...removed.map((file) => removeOf(file, now, isChange)),
      ...(await addsOf(lake.engine, files, fields, now, isChange)),
    ],
  };
}

/** Whether another table follows from the version of `events` that is there, and not from one that lost a race against it. */
export function followsEvents(lake: Lake, name: Other): boolean {
  const { source, source_change_id: id } = lake.table(name).domains.table() ?? {};
  return source === lake.events.version && id === lake.events.domains.table()?.change_id;
}

async function write({ lake, columns }: Derivation, name: Other, event: EventFile): Promise<NewFile> {
  const typed = typedColumns(columnsIn(columns, event.columns));
  const from = readFiles([await event.whole()]);
  const logs = lake.isLowOnMemory ? sortedEventLogs : eventLogs;
  const query = name === 'event_items' ? eventItems(typed, from) : logs(typed, from, isOwnedBy(columns, event.local));
  const local = lake.newPath(name);
  const { n } = await lake.engine.row(`SELECT count(*) AS n FROM ${from}`);
  await writeFile(lake, { query, rows: Number(n) }, local, METADATA);
  return newFile(local, event.date, { source: event.path });
}

const SHARED = '_dfinery_shared';

/**
 * `event_logs` has an event once, whatever files its rows are in. So a file is written when its file of `events` is new
 * and also when that has an event of one that comes or goes.
 */
async function logsToWrite(derivation: Derivation, missing: readonly EventFile[]) {
  const { lake, events, left } = derivation;
  const others = events.filter((event) => !missing.includes(event));
  const some = [...left, ...missing.map(({ local }) => local)];
  const touched = await filesWithLogs(derivation, others, some);
  const written = [...others.filter(({ local }) => touched.has(local)), ...missing];
  await findShared(
    derivation,
    written.map(({ local }) => local),
    events.map(({ local }) => local),
  );
  return { written, done: () => lake.engine.run(`DROP TABLE ${SHARED}`) };
}

async function filesWithLogs(
  { lake, columns }: Derivation,
  all: readonly EventFile[],
  some: readonly string[],
): Promise<Set<string>> {
  if (all.length === 0 || some.length === 0) return new Set();
  const log = nameOf(columns, LOG_ID);
  const files = readFiles(
    all.map(({ local }) => local),
    true,
  );
  const rows = await lake.engine.rows(
    `SELECT DISTINCT ${FILE} AS path FROM ${files} WHERE ${log} IN (${logIds(log, some)})`,
  );
  return new Set(rows.map((row) => String(row.path)));
}

/** Makes the table of the events in `some` files that more than one of `all` has, each with the file it is told by. */
async function findShared(
  { lake, columns }: Derivation,
  some: readonly string[],
  all: readonly string[],
): Promise<void> {
  const log = nameOf(columns, LOG_ID);
  const create = `CREATE OR REPLACE TEMP TABLE ${SHARED}`;
  if (all.length < 2 || some.length === 0) {
    await lake.engine.run(`${create} (log VARCHAR, owner VARCHAR)`);
    return;
  }
  await lake.engine.run(
    `${create} AS SELECT CAST(${log} AS VARCHAR) AS log, arg_min(${FILE}, ${rank(columns)}) AS owner
    FROM ${readFiles(all, true)} WHERE ${log} IN (${logIds(log, some)}) GROUP BY ${log} HAVING count(DISTINCT ${FILE}) > 1`,
  );
}

function logIds(log: string, files: readonly string[]): string {
  return `SELECT ${log} FROM ${readFiles(files)} WHERE ${log} IS NOT NULL`;
}

function isOwnedBy(columns: readonly StoredColumn[], local: string): string {
  const log = nameOf(columns, LOG_ID);
  const elsewhere = `SELECT log FROM ${SHARED} WHERE owner <> ${literal(local)}`;
  return `(${log} IS NULL OR CAST(${log} AS VARCHAR) NOT IN (${elsewhere}))`;
}
