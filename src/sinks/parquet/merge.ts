import type { Zone } from '../../types/zone.ts';
import type { PlannedColumn } from '../duckdb/plan.ts';
import { eventColumns, isReshaped, reshaped, typedColumns } from './columns.ts';
import { type Metadata, readFiles } from './copy.ts';
import type { Dataset } from './dataset.ts';
import type { Fresh } from './fresh.ts';
import { livePath, partitionOf } from './layout.ts';
import type { LiveFile } from './manifest.ts';
import { type Output, waitingPath } from './outputs.ts';
import { countReplaced, type Incoming, isKept, movesOf } from './replaced.ts';
import { writeRows } from './rows.ts';

/** What is known when the rows of a window meet those of the files. */
export interface Meeting {
  readonly dataset: Dataset;
  readonly plan: readonly PlannedColumn[];
  readonly zone: Zone | undefined;
  readonly number: number;
  readonly metadata: Metadata;
  /** Live files of `events`. */
  readonly old: readonly LiveFile[];
  readonly fresh: readonly Fresh[];
  readonly incoming: Incoming;
  /** All that the files will have. */
  readonly eventNames: readonly string[];
}

/** The files of `events` to put in place, in this order. */
export interface Merged {
  /** Same rows, other columns (S30). */
  readonly reshaped: readonly Output[];
  /** Files that lose rows to other dates and gain none yet: before anything is added anywhere (S29). */
  readonly reduced: readonly Output[];
  readonly final: readonly Output[];
}

/** One date on which something happens. */
interface Partition {
  readonly date: string;
  readonly old: LiveFile | undefined;
  readonly fresh: Fresh | undefined;
  /** Rows of the old file that the window replaces. */
  readonly replaced: number;
}

/** Writes every file of `events` that the window changes. Inside a transaction. */
export async function mergeWindow(meeting: Meeting): Promise<Merged> {
  const partitions = await partitionsOf(meeting);
  const touched = partitions.filter(({ fresh, replaced }) => fresh !== undefined || replaced > 0);
  const shape: Output[] = [];
  if (isReshaped(meeting.plan)) {
    for (const partition of partitions.filter((one) => !touched.includes(one))) {
      shape.push(await rewrite(meeting, partition, 'next', false));
    }
  }
  const reduced: Output[] = [];
  for (const partition of await givers(meeting, touched)) reduced.push(await rewrite(meeting, partition, 'less', true));
  const final: Output[] = [];
  for (const partition of touched) {
    const { fresh } = partition;
    if (fresh === undefined) reduced.push(await rewrite(meeting, partition, 'next', true));
    else final.push(await renew(meeting, partition, fresh));
  }
  return { reshaped: shape, reduced, final };
}

async function partitionsOf(meeting: Meeting): Promise<Partition[]> {
  const { dataset, old, fresh, plan, incoming } = meeting;
  const paths = new Map(old.map((file) => [dataset.pathOf(file.path), file]));
  const replaced = await countReplaced(dataset.engine, [...paths.keys()], plan, incoming);
  const byDate = new Map(old.map((file) => [partitionOf(file.path).date, file]));
  const dates = [...new Set([...byDate.keys(), ...fresh.map(({ date }) => date)])].sort();
  return dates.map((date) => {
    const file = byDate.get(date);
    const count = file === undefined ? 0 : (replaced.get(dataset.pathOf(file.path)) ?? 0);
    return { date, old: file, fresh: fresh.find((one) => one.date === date), replaced: count };
  });
}

/** Dates that gain rows while they lose some to other dates: those must be gone before the others show them. */
async function givers(meeting: Meeting, touched: readonly Partition[]): Promise<Partition[]> {
  const { dataset, plan, incoming } = meeting;
  const losing = touched.filter(({ replaced }) => replaced > 0);
  const suspects = losing.filter((one) => one.fresh !== undefined && touched.some((other) => other !== one));
  if (suspects.length === 0) return [];
  const dateOf = new Map(meeting.fresh.map(({ date, path }) => [path, date] as const));
  const paths = new Map(suspects.map((one) => [dataset.pathOf(livePath('events', one.date)), one]));
  const moves = await movesOf(dataset.engine, [...paths.keys()], plan, incoming);
  const giving = moves.flatMap(({ from, to }) => {
    const partition = paths.get(from);
    return partition === undefined || dateOf.get(to) === partition.date ? [] : partition;
  });
  return suspects.filter((one) => giving.includes(one));
}

/** The old rows of a partition under the new columns, without those that the window replaces. */
async function rewrite(meeting: Meeting, partition: Partition, stage: string, drops: boolean): Promise<Output> {
  const rows = (partition.old?.rows ?? 0) - (drops ? partition.replaced : 0);
  const path = await put(meeting, partition.date, stage, oldRows(meeting, partition, drops), rows);
  return { dataset: 'events', date: partition.date, path, windows: drops ? undefined : partition.old?.windows };
}

/** The partition with its new rows; when none of the old ones stay, the file is there already. */
async function renew(meeting: Meeting, partition: Partition, fresh: Fresh): Promise<Output> {
  const { plan, number } = meeting;
  const { date, old, replaced } = partition;
  const kept = (old?.rows ?? 0) - replaced;
  if (kept === 0) return { dataset: 'events', date, path: fresh.path, windows: { [number]: fresh.rows } };
  const news = `SELECT ${eventColumns(plan)} FROM ${readFiles([fresh.path])}`;
  const all = `${oldRows(meeting, partition, replaced > 0)} UNION ALL ${news}`;
  return { dataset: 'events', date, path: await put(meeting, date, 'next', all, kept + fresh.rows) };
}

async function put(meeting: Meeting, date: string, stage: string, query: string, rows: number): Promise<string> {
  const { dataset, plan, metadata, eventNames: names } = meeting;
  const path = waitingPath(dataset, 'events', date, stage);
  await writeRows(dataset, { query, columns: typedColumns(plan), rows, names }, path, metadata);
  return path;
}

function oldRows({ dataset, plan, zone, incoming }: Meeting, { date }: Partition, drops: boolean): string {
  const files = readFiles([dataset.pathOf(livePath('events', date))]);
  const where = drops ? ` WHERE ${isKept(plan, incoming)}` : '';
  return `SELECT ${isReshaped(plan) ? reshaped(plan, zone) : eventColumns(plan)} FROM ${files}${where}`;
}
