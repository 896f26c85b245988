import { LOG_ID } from '../../../schema/groups.ts';
import { type StoredColumn, type TableName, typedColumns } from '../../../table/columns.ts';
import { literal } from '../../../types/sql.ts';
import { countRows, FILE, type Metadata, readFiles, writeFile } from '../../sql/files/parquet-file.ts';
import { eventItems, eventLogs, nameOf, rank, sortedEventLogs } from '../../sql/views.ts';
import type { Dataset } from '../dataset/dataset.ts';
import { partitionOf } from '../dataset/layout.ts';
import type { LiveFile } from '../dataset/manifest.ts';
import { type Output, waitingPath } from './outputs.ts';

/** A change of `events` from which the other datasets follow. */
export interface Derivation {
  readonly dataset: Dataset;
  readonly tables: readonly TableName[];
  readonly columns: readonly StoredColumn[];
  readonly metadata: Metadata;
  /** Live files of `events` before the change. */
  readonly old: readonly LiveFile[];
  /** Files of `events` that replace or add partitions, the last of each. */
  readonly events: readonly Output[];
}

/** Writes the files of `event_items` and `event_logs` that change with `events`. Inside a transaction. */
export async function derive(derivation: Derivation): Promise<Output[]> {
  const { tables, events } = derivation;
  const outputs: Output[] = [];
  if (tables.includes('event_items')) {
    for (const { date, path } of events) {
      const query = eventItems(typedColumns(derivation.columns), readFiles([path]));
      outputs.push(await write(derivation, 'event_items', { date, path }, query));
    }
  }
  if (tables.includes('event_logs')) outputs.push(...(await deriveLogs(derivation)));
  return outputs;
}

/** A partition of `events` as it will be. */
interface Partition {
  readonly date: string;
  readonly path: string;
}

async function write(derivation: Derivation, name: TableName, events: Partition, query: string): Promise<Output> {
  const { dataset, metadata } = derivation;
  const { date } = events;
  const path = waitingPath(dataset, name, date);
  const rows = (await countRows(dataset.engine, [events.path])).get(events.path) ?? 0;
  await writeFile(dataset, { query, rows }, path, metadata);
  return { dataset: name, date, path };
}

const SHARED = '_dfinery_shared';

/**
 * `event_logs` has an event once, whatever dates its rows are filed under. So a partition is rewritten when it changes
 * and also when it has an event of one that changes, as that was or as it is. What is written is written whole: which
 * row stands for an event is looked up over all partitions.
 */
async function deriveLogs(derivation: Derivation): Promise<Output[]> {
  const { dataset, old, events } = derivation;
  const changed = new Map(events.map(({ date, path }) => [date, path]));
  const before = old.map((file) => ({ date: partitionOf(file.path).date, path: dataset.pathOf(file.path) }));
  const others = before.filter(({ date }) => !changed.has(date));
  const was = before.filter(({ date }) => changed.has(date)).map(({ path }) => path);
  const touched = await filesWith(derivation, pathsOf(others), [...was, ...changed.values()]);
  const written = [...others.filter(({ path }) => touched.has(path)), ...events];
  await rememberShared(derivation, pathsOf(written), pathsOf([...others, ...events]));
  const outputs: Output[] = [];
  for (const { date, path } of written) {
    outputs.push(await write(derivation, 'event_logs', { date, path }, logsOf(derivation, path)));
  }
  await dataset.engine.run(`DROP TABLE ${SHARED}`);
  return outputs;
}

const pathsOf = (files: readonly { readonly path: string }[]): string[] => files.map(({ path }) => path);

/** The files among `all` that have an event which some others have. */
async function filesWith(
  { dataset, columns }: Derivation,
  all: readonly string[],
  some: readonly string[],
): Promise<Set<string>> {
  if (all.length === 0 || some.length === 0) return new Set();
  const log = nameOf(columns, LOG_ID);
  const rows = await dataset.engine.rows(
    `SELECT DISTINCT ${FILE} AS path FROM ${readFiles(all, true)} WHERE ${log} IN (${logIds(log, some)})`,
  );
  return new Set(rows.map((row) => String(row.path)));
}

/** Makes the table of the events in `some` files that more than one of `all` has, each with the file that it is told by. */
async function rememberShared(
  { dataset, columns }: Derivation,
  some: readonly string[],
  all: readonly string[],
): Promise<void> {
  const log = nameOf(columns, LOG_ID);
  const type = `CREATE OR REPLACE TEMP TABLE ${SHARED}`;
  if (all.length < 2 || some.length === 0) {
    await dataset.engine.run(`${type} (log VARCHAR, owner VARCHAR)`);
    return;
  }
  await dataset.engine.run(
    `${type} AS SELECT CAST(${log} AS VARCHAR) AS log, arg_min(${FILE}, ${rank(columns)}) AS owner
    FROM ${readFiles(all, true)} WHERE ${log} IN (${logIds(log, some)}) GROUP BY ${log} HAVING count(DISTINCT ${FILE}) > 1`,
  );
}

function logIds(log: string, files: readonly string[]): string {
  return `SELECT ${log} FROM ${readFiles(files)} WHERE ${log} IS NOT NULL`;
}

function logsOf({ dataset, columns }: Derivation, path: string): string {
  const log = nameOf(columns, LOG_ID);
  const elsewhere = `SELECT log FROM ${SHARED} WHERE owner <> ${literal(path)}`;
  const keep = `(${log} IS NULL OR CAST(${log} AS VARCHAR) NOT IN (${elsewhere}))`;
  const select = dataset.isLowOnMemory ? sortedEventLogs : eventLogs;
  return select(typedColumns(columns), readFiles([path]), keep);
}
